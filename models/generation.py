"""Local models that write: texts continued by a decoding loop of our own, many at a time.

Prompts are batched by length. A text is given away as soon as it ends, and its row leaves the
batch. Batches follow from the requests alone, and each row draws from numbers of its own: the same
requests give the same texts. Asked for beside others, a text differs only where rounding, which
depends on the shape of a batch, tips a choice.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from transformers import GenerationConfig

from core.errors import NotMeasurable, UsageError
from core.settings import Settings
from models.backend import DeviceFull, Tokens
from models.cached_rows import RowModel
from models.catalogue import ModelEntry
from models.causal_lm import CausalLM, CausalLMIdentity
from models.checkpoint import CheckpointFiles
from models.failures import MODEL_FAILURES
from models.forward import Forward, or_device_full
from models.generation_batch import Batch, Row
from models.generator import Decoding, Generation, GenerationRequest
from models.model_files import GENERATION_CONFIG

_log = logging.getLogger(__name__)

_VERSION = "1"  # raised when a change here, or in what it stands on, changes texts
# Of prompts, padding included; a batch's other passes have one token a row.
_CPU_TOKENS, _GPU_TOKENS = 8192, 32_768
_CPU_ROWS, _GPU_ROWS = 32, 256


@dataclass(frozen=True)
class GenerationIdentity:
    """What a model's texts are named after; known before its weights are read.

    Attributes:
        name: the ``model`` column.
        revision: commit of the hub, or digest of the files.
        context: most tokens of a prompt and its text; None: any number.
        ends: ids of the tokens that end a text, in order.
        is_chat: whether prompts go into the tokenizer's chat template.
        definition: of template and numerics.
    """

    name: str
    revision: str
    context: int | None
    ends: tuple[int, ...]
    is_chat: bool
    definition: str

    def generation_id(self, decoding: Decoding) -> str:
        """As ``Generator.generation_id``."""
        definition = f"{_VERSION} {decoding.digest} {self.context} {self.ends} {self.definition}"
        return hashlib.sha256(definition.encode()).hexdigest()[:8]


def generation_identity(entry: ModelEntry, settings: Settings) -> GenerationIdentity:
    """Find out what an entry's texts are named after, without loading its weights.

    Raises: as ``load_generator``, for all but the weights.
    """
    return _generation_identity(_identify(entry, settings))


def load_generator(entry: ModelEntry, settings: Settings) -> LocalGenerator:
    """Load a Hugging Face causal language model, to write with it.

    Args:
        entry: of kind causal_lm or reference.
        settings: device, dtype, batch_tokens (of a pass over prompts), allow_pickle_weights.

    Raises:
        NotMeasurable: the entry's kind does not write; the message says which to use.
        ModelLoadError, UsageError, DiskFull: as ``models.load.load_scorer``.
    """
    _require_writer(entry)
    scorer = CausalLM.load(
        name=entry.name, location=entry.location, revision=entry.revision, settings=settings
    )
    assert isinstance(scorer.identity, CausalLMIdentity)  # noqa: S101
    assert isinstance(scorer.backend, Forward)  # noqa: S101
    files = scorer.identity.files
    is_cpu = files.device.type == "cpu"
    return LocalGenerator(
        identity=_generation_identity(scorer.identity),
        source=scorer.identity,
        rows=RowModel(scorer.backend.model),
        budget=settings.batch_tokens or (_CPU_TOKENS if is_cpu else _GPU_TOKENS),
        most_rows=_CPU_ROWS if is_cpu else _GPU_ROWS,
    )


def _identify(entry: ModelEntry, settings: Settings) -> CausalLMIdentity:
    _require_writer(entry)
    return CausalLM.identify(
        name=entry.name, location=entry.location, revision=entry.revision, settings=settings
    )


def _require_writer(entry: ModelEntry) -> None:
    advice = {
        "control": "a compressor writes no text; name a language model",
        "rwkv": "a .pth checkpoint is only scored; use the model's Hugging Face folder (kind "
        "causal_lm)",
        "remote": "a server that gives likelihoods is only scored; add the server that writes as "
        "kind api, with its /v1 address as location",
    }
    if entry.kind in advice:
        raise NotMeasurable(f"{entry.name}: {advice[entry.kind]}")
    if entry.kind == "api":
        raise UsageError(f"{entry.name} is behind an API; it is not loaded here")


def _generation_identity(source: CausalLMIdentity) -> GenerationIdentity:
    is_chat = _takes_questions(source)
    template = str(source.files.tokenizer.chat_template)
    asked = hashlib.sha256(template.encode()).hexdigest() if is_chat else "plain"
    return GenerationIdentity(
        name=source.name,
        revision=source.revision,
        context=source.context,
        ends=_ends(source.files),
        is_chat=is_chat,
        definition=f"{asked} {source.numerics}",
    )


def _takes_questions(source: CausalLMIdentity) -> bool:
    """Whether there is a chat template, and it takes a question; else prompts go in as they are."""
    fill = source.text_model.chat_text
    if fill is None:
        return False
    try:
        fill("How much is 1 + 1?")
    except NotMeasurable as error:
        _log.warning("%s is asked without its chat template: %s", source.name, error)
        return False
    return True


def _ends(files: CheckpointFiles) -> tuple[int, ...]:
    """Tokens that end a text: those of the generation config, and the tokenizer's own."""
    stated: Any = None
    for folder in filter(None, (files.adapter, files.folder)):
        if stated is None and (folder / GENERATION_CONFIG).is_file():
            try:
                stated = GenerationConfig.from_pretrained(folder).eos_token_id
            except MODEL_FAILURES:
                stated = None  # config.json has them, too
    if stated is None:
        stated = getattr(files.config.get_text_config(), "eos_token_id", None)
    ids = stated if isinstance(stated, list) else [stated]
    return tuple(
        sorted({each for each in [*ids, files.tokenizer.eos_token_id] if each is not None})
    )


