"""Remote models: servers that return the log-probability of every token of a prompt.

The format is that of vLLM's OpenAI-compatible server: ``POST /v1/completions`` with
``prompt_logprobs`` (https://docs.vllm.ai, "Completions API", extra parameters). The answer has, for
each token of the prompt, null (the first) or an object of token ids, the prompt's own among them:
``{"464": {"logprob": -3.2, "rank": 7, "decoded_token": "The"}}``.

Tokens are cut here and sent as ids, so that server and scorer cannot disagree on them. What a
server does not say of each token is never guessed: the model is then not measurable.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import snapshot_download
from transformers import PreTrainedTokenizerFast

from core.errors import ModelError, ModelLoadError, NotMeasurable
from core.settings import Settings
from models.backend import Losses, Tokens
from models.catalogue import ModelEntry
from models.checkpoint import load_tokenizer
from models.hub import endpoint_of, explain_failures
from models.machine import library_versions
from models.model_files import TOKENIZER_FILES, folder_digest
from models.remote_client import NUM_AT_ONCE, RemoteClient
from models.tally import ScorerFacts
from models.text_model import TextModel, text_model_of
from models.token_scorer import TokenIdentity, TokenScorer

_BATCH_TOKENS = 2**15  # enough windows for all requests that may be in flight
# Of a window that the server counts and we do not: the last target, and one token that it makes.
_EXTRA_TOKENS = 2
_BYTES_PER_TOKEN = 1024  # of an answer; usually 60 to 150
_IMPOSSIBLE = -9999.0  # what vLLM writes for minus infinity, which JSON does not have
_PROBE = "The tide leaves a mark on the sand, and the next tide washes it away. 12 + 34 = 46."
_PROBE_TOLERANCE = 0.5  # nats between two answers; kernels in bfloat16 differ by up to 0.1


@dataclass(frozen=True)
class RemoteModel:
    """A model on a server, found and identified.

    Attributes:
        client: talks to the server.
        served_name: what the server calls it.
        revision: digest of the tokenizer and of what the server states of the model.
        context: most inputs of a window; None where the server states no maximum.
        tokenizer: its.
    """

    client: RemoteClient
    served_name: str
    revision: str
    context: int | None
    tokenizer: PreTrainedTokenizerFast

    @property
    def where(self) -> str:
        """The model, for messages."""
        return f"{self.served_name} at {self.client.address}"

    def identity(self, name: str) -> TokenIdentity:
        """Return what its cells are named after."""
        return TokenIdentity(name, self.revision, self.context, "remote")


def identify_remote(entry: ModelEntry, settings: Settings) -> TokenIdentity:
    """Return what a remote model's cells are named after; errors as those of ``open_remote``."""
    return open_remote(entry, settings).identity(entry.name)


def load_remote(entry: ModelEntry, settings: Settings) -> TokenScorer:
    """Return the scorer of a remote model, once a few tokens have shown that it is measurable.

    Raises: as ``open_remote``, and
        NotMeasurable: the server does not give every token's likelihood, or tokenizes differently.
    """
    model = open_remote(entry, settings)
    backend = RemoteBackend(model)
    # A softmax over bytes alone would take the likelihood of all 256 at each position.
    text_model = dataclasses.replace(text_model_of(model.tokenizer), byte_tokens=None)
    _probe(model, text_model, backend)
    facts = ScorerFacts(
        device=f"remote: {model.client.address}",
        dtype="",
        batch_tokens=settings.batch_tokens or _BATCH_TOKENS,
        versions=library_versions("transformers", "tokenizers", "requests"),
        tokenizer=text_model.facts,
    )
    return TokenScorer(model.identity(entry.name), text_model, backend, facts)


