"""Text generation with local models: tidemark's own decoding loop continues many texts at a time.

Prompts are batched by length. A text is returned as soon as it ends, and its row is removed from
the batch. Batches depend only on the requests, and each row has its own random numbers. So the same
requests give the same texts. In a call with other requests, a text may differ because rounding
depends on the batch's shape and may change a choice.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from transformers import GenerationConfig

from core.errors import NotMeasurable
from core.responses import open_thought, thinking_tokens
from core.settings import Settings
from models.catalogue import ModelEntry
from models.generation import Decoding, Generation, GenerationRequest
from models.generation.batch import Batch, Decode, Row, Rows
from models.generation.cached_rows import RowModel
from models.scoring.accounting import explained
from models.scoring.forward import Forward, or_device_full
from models.scoring.scorer import DeviceFull, Tokens
from models.scoring.text_model import TextModel
from models.scoring.token_scorer import (
    CausalLM,
    CausalLMIdentity,
    apart,
    identify_causal_lm,
    load_causal_lm,
)
from models.weights.checkpoint import CheckpointFiles
from models.weights.files import GENERATION_CONFIG, MODEL_FAILURES, refuse_endless

_log = logging.getLogger(__name__)

_VERSION = "1"  # increase if a change here, or in a module used here, changes texts
# Maximum number of prompt tokens in a batch, padding included, and of rows.
_CPU_TOKENS = 8192
_GPU_TOKENS = 32_768
_CPU_ROWS = 32
_GPU_ROWS = 256
_TRIAL_QUESTION = "How much is 1 + 1?"  # put into a chat template to see what it adds


@dataclass(frozen=True)
class GenerationIdentity:
    """The facts that determine a model's texts, known before its weights are read.

    Attributes:
        context: maximum number of tokens of prompt and text together, or None for no maximum.
        ends: ids of the tokens that end a text, sorted.
        is_chat: True if prompts are put into the tokenizer's chat template.
        definition: hash of the chat template, dtype, and name of the attention implementation.
    """

    name: str
    revision: str
    context: int | None
    ends: tuple[int, ...]
    is_chat: bool
    definition: str

    def generation_id(self, decoding: Decoding) -> str:
        """Implement ``Generator.generation_id``."""
        definition = f"{_VERSION} {decoding.digest} {self.context} {self.ends} {self.definition}"
        return hashlib.sha256(definition.encode()).hexdigest()[:8]

    def room(self, num_prompt: int, decoding: Decoding) -> int | None:
        """Return the maximum number of new tokens after a prompt, or None if there is no room."""
        if self.context is None:
            return decoding.max_new_tokens
        left = self.context - num_prompt
        is_enough = left >= max(1, decoding.min_new_tokens)
        return min(left, decoding.max_new_tokens) if is_enough else None


def generation_identity(entry: ModelEntry, settings: Settings) -> GenerationIdentity:
    """Return the facts that determine an entry's texts, without loading weights."""
    return identity_of_texts(identify_causal_lm(entry, settings))


def load_generator(entry: ModelEntry, settings: Settings) -> LocalGenerator:
    """Load a causal language model to generate texts; DiskFull, or errors of ``load_scorer``."""
    return generator_of(load_causal_lm(entry, settings), settings)


def generator_of(scorer: CausalLM, settings: Settings) -> LocalGenerator:
    """Return a loaded model as a generator of texts."""
    assert isinstance(scorer.identity, CausalLMIdentity)  # noqa: S101
    engine = scorer.engine
    files = scorer.identity.files
    rows: Rows
    if isinstance(engine, Forward):
        rows = RowModel(engine.model)
    else:  # a confined process continues texts itself
        assert isinstance(engine, Rows)  # noqa: S101
        rows = engine
    is_cpu = files.device.type == "cpu"
    return LocalGenerator(
        identity=identity_of_texts(scorer.identity),
        text_model=scorer.text_model,
        decode=decode_of(files.tokenizer),
        rows=rows,
        budget=settings.batch_tokens or (_CPU_TOKENS if is_cpu else _GPU_TOKENS),
        most_rows=_CPU_ROWS if is_cpu else _GPU_ROWS,
    )


