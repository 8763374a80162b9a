"""Remote models: servers that return the log-probability of every token of a prompt.

The format is that of vLLM's OpenAI-compatible server: ``POST /v1/completions`` with
``prompt_logprobs`` (https://docs.vllm.ai, "Completions API", extra parameters). For each token of
the prompt, the response has an object by token id (null for the first token), such as:
``{"464": {"logprob": -3.2, "rank": 7, "decoded_token": "The"}}``. The same path writes texts.

Texts are tokenized here and sent as ids, so that server and scorer use the same tokens. If a
server omits a token's likelihood, scoring ends with NotMeasurable.
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
from core.json import JsonObject
from core.settings import Settings
from models.catalogue import ModelEntry
from models.generation.local import GenerationIdentity, takes_questions, template_digest
from models.kinds import REMOTE
from models.scoring.machine import library_versions
from models.scoring.scorer import Losses, ScorerFacts, Tokens
from models.scoring.text_model import TextModel, control_texts_of, text_model_of
from models.scoring.token_scorer import TokenIdentity, TokenScorer
from models.servers.completions import CompletionGenerator
from models.servers.http import RemoteClient
from models.weights.checkpoint import find_tokenizer
from models.weights.files import TOKENIZER_FILES, folder_digest
from models.weights.hub import endpoint_of, explain_failures
from models.weights.tokenizer_choice import TOKENIZER_FILE

_BATCH_TOKENS = 2**15  # default tokens of a batch; enough windows for all parallel requests
# The server's maximum length also counts a window's last target and one generated token.
_EXTRA_TOKENS = 2
_BYTES_PER_TOKEN = 1024  # maximum response size per token; 60 to 150 bytes are usual
_IMPOSSIBLE = -9999.0  # vLLM's value for minus infinity, which JSON does not have
_PROBE = "The tide leaves a mark on the sand, and the next tide washes it away. 12 + 34 = 46."
_PROBE_TOLERANCE = 0.5  # allowed difference of a token's loss in nats; bfloat16 rounds by 0.1


@dataclass(frozen=True)
class RemoteModel:
    """A model that a server offers, with its tokenizer.

    Attributes:
        revision: digest of the tokenizer and of the server's record of the model.
        context: maximum number of input tokens of a window, or None if no maximum is known.
        replaced: as in ``CheckpointFiles``.
    """

    client: RemoteClient
    served_name: str
    revision: str
    context: int | None
    tokenizer: PreTrainedTokenizerFast
    replaced: str = ""

    @property
    def where(self) -> str:
        """Served name and address, for error messages."""
        return f"{self.served_name} at {self.client.address}"

    def identity(self, name: str) -> TokenIdentity:
        """Return the identity of the model under a name of the catalogue."""
        # Earlier versions of tidemark sent other tokens where the tokenizer was replaced.
        numerics = f"remote {TOKENIZER_FILE}" if self.replaced else "remote"
        control_texts = control_texts_of(self.tokenizer)
        return TokenIdentity(
            name, self.revision, self.context, numerics, control_texts=control_texts
        )


def identify_remote(entry: ModelEntry, settings: Settings) -> TokenIdentity:
    """Return the identity of a remote model; errors are those of ``open_remote``."""
    return open_remote(entry, settings).identity(entry.name)


def load_remote(entry: ModelEntry, settings: Settings) -> TokenScorer:
    """Return the scorer of a remote model after a test with a few tokens.

    Raise NotMeasurable if the server omits likelihoods of tokens, ModelLoadError if it tokenizes
    differently, and the errors of ``open_remote``.
    """
    model = open_remote(entry, settings)
    engine = RemoteEngine(model)
    # Media need a softmax over the 256 byte tokens, whose likelihoods the server does not return.
    text_model = dataclasses.replace(text_model_of(model.tokenizer), byte_tokens=None)
    _probe(model, text_model, engine)
    versions = library_versions("transformers", "tokenizers", "requests")
    if model.replaced:
        versions["tokenizer"] = f"{TOKENIZER_FILE} in place of {model.replaced}"
    facts = ScorerFacts(
        device=f"remote: {model.client.address}",
        dtype="",
        batch_tokens=settings.batch_tokens or _BATCH_TOKENS,
        versions=versions,
        tokenizer=text_model.facts,
    )
    return TokenScorer(model.identity(entry.name), text_model, engine, facts)


def identify_remote_texts(entry: ModelEntry, settings: Settings) -> GenerationIdentity:
    """Return the facts that determine a model's texts; errors are those of ``open_remote``."""
    return _identity_of_texts(entry.name, open_remote(entry, settings))


