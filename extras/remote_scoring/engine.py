"""Remote models: servers that return the log-probability of every token of a prompt.

This folder has a file for each dialect of such servers. The path ``/v1/completions`` writes
texts. Before a run, ``probe.py`` tests whether the likelihoods are those of the
prompt. If a server omits a token's likelihood, scoring ends with NotMeasurable.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import snapshot_download
from transformers import PreTrainedTokenizerFast

from core.errors import ModelError, ModelLoadError, NotMeasurable
from core.settings import Settings
from extras.remote_scoring.backends import REMOTE
from extras.remote_scoring.client import RemoteClient
from extras.remote_scoring.completions import CompletionGenerator
from extras.remote_scoring.dialect import Dialect, Served, find_served
from extras.remote_scoring.dialects import choose_dialect
from extras.remote_scoring.probe import NOTABLE, plan_probe, probe
from extras.remote_scoring.reference import open_reference
from extras.remote_scoring.vllm import VllmDialect
from models.catalogue import ModelEntry
from models.generation.local import GenerationIdentity, takes_questions, template_digest
from models.scoring.machine import library_versions
from models.scoring.scorer import Engine, Losses, ScorerFacts, Tokens
from models.scoring.text_model import TextModel, control_texts_of, text_model_of
from models.scoring.token_scorer import TokenIdentity, TokenScorer
from models.weights.checkpoint import find_tokenizer
from models.weights.files import TOKENIZER_FILES, folder_digest
from models.weights.hub import endpoint_of, explain_failures
from models.weights.tokenizer_choice import TOKENIZER_FILE, own_file

_BATCH_TOKENS = 2**15  # default tokens of a batch; enough windows for all parallel requests
# The server's maximum length also counts a window's last target and one generated token.
_EXTRA_TOKENS = 2
_PROBE = "The tide leaves a mark on the sand, and the next tide washes it away. 12 + 34 = 46."
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RemoteModel:
    """A model that a server offers, with its tokenizer.

    Attributes:
        revision: digest of the tokenizer and of what the server says of the model.
        context: maximum number of input tokens of a window, or None if no maximum is known.
        folder: folder of the tokenizer, which may have the weights, too.
        replaced: as in ``CheckpointFiles``.
    """

    client: RemoteClient
    served: Served
    dialect: Dialect
    revision: str
    context: int | None
    folder: Path
    tokenizer: PreTrainedTokenizerFast
    replaced: str = ""

    @property
    def where(self) -> str:
        """Served name and address, for error messages."""
        return f"{self.served.name} at {self.client.address}"

    def identity(self, name: str) -> TokenIdentity:
        """Return the identity of the model under a name of the catalogue."""
        # Earlier versions of tidemark sent other tokens where the tokenizer was replaced.
        origin = TOKENIZER_FILE if self.replaced else ""
        # Earlier versions left a character out of texts if it was named as a special token.
        named = self.tokenizer.all_special_tokens
        signs = "signs" if any(len(each) == 1 for each in named) else ""
        # vLLM's dialect was once the only one.
        spoken = "" if self.dialect.name == VllmDialect.name else self.dialect.name
        numerics = " ".join(filter(None, ["remote", spoken, origin, signs]))
        control_texts = control_texts_of(self.tokenizer)
        return TokenIdentity(
            name, self.revision, self.context, numerics, control_texts=control_texts
        )


def identify_remote(entry: ModelEntry, settings: Settings) -> TokenIdentity:
    """Return the identity of a remote model; errors are those of ``open_remote``."""
    return open_remote(entry, settings).identity(entry.name)


def load_remote(entry: ModelEntry, settings: Settings) -> TokenScorer:
    """Return the scorer of a remote model after the tests of ``probe.py``.

    Raise NotMeasurable if the server omits likelihoods of tokens or returns others, ModelLoadError
    if it tokenizes differently, and the errors of ``open_remote``.
    """
    model = open_remote(entry, settings)
    engine = RemoteEngine(model)
    # Media need a softmax over the 256 byte tokens, whose likelihoods the server does not return.
    text_model = dataclasses.replace(text_model_of(model.tokenizer), byte_tokens=None)
    versions = library_versions("transformers", "tokenizers", "requests")
    by = f", by {model.served.owner}" if model.served.owner else ""
    versions["engine"] = f"{model.dialect.name}{by}"
    versions["probe"] = _probe(model, text_model, engine, settings)
    if model.replaced:
        versions["tokenizer"] = f"{own_file(model.folder)} in place of {model.replaced}"
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
        model.client, model.served.name, identity, text_model, REMOTE.answers_together
    )


def _identity_of_texts(name: str, model: RemoteModel) -> GenerationIdentity:
    """Return what makes texts of this model comparable: revision, context, template."""
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
        NotMeasurable: the tokenizer is not a fast one, or the server has no likelihoods of prompts.
        ModelError: the server cannot be reached, or has another API.
        UsageError: the API key has characters that an HTTP header cannot have.
    """
    client = RemoteClient(entry.location, settings.remote_api_key, REMOTE.answers_together)
    served = find_served(client, entry.served_name)
    context = entry.context
    if served.length is not None and served.length > _EXTRA_TOKENS + 1:
        context = served.length - _EXTRA_TOKENS
    folder = _tokenizer_folder(entry.tokenizer or "", entry.revision, settings)
    tokenizer, replaced = find_tokenizer(folder, entry.tokenizer or "")
    dialect = choose_dialect(entry.dialect, served, tokenizer, f"{served.name} at {client.address}")
    digest = hashlib.sha256(folder_digest(folder, TOKENIZER_FILES).encode())
    # The digest excludes the load time ("created") and the name of the server's owner.
    digest.update(repr([served.name, *dialect.describe(client, served)]).encode())
    return RemoteModel(
        client=client,
        served=served,
        dialect=dialect,
        revision=digest.hexdigest()[:16],
        context=context,
        folder=folder,
        tokenizer=tokenizer,
        replaced=replaced,
    )