def open_remote(entry: ModelEntry, settings: Settings) -> RemoteModel:
    """Find a model on its server, and its tokenizer.

    Args:
        entry: its location is the server's address, its revision the tokenizer's.
        settings: remote_api_key, sites (where the hub is).

    Raises:
        ModelLoadError: the server does not serve the model, or the tokenizer is missing or broken.
        NotMeasurable: the tokenizer is not a fast one.
        ModelError: the server cannot be reached, or is not of the kind.
        UsageError: the key cannot be sent.
    """
    client = RemoteClient(entry.location, settings.remote_api_key)
    record = _served(client, entry.served_name)
    length = record.get("max_model_len")
    context = entry.context
    if isinstance(length, int) and length > _EXTRA_TOKENS + 1:
        context = length - _EXTRA_TOKENS
    folder = _tokenizer_folder(entry.tokenizer or "", entry.revision, settings)
    digest = hashlib.sha256(folder_digest(folder, TOKENIZER_FILES).encode())
    # Not when it was loaded ("created"), nor by whom it is served.
    digest.update(repr([record["id"], record.get("root"), record.get("parent")]).encode())
    return RemoteModel(
        client=client,
        served_name=record["id"],
        revision=digest.hexdigest()[:16],
        context=context,
        tokenizer=load_tokenizer(folder, entry.tokenizer or ""),
    )


def _served(client: RemoteClient, name: str | None) -> dict[str, Any]:
    """Return what the server states of a model; of its only one, without a name."""
    answer = client.ask("/v1/models")
    records = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(records, list) or not all(
        isinstance(record, dict) and isinstance(record.get("id"), str) for record in records
    ):
        raise ModelError(
            f"{client.address}/v1/models: expected a list of models as vLLM's OpenAI-compatible "
            f"server gives it, got {str(answer)[:200]!r}"
        )
    found = [record for record in records if name in (None, record["id"])]
    if len(found) != 1:
        names = ", ".join(repr(record["id"])[:100] for record in records[:20])
        raise ModelLoadError(
            f"{client.address}: serves {names or 'nothing'}; set the entry's served_name to one "
            f"of them (it is {name!r})"
        )
    record: dict[str, Any] = found[0]
    return record


def _tokenizer_folder(location: str, revision: str | None, settings: Settings) -> Path:
    folder = Path(location).expanduser()
    if not folder.is_dir():
        with explain_failures(location, revision):
            patterns = ["config.json", *TOKENIZER_FILES]
            found = snapshot_download(
                location,
                revision=revision,
                allow_patterns=patterns,
                endpoint=endpoint_of(settings),
            )
            return Path(found)
    found = folder_digest(folder, TOKENIZER_FILES)
    if revision not in (None, found):
        raise ModelLoadError(
            f"{location}: the tokenizer's files have digest {found}, expected {revision}; they "
            "changed since the model was added, so add it again"
        )
    return folder


class RemoteBackend:
    """Has a server run a model, several prompts at a time.

    Args:
        model: found on its server.
    """

    def __init__(self, model: RemoteModel) -> None:
        self._model = model

    @property
    def max_batch_tokens(self) -> int | None:
        """Any number: the server makes its own batches."""
        return None

    def losses(
        self,
        inputs: Sequence[Tokens],
        targets: Sequence[Tokens],
        alphabet: Tokens | None = None,
    ) -> list[Losses]:
        """As ``Backend.losses``; targets go on from their row's inputs.

        Raises:
            NotMeasurable: the server does not give every token's likelihood, refuses a prompt, or
                there is an alphabet.
            ModelError: it cannot be reached, or fails.
        """
        if alphabet is not None:
            raise NotMeasurable(
                f"{self._model.where}: a server of likelihoods does not renormalise them over "
                "bytes; images and audio can be scored with local models only"
            )
        prompts = [
            [*given.tolist(), int(wanted[-1])]
            for given, wanted in zip(inputs, targets, strict=True)
        ]
        with ThreadPoolExecutor(NUM_AT_ONCE) as pool:  # map lets go of the rest after a failure
            nats = list(pool.map(self._prompt_losses, prompts))
        return [own[-len(wanted) :] for own, wanted in zip(nats, targets, strict=True)]

    def _prompt_losses(self, prompt: list[int]) -> Losses:
        """Return -ln p of each token but the first."""
        body = {
            "model": self._model.served_name,
            "prompt": prompt,
            "add_special_tokens": False,
            "prompt_logprobs": 0,  # of the prompt's own tokens, without the likeliest ones
            "max_tokens": 1,  # none is not allowed
            # Not the defaults of the checkpoint's generation_config.json, which some versions
            # apply to the prompt, too. Zero is read as one there.
            "temperature": 0.0,
            "top_p": 1.0,
            "repetition_penalty": 1.0,
        }
        max_bytes = 2**20 + _BYTES_PER_TOKEN * len(prompt)
        answer = self._model.client.ask("/v1/completions", body, max_bytes)
        return read_losses(answer, prompt, self._model.where)