def load_remote_generator(entry: ModelEntry, settings: Settings) -> CompletionGenerator:
    """Return the text generator of a remote model after a test with one token.

    Raise NotMeasurable if the server writes no text, and the errors of ``open_remote``.
    """
    model = open_remote(entry, settings)
    identity = _identity_of_texts(entry.name, model)
    text_model = text_model_of(model.tokenizer)
    return CompletionGenerator(
        model.client, model.served_name, identity, text_model, REMOTE.answers_together
    )


def _identity_of_texts(name: str, model: RemoteModel) -> GenerationIdentity:
    is_chat = takes_questions(name, text_model_of(model.tokenizer))
    asked = template_digest(model.tokenizer) if is_chat else "plain"
    # Earlier versions of tidemark sent other tokens where the tokenizer was replaced.
    origin = f" {TOKENIZER_FILE}" if model.replaced else ""
    definition = f"{asked} remote{origin}"
    # The server ends texts by the checkpoint's own end tokens.
    return GenerationIdentity(name, model.revision, model.context, (), is_chat, definition)


def open_remote(entry: ModelEntry, settings: Settings) -> RemoteModel:
    """Find a model on its server, and its tokenizer.

    Raises:
        ModelLoadError: the server does not serve the model, or the tokenizer is missing or broken.
        NotMeasurable: the tokenizer is not a fast one.
        ModelError: the server cannot be reached, or has another API.
        UsageError: the API key has characters that an HTTP header cannot have.
    """
    client = RemoteClient(entry.location, settings.remote_api_key, REMOTE.answers_together)
    record = _served(client, entry.served_name)
    length = record.get("max_model_len")
    context = entry.context
    if isinstance(length, int) and length > _EXTRA_TOKENS + 1:
        context = length - _EXTRA_TOKENS
    folder = _tokenizer_folder(entry.tokenizer or "", entry.revision, settings)
    digest = hashlib.sha256(folder_digest(folder, TOKENIZER_FILES).encode())
    # The digest excludes the load time ("created") and the name of the server's owner.
    digest.update(repr([record["id"], record.get("root"), record.get("parent")]).encode())
    tokenizer, replaced = find_tokenizer(folder, entry.tokenizer or "")
    return RemoteModel(
        client=client,
        served_name=record["id"],
        revision=digest.hexdigest()[:16],
        context=context,
        tokenizer=tokenizer,
        replaced=replaced,
    )


def _served(client: RemoteClient, name: str | None) -> JsonObject:
    """Return the server's record of the named model; without a name, of its only model."""
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
    record: JsonObject = found[0]
    return record


def _tokenizer_folder(location: str, revision: str | None, settings: Settings) -> Path:
    folder = Path(location).expanduser()
    if not folder.is_dir():
        with explain_failures(location, revision):
            patterns = ["config.json", *TOKENIZER_FILES]
            found = snapshot_download(
                location, revision=revision, allow_patterns=patterns, endpoint=endpoint_of(settings)
            )
            return Path(found)
    found = folder_digest(folder, TOKENIZER_FILES)
    if revision not in (None, found):
        raise ModelLoadError(
            f"{location}: the tokenizer's files have digest {found}, expected {revision}; they "
            "changed since the model was added, so add it again"
        )
    return folder