def identity_of_texts(source: CausalLMIdentity) -> GenerationIdentity:
    """Return the facts that determine the texts of a model."""
    is_chat = takes_questions(source.name, source.text_model)
    template = template_digest(source.files.tokenizer) if is_chat else "plain"
    return GenerationIdentity(
        name=source.name,
        revision=source.revision,
        context=source.context,
        ends=_ends(source.files),
        is_chat=is_chat,
        definition=f"{template} {source.files.numerics}{_marks(source, is_chat)}{apart(source)}",
    )


def _marks(source: CausalLMIdentity, is_chat: bool) -> str:
    """Return what of reasoning is in the model's texts, or an empty string for most models."""
    fill = source.text_model.chat_text
    opening = open_thought(fill(_TRIAL_QUESTION)) if is_chat and fill is not None else ""
    kept = sorted(_kept_tokens(source.files.tokenizer))
    return f" {opening} {kept}" if opening or kept else ""


def template_digest(tokenizer: Any) -> str:
    """Return a hash of a tokenizer's chat template."""
    return hashlib.sha256(str(tokenizer.chat_template).encode()).hexdigest()


def takes_questions(name: str, text_model: TextModel) -> bool:
    """Return True if a model has a chat template that shows a question."""
    fill = text_model.chat_text
    if fill is None:
        return False
    try:
        fill(_TRIAL_QUESTION)
    except NotMeasurable as error:
        _log.warning("%s is asked without its chat template: %s", name, error)
        return False
    return True


def _ends(files: CheckpointFiles) -> tuple[int, ...]:
    """Return the ids of the tokens that end a text: those of the model's files and tokenizer."""
    stated: Any = None
    for folder in filter(None, (files.adapter, files.folder)):
        if stated is None and (folder / GENERATION_CONFIG).is_file():
            refuse_endless(folder / GENERATION_CONFIG, folder)
            try:
                stated = GenerationConfig.from_pretrained(folder).eos_token_id
            except MODEL_FAILURES:
                stated = None  # use the end tokens of config.json
    if stated is None:
        stated = getattr(files.config.get_text_config(), "eos_token_id", None)
    ids = stated if isinstance(stated, list) else [stated]
    return tuple(
        sorted({each for each in [*ids, files.tokenizer.eos_token_id] if each is not None})
    )