def read_losses(answer: object, prompt: Sequence[int], where: str) -> Losses:
    """Read the losses of a prompt's tokens out of a server's answer.

    Args:
        answer: JSON of a completion.
        prompt: the ids that were sent, (n,).
        where: model and server, for messages.

    Returns:
        -ln p of all tokens but the first, which has nothing before it, (n - 1,).

    Raises:
        NotMeasurable: the answer lacks a token's likelihood, or has one that cannot be.
    """
    choices = answer.get("choices") if isinstance(answer, dict) else None
    choice = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
    entries = choice.get("prompt_logprobs") if isinstance(choice, dict) else None
    if not isinstance(entries, list):
        raise NotMeasurable(
            f"{where}: the answer has no prompt_logprobs, so the likelihood of a text cannot be "
            "had; use a server that returns them, such as vLLM (not below --max-logprobs 0)"
        )
    if len(entries) != len(prompt):
        raise NotMeasurable(
            f"{where}: prompt_logprobs has {len(entries)} entries for a prompt of {len(prompt)} "
            "tokens; the server cut the prompt, added tokens to it, or left out those that it had "
            "in its cache (vLLM: --no-enable-prefix-caching, a longer --max-model-len)"
        )
    positions = range(1, len(prompt))
    return np.array([_loss(entries[i], prompt[i], f"{where}, token {i}") for i in positions])


def _loss(entry: object, token: int, where: str) -> float:
    """Return -ln p of the prompt's own token at one position."""
    if not isinstance(entry, dict) or str(token) not in entry:
        given = "nothing" if entry is None else f"other tokens ({str(entry)[:100]})"
        raise NotMeasurable(
            f"{where}: prompt_logprobs has {given} where the prompt has token {token}; expected "
            "the likelihood of every token after the first, as vLLM returns it"
        )
    own = entry[str(token)]
    value: Any = own.get("logprob") if isinstance(own, dict) else None
    # A comparison with NaN is false; what is above 0 by rounding is let through.
    if type(value) not in (int, float) or not _IMPOSSIBLE < value < 1e-3:
        raise NotMeasurable(
            f"{where}: the log-probability of token {token} is {str(value)[:50]}; expected a "
            f"finite number, not above 0 ({_IMPOSSIBLE:.0f} stands for minus infinity); see "
            "whether the server computes in a type that overflows (vLLM: --dtype)"
        )
    return max(0.0, float(-value))


def _probe(model: RemoteModel, text_model: TextModel, backend: RemoteBackend) -> None:
    """Find out with a few tokens whether the server gives what scoring needs.

    The second time, a server that leaves out what it has in its cache is found out, too.
    """
    (tokens,) = text_model.tokenizer.tokenize([_PROBE])
    _compare_tokenizers(model, tokens.ids.tolist())
    ids = tokens.ids[: None if model.context is None else model.context]
    if len(ids) < 2:
        raise ModelLoadError(f"{model.where}: the tokenizer makes {len(ids)} tokens of {_PROBE!r}")
    first, second = (backend.losses([ids[:-1]], [ids[1:]])[0] for _ in range(2))
    if (apart := float(np.abs(first - second).max())) > _PROBE_TOLERANCE:
        raise NotMeasurable(
            f"{model.where}: asked twice, the server gave a token likelihoods that are {apart:.2f} "
            "nats apart; serve without a cache of prefixes (vLLM: --no-enable-prefix-caching)"
        )


def _compare_tokenizers(model: RemoteModel, ids: list[int]) -> None:
    """Refuse a tokenizer that is not the served model's, where the server tells."""
    body = {"model": model.served_name, "prompt": _PROBE, "add_special_tokens": False}
    try:
        answer = model.client.ask("/tokenize", body)
    except ModelError:  # vLLM has it; others need not
        return
    theirs = answer.get("tokens") if isinstance(answer, dict) else None
    if isinstance(theirs, list) and answer.get("count") == len(theirs) and theirs != ids:
        raise ModelLoadError(
            f"{model.where}: the server makes other tokens of {_PROBE[:20]!r} … than the entry's "
            f"tokenizer ({str(theirs[:8])} and {ids[:8]}); set tokenizer to the served model's"
        )