class RemoteEngine:
    """Computes losses with a model on a server; several prompts are sent at a time."""

    max_batch_tokens: int | None = None  # the server makes its own batches

    def __init__(self, model: RemoteModel) -> None:
        self._model = model

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        """Return losses as ``Engine.losses``; a row's targets must continue its inputs.

        Raises:
            NotMeasurable: an alphabet is given, a token has no likelihood, or a prompt is refused.
            ModelError: the server cannot be reached, or fails.
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
        with ThreadPoolExecutor(REMOTE.answers_together) as pool:  # map raises the first error
            nats = list(pool.map(self._prompt_losses, prompts))
        return [own[-len(wanted) :] for own, wanted in zip(nats, targets, strict=True)]

    def _prompt_losses(self, prompt: list[int]) -> Losses:
        """Request and return -ln p of each token of a prompt except the first."""
        body = {
            "model": self._model.served_name,
            "prompt": prompt,
            "add_special_tokens": False,
            "prompt_logprobs": 0,  # only the prompt's own tokens, no alternatives
            "max_tokens": 1,  # the server does not allow 0
            # Override the checkpoint's generation_config.json, which some vLLM versions apply to
            # the prompt, too. For the prompt, they read temperature 0 as 1.
            "temperature": 0.0,
            "top_p": 1.0,
            "repetition_penalty": 1.0,
        }
        max_bytes = 2**20 + _BYTES_PER_TOKEN * len(prompt)
        answer = self._model.client.ask("/v1/completions", body, max_bytes)
        return read_losses(answer, prompt, self._model.where)


def read_losses(answer: object, prompt: Sequence[int], where: str) -> Losses:
    """Return the losses of a prompt's tokens from a server's response.

    Raise NotMeasurable if a token's likelihood is missing or impossible.
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
    # The comparison is false for NaN; values slightly above 0 are rounding errors and pass.
    if type(value) not in (int, float) or not _IMPOSSIBLE < value < 1e-3:
        raise NotMeasurable(
            f"{where}: the log-probability of token {token} is {str(value)[:50]}; expected a "
            f"finite number, not above 0 ({_IMPOSSIBLE:.0f} stands for minus infinity); see "
            "whether the server computes in a type that overflows (vLLM: --dtype)"
        )
    return max(0.0, float(-value))


def _probe(model: RemoteModel, text_model: TextModel, engine: RemoteEngine) -> None:
    """Test with a few tokens if the server returns all likelihoods that scoring needs.

    The request is repeated after another text. So a server is detected that gives other results for
    tokens in its cache of prefixes, such as those of the request before.
    """
    (tokens,) = text_model.tokenizer.tokenize([_PROBE])
    _compare_tokenizers(model, tokens.ids.tolist())
    ids = tokens.ids[: None if model.context is None else model.context]
    if len(ids) < 2:
        raise ModelLoadError(f"{model.where}: the tokenizer makes {len(ids)} tokens of {_PROBE!r}")
    texts = (ids, ids[::-1], ids)
    first, _, second = (engine.losses([own[:-1]], [own[1:]])[0] for own in texts)
    apart = float(np.abs(first - second).max())
    if apart > _PROBE_TOLERANCE:
        raise NotMeasurable(
            f"{model.where}: asked twice, the server gave a token likelihoods that are {apart:.2f} "
            "nats apart; serve without a cache of prefixes (vLLM: --no-enable-prefix-caching)"
        )


def _compare_tokenizers(model: RemoteModel, ids: list[int]) -> None:
    """Raise ModelLoadError if the server reports other tokens than the entry's tokenizer."""
    body = {"model": model.served_name, "prompt": _PROBE, "add_special_tokens": False}
    try:
        answer = model.client.ask("/tokenize", body)
    except ModelError:  # other servers than vLLM may lack this path
        return
    theirs = answer.get("tokens") if isinstance(answer, dict) else None
    if isinstance(theirs, list) and answer.get("count") == len(theirs) and theirs != ids:
        raise ModelLoadError(
            f"{model.where}: the server makes other tokens of {_PROBE[:20]!r} … than the entry's "
            f"tokenizer ({str(theirs[:8])} and {ids[:8]}); set tokenizer to the served model's"
        )