class LocalGenerator:
    """A ``Generator`` that uses a model on this machine.

    An error has the ``reason`` ``too_long`` if the prompt leaves no space for a text in the model's
    context. The reason is ``empty`` if the prompt has no tokens and the tokenizer has no start
    token. The reason is ``non_finite`` if the model gives no finite likelihoods.
    """

    def __init__(
        self,
        identity: GenerationIdentity,
        text_model: TextModel,
        decode: Decode,
        rows: Rows,
        budget: int,
        most_rows: int,
    ) -> None:
        self._identity = identity
        self._rows = rows
        self.name = identity.name
        self.revision = identity.revision
        self._text_model = text_model
        self._decode = decode
        vocabulary = rows.vocabulary
        self._ends = [each for each in identity.ends if each < vocabulary]
        self.budget = budget
        self._most_rows = most_rows

    def generation_id(self, decoding: Decoding) -> str:
        """Implement ``Generator.generation_id``."""
        return self._identity.generation_id(decoding)

    def generate(
        self, requests: Sequence[GenerationRequest], decoding: Decoding
    ) -> Iterator[Generation]:
        """Yield generations, the longest prompts first; NotMeasurable if a prompt does not fit."""
        waiting: list[Row] = []
        for request in requests:
            ready = prepare(self._identity, self._text_model, request, decoding)
            if isinstance(ready, Generation):
                yield ready
            else:
                opening = open_thought(ready.text)
                waiting.append(Row(request, ready.tokens, ready.limit, opening))
        waiting.sort(key=lambda row: -len(row.prompt))
        start = 0
        while start < len(waiting):
            batch = waiting[start : start + self._num_rows(waiting[start])]
            start += len(batch)
            yield from self._run(batch, decoding)

    def _num_rows(self, longest: Row) -> int:
        """Return the number of rows of the next batch, which begins with the longest row."""
        length = len(longest.prompt)
        if not self._rows.may_batch(length + longest.limit):
            return 1
        return max(1, min(self._most_rows, self.budget // length))

    def _run(self, rows: Sequence[Row], decoding: Decoding) -> Iterator[Generation]:
        """Yield the texts of a batch; if it does not fit into memory, run its halves."""
        batch: Batch | None = None
        try:
            batch = or_device_full(
                lambda: Batch(self._rows, self._decode, self._ends, rows, decoding)
            )
            while not batch.is_done:
                yield from or_device_full(batch.step)
            return
        except DeviceFull as error:
            full = error.with_traceback(None)  # without the traceback, memory is freed
        batch = None
        longest = len(rows[0].prompt)
        if len(rows) == 1:
            raise NotMeasurable(
                f"{self.name}: a prompt of {longest} tokens and what follows do not fit into the "
                "device's memory; use a smaller TIDEMARK_DTYPE, or a device with more memory"
            ) from full
        self.budget = max(1, min(self.budget, len(rows) * longest // 2))
        left = [row for row in rows if not row.is_done]
        middle = max(1, len(left) // 2)
        for half in (left[:middle], left[middle:]):
            if half:
                yield from self._run(half, decoding)


class Prompted(NamedTuple):
    """A prompt as the model reads it, and the maximum number of tokens that may follow."""

    text: str
    tokens: Tokens
    limit: int


def prepare(
    identity: GenerationIdentity, model: TextModel, request: GenerationRequest, decoding: Decoding
) -> Prompted | Generation:
    """Return a request's prompt, in the chat template if there is one; or why there is no text."""
    # A chat template adds its own start tokens.
    is_chat = identity.is_chat
    filled = model.chat_text(request.prompt) if is_chat and model.chat_text else request.prompt
    ids = model.quoted_ids(filled, request.prompt, special_tokens=not is_chat)
    if ids is None:
        (tokens,) = model.tokenizer.tokenize([filled], not is_chat)
        ids = tokens.ids
    if len(ids) == 0 and model.start_token is not None:
        ids = np.array([model.start_token], dtype=np.int64)
    limit = identity.room(len(ids), decoding)
    if len(ids) == 0 or limit is None:
        return Generation(request.key, "", "error", 0, "too_long" if len(ids) else "empty")
    return Prompted(filled, ids, limit)


def _kept_tokens(tokenizer: Any) -> frozenset[str]:
    """Return the control tokens that mark reasoning, which stay in texts until it is removed."""
    special = [str(token) for token in tokenizer.added_tokens_decoder.values() if token.special]
    return thinking_tokens([*special, *map(str, tokenizer.all_special_tokens)])


def decode_of(tokenizer: Any) -> Decode:
    """Return a function that decodes tokens, without control tokens other than of reasoning."""
    kept = _kept_tokens(tokenizer)
    if not kept:
        return partial(_decode, tokenizer)
    special = {key for key, token in tokenizer.added_tokens_decoder.items() if token.special}
    removed = special.union(tokenizer.all_special_ids)
    removed.difference_update(tokenizer.convert_tokens_to_ids(sorted(kept)))
    return partial(_decode_with_marks, tokenizer, frozenset(removed))


def _decode(tokenizer: Any, tokens: Sequence[int]) -> str:
    with explained():
        return str(tokenizer.decode(tokens, skip_special_tokens=True))


def _decode_with_marks(tokenizer: Any, removed: frozenset[int], tokens: Sequence[int]) -> str:
    left = [token for token in tokens if token not in removed]
    with explained():
        return str(tokenizer.decode(left, skip_special_tokens=False))