class LocalGenerator:
    """Writes with a Hugging Face model; a ``Generator``.

    The ``reason`` of an error is ``too_long`` (the prompt leaves no room in the context), ``empty``
    (it has no tokens, and the tokenizer no start token) or ``non_finite`` (the model gives no
    finite likelihoods).

    Args:
        identity: what the texts are named after.
        source: with the tokenizer.
        rows: the model.
        budget: tokens in a pass over prompts; halved where the device's memory is full.
        most_rows: in a batch.
    """

    def __init__(
        self,
        identity: GenerationIdentity,
        source: CausalLMIdentity,
        rows: RowModel,
        budget: int,
        most_rows: int,
    ) -> None:
        self._identity, self._rows = identity, rows
        self._text_model = source.text_model
        self._tokenizer: Any = source.files.tokenizer
        vocabulary = rows.vocabulary
        self._ends = [each for each in identity.ends if each < vocabulary]
        self.budget, self._most_rows = budget, most_rows

    @property
    def name(self) -> str:
        """The ``model`` column."""
        return self._identity.name

    @property
    def revision(self) -> str:
        """Of weights and tokenizer."""
        return self._identity.revision

    def generation_id(self, decoding: Decoding) -> str:
        """As ``Generator.generation_id``."""
        return self._identity.generation_id(decoding)

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        """As ``Generator.generate``; the longest prompts first.

        Raises:
            NotMeasurable: the chat template refuses a prompt, though it takes others, or a single
                prompt does not fit into the device's memory.
        """
        waiting: list[Row] = []
        for request in requests:
            row = self._row(request, decoding)
            if isinstance(row, Generation):
                yield row
            else:
                waiting.append(row)
        waiting.sort(key=lambda row: -len(row.prompt))
        start = 0
        while start < len(waiting):
            batch = waiting[start : start + self._num_rows(waiting[start])]
            start += len(batch)
            yield from self._run(batch, decoding)

    def _row(self, request: GenerationRequest, decoding: Decoding) -> Row | Generation:
        prompt = self._tokens(request.prompt)
        if len(prompt) == 0:
            return Generation(request.key, "", "error", 0, "empty")
        context = self._identity.context
        room = decoding.max_new_tokens if context is None else context - len(prompt)
        if room < max(1, decoding.min_new_tokens):
            return Generation(request.key, "", "error", 0, "too_long")
        return Row(request, prompt, min(room, decoding.max_new_tokens))

    def _tokens(self, prompt: str) -> Tokens:
        """Ids of a prompt; a template brings the tokens that begin a text itself."""
        model = self._text_model
        fill = model.chat_text if self._identity.is_chat else None
        text = fill(prompt) if fill else prompt
        starts = model.start_text is not None and text.startswith(model.start_text)
        (tokens,) = model.tokenizer.tokenize([text], fill is None and not starts)
        if len(tokens.ids) == 0 and model.start_token is not None:
            return np.array([model.start_token], dtype=np.int64)
        return tokens.ids

    def _num_rows(self, longest: Row) -> int:
        """How many rows stand in one batch with the longest prompt of those that are left."""
        length = len(longest.prompt)
        if not self._rows.may_batch(length + longest.limit):
            return 1
        return max(1, min(self._most_rows, self.budget // length))

    def _run(self, rows: Sequence[Row], decoding: Decoding) -> Iterator[Generation]:
        """Write a batch, in halves where the device has no room for it."""
        batch: Batch | None = None
        try:
            batch = or_device_full(lambda: self._start(rows, decoding))
            while not batch.is_done:
                yield from or_device_full(batch.step)
            return
        except DeviceFull as error:
            full = error.with_traceback(None)  # lets go of the failed batch's arrays
        batch = None
        longest = len(rows[0].prompt)
        if len(rows) == 1:
            raise NotMeasurable(
                f"{self.name}: a prompt of {longest} tokens and what follows do not fit into the "
                "device's memory; use another TIDEMARK_DTYPE, or a machine with more of it"
            ) from full
        self.budget = max(1, min(self.budget, len(rows) * longest // 2))
        left = [row for row in rows if not row.is_done]
        middle = max(1, len(left) // 2)
        for half in (left[:middle], left[middle:]):
            if half:
                yield from self._run(half, decoding)

    def _start(self, rows: Sequence[Row], decoding: Decoding) -> Batch:
        return Batch(self._rows, self._decode, self._ends, rows, decoding)

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=True))