def _tokenizer_folder(location: str, revision: str | None, settings: Settings) -> Path:
    """Return the folder of the tokenizer's files, downloaded or local, of this revision."""
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
        model = self._model
        answer = model.dialect.ask(model.client, model.served, prompt)
        return model.dialect.read(answer, prompt, model.where)


def _probe(model: RemoteModel, text_model: TextModel, engine: Engine, settings: Settings) -> str:
    """Test a server, and return what was found, for the record of a cell.

    Raise ModelLoadError if the server tokenizes differently, and the errors of ``probe``.
    """
    (tokens,) = text_model.tokenizer.tokenize([_PROBE])
    _compare_tokenizers(model, tokens.ids.tolist())
    plan = plan_probe(text_model, model.context)
    reference = open_reference(model.folder, settings)
    try:
        found, compared = probe(engine, plan, reference, model.dialect.advice)
    except NotMeasurable as error:
        where = "" if str(error).startswith(model.where) else f"{model.where}: "
        raise NotMeasurable(f"{where}{error}") from error
    lengths = sorted(map(len, plan.prompts))
    about = (
        f"largest difference {found.largest:.2g} nats a token, RMS {found.rms:.2g}, of "
        f"{len(lengths)} prompts of {lengths[0]} to {lengths[-1]} tokens alone and in two orders; "
        f"{compared}"
    )
    if found.rms > NOTABLE:
        _log.warning("%s: %s; %s", model.where, about, model.dialect.advice)
    return about


def _compare_tokenizers(model: RemoteModel, ids: list[int]) -> None:
    """Raise ModelLoadError if the server reports other tokens than the entry's tokenizer."""
    body = {"model": model.served.name, "prompt": _PROBE, "add_special_tokens": False}
    try:
        answer = model.client.ask("/tokenize", body)
    except ModelError:  # some servers lack this path
        return
    theirs = answer.get("tokens") if isinstance(answer, dict) else None
    if isinstance(theirs, list) and answer.get("count") == len(theirs) and theirs != ids:
        raise ModelLoadError(
            f"{model.where}: the server makes other tokens of {_PROBE[:20]!r} … than the entry's "
            f"tokenizer ({str(theirs[:8])} and {ids[:8]}); set tokenizer to the served model's"
        )
