"""The stepwise pass: run a causal model one token at a time, as decoding requires.

A decoder needs a token's probabilities before it knows the token. So a decoder cannot run a window
in one pass. The logits of a stepwise pass differ in their last bits from those of a pass over the
whole window. Even a difference in the last bit makes decoding fail. So the encoder runs the same
steps as the decoder, with the same array shapes, through the same code.

Chunks are coded in groups; each chunk is one row of a batch. A finished row still reads token 0 at
each step. So the number of rows is the same at all steps of a group.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import PreTrainedModel

from core.errors import ModelLoadError, NotMeasurable
from extras.codec.arithmetic import ArithmeticDecoder, ArithmeticEncoder, Frequencies, Parts
from models.scoring.forward import is_close
from models.scoring.scorer import Tokens
from models.weights.files import MODEL_FAILURES
from models.weights.loading import carried_state, embedding_rows

_PROBE_TOKENS = 16
_DIGESTED_STEPS = 8
_PAD = 0  # token that finished rows read
# Number of logits whose frequencies are computed at once. More would exceed the processor's caches.
_SLICE = {"cpu": 2**18, "cuda": 2**24}

First = int | Sequence[int]  # id of the start token, or all ids that may begin a chunk
Advance = Callable[[int], None]


class StepwiseModel:
    """A causal language model that can be run token by token.

    Attributes:
        keeps_state: True if the model keeps its state between steps (KV cache or recurrent
            state), False if each step runs over all tokens so far.
        max_rows: maximum number of rows in a group, or None for any number. The maximum is 1 if the
            state works for one row only, or if each step computes the logits of all positions.
        vocabulary_size: number of logits at each position.

    Raises:
        ModelLoadError: the model does not run.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model
        ids = torch.arange(2 * _PROBE_TOKENS, device=model.device).reshape(2, -1)
        embedded = embedding_rows(model)
        ids = ids * 7 % embedded
        try:
            with torch.inference_mode():
                expected = model(input_ids=ids, use_cache=False)[0]
        except MODEL_FAILURES as error:
            raise ModelLoadError(f"the model does not run ({error!r})") from error
        self.vocabulary_size = int(expected.shape[-1])
        if self.vocabulary_size > embedded:
            raise ModelLoadError(
                f"the model predicts {self.vocabulary_size} tokens and has embeddings of "
                f"{embedded}: some that may be decoded could not be read"
            )
        self._keeps_last = "logits_to_keep" in inspect.signature(model.forward).parameters
        self.keeps_state = True
        self.max_rows: int | None = None
        if not self._agrees(ids, expected):
            self.keeps_state = self._agrees(ids[:1], expected[:1])
            self.max_rows = 1 if self.keeps_state or not self._keeps_last else None

    @property
    def device(self) -> torch.device:
        """The device that computes the logits."""
        return self._model.device

    def start(self) -> StepwiseRun:
        """Start a pass over a new group of rows."""
        return StepwiseRun(self._model, self.keeps_state, self._keeps_last)

    def _agrees(self, ids: torch.Tensor, expected: torch.Tensor) -> bool:
        """Return True if a stepwise pass gives the same logits as one pass (``expected``)."""
        run = self.start()
        try:
            found = torch.stack([run.feed(column) for column in ids.T], dim=1)
        except MODEL_FAILURES:
            return False
        tolerance = 1e-3 if expected.dtype.itemsize >= 4 else 5e-2
        return found.shape == expected.shape and is_close(found, expected, tolerance)


class StepwiseRun:
    """A stepwise pass over one group of rows."""

    def __init__(self, model: PreTrainedModel, keeps_state: bool, keeps_last: bool) -> None:
        self._model = model
        self._keeps_state = keeps_state
        self._last: dict[str, int] = {"logits_to_keep": 1} if keeps_last else {}
        self._carried: dict[str, Any] = {}
        self._read: list[torch.Tensor] = []

    @torch.inference_mode()
    def feed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Read a token per row, int64 (rows,); return the next one's logits, (rows, vocabulary)."""
        if self._keeps_state:
            output = self._model(input_ids=tokens[:, None], use_cache=True, **self._carried)
            self._carried = carried_state(self._model, output)
        else:
            self._read.append(tokens)
            prefix = torch.stack(self._read, dim=1)
            output = self._model(input_ids=prefix, use_cache=False, **self._last)
        logits: torch.Tensor = output.logits[:, -1]
        return logits


class CodedChunk(NamedTuple):
    """A chunk's code, and the length that the model's probabilities predict."""

    code: bytes
    nats: float  # -ln of the chunk's probability, from the stepwise pass
    floored_bits: float  # bits saved because the codec's lowest probability is 2^-60


def encode_chunks(
    model: StepwiseModel, chunks: Sequence[Tokens], first: First, advance: Advance
) -> list[CodedChunk]:
    """Code a group of chunks, each independently; a chunk has at least one token.

    ``first`` is the id of the start token, which is read but not coded. Without a start token, it
    has all ids that may begin a chunk; these have equal probabilities. ``advance`` is called after
    each step with the number of tokens that the step coded.

    Raise NotMeasurable if the model gives no finite probabilities, or if the group does not fit
    into the device's memory.
    """
    encoder = _Encoder(chunks)
    _take_steps(model, [len(chunk) for chunk in chunks], first, encoder, advance)
    return encoder.finish()


def decode_chunks(
    model: StepwiseModel, codes: Sequence[tuple[bytes, int]], first: First, advance: Advance
) -> list[Tokens]:
    """Decode a group of chunks; ``codes`` are pairs of a code and its number of tokens."""
    decoder = _Decoder([code for code, _ in codes])
    _take_steps(model, [length for _, length in codes], first, decoder, advance)
    return [np.array(tokens, dtype=np.int64) for tokens in decoder.tokens]


def _take_steps(
    model: StepwiseModel,
    lengths: Sequence[int],
    first: First,
    coder: _Encoder | _Decoder,
    advance: Advance,
) -> None:
    """Code one token of each chunk at a time, and feed it to the model."""
    run = model.start()
    fed = [first] * len(lengths) if isinstance(first, int) else []
    for position in range(max(lengths)):
        rows = [row for row, length in enumerate(lengths) if position < length]
        if position == 0 and not isinstance(first, int):
            coded = coder.code_uniform(rows, first)
        else:
            coded = _code_step(run.feed(torch.tensor(fed, device=model.device)), rows, coder)
        fed = [_PAD] * len(lengths)
        for row, token in zip(rows, coded, strict=True):
            fed[row] = token
        advance(len(rows))


def _code_step(logits: torch.Tensor, rows: Sequence[int], coder: _Encoder | _Decoder) -> list[int]:
    """Code one token of each row with the probabilities of these logits."""
    coded: list[int] = []
    for part, frequencies in _frequencies(logits, rows):
        if int(frequencies.total.min()) < 0:
            raise NotMeasurable(
                "the model computes logits that are not finite, so there are no probabilities; "
                "try another TIDEMARK_DTYPE"
            )
        coded += coder.code(part, frequencies)
    return coded


def _frequencies(
    logits: torch.Tensor, rows: Sequence[int]
) -> Iterator[tuple[Sequence[int], Frequencies]]:
    """Yield rows with their frequencies, a few rows at a time, to limit memory."""
    size = max(1, _SLICE.get(logits.device.type, 2**18) // logits.shape[1])
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        yield part, Frequencies(logits[part])


def probe_digest(model: StepwiseModel, rows: int) -> str:
    """Return a digest (16 hex digits) of the logits and frequencies of a short pass.

    A code from groups of this many rows can be decoded only where the digest is the same.
    """
    digest = hashlib.sha256()
    run = model.start()
    column = torch.arange(rows, device=model.device) * 31
    for step in range(_DIGESTED_STEPS):
        logits = run.feed((column + 17 * step + 5) % model.vocabulary_size)
        digest.update(logits.float().cpu().numpy().tobytes())
        for _, frequencies in _frequencies(logits, range(rows)):
            digest.update(frequencies.total.cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


class _Encoder:
    """Codes the next token of each given row; rows are numbered within the group."""

    def __init__(self, chunks: Sequence[Tokens]) -> None:
        self._left = [iter(chunk.tolist()) for chunk in chunks]
        self._coders = [ArithmeticEncoder() for _ in chunks]
        self._nats = np.zeros(len(chunks))
        self._floored_bits = np.zeros(len(chunks))

    def code_uniform(self, rows: Sequence[int], ids: Sequence[int]) -> list[int]:
        """Encode each row's first token, with equal probabilities for all ids."""
        tokens = [next(self._left[row]) for row in rows]
        for row, token in zip(rows, tokens, strict=True):
            place = ids.index(token)
            self._coders[row].encode(place, place + 1, len(ids))
            self._nats[row] += np.log(len(ids))
        return tokens

    def code(self, rows: Sequence[int], frequencies: Frequencies) -> list[int]:
        """Encode the next token of each row; add up nats, and bits that the floor takes off."""
        tokens = [next(self._left[row]) for row in rows]
        parts = frequencies.parts(torch.tensor(tokens, device=frequencies.total.device))
        for row, part in zip(rows, _intervals(parts, frequencies), strict=True):
            self._coders[row].encode(*part)
        nats = frequencies.nats(parts.symbols)
        share = (parts.high - parts.low).double() / frequencies.total
        self._nats[rows] += nats.cpu().numpy()
        self._floored_bits[rows] += (nats / np.log(2) + share.log2()).clamp(min=0).cpu().numpy()
        return tokens

    def finish(self) -> list[CodedChunk]:
        codes = [coder.finish() for coder in self._coders]
        return list(map(CodedChunk, codes, self._nats.tolist(), self._floored_bits.tolist()))


class _Decoder:
    def __init__(self, codes: Sequence[bytes]) -> None:
        self.tokens: list[list[int]] = [[] for _ in codes]
        self._coders = [ArithmeticDecoder(code) for code in codes]

    def code_uniform(self, rows: Sequence[int], ids: Sequence[int]) -> list[int]:
        places = [self._coders[row].position(len(ids)) for row in rows]
        for row, place in zip(rows, places, strict=True):
            self._coders[row].advance(place, place + 1, len(ids))
        return self._take(rows, [ids[place] for place in places])

    def code(self, rows: Sequence[int], frequencies: Frequencies) -> list[int]:
        """Decode the next token of each row."""
        totals = frequencies.total.tolist()
        wanted = [
            self._coders[row].position(total) for row, total in zip(rows, totals, strict=True)
        ]
        parts = frequencies.find(torch.tensor(wanted, device=frequencies.total.device))
        for row, part in zip(rows, _intervals(parts, frequencies), strict=True):
            self._coders[row].advance(*part)
        return self._take(rows, parts.symbols.tolist())

    def _take(self, rows: Sequence[int], tokens: list[int]) -> list[int]:
        for row, token in zip(rows, tokens, strict=True):
            self.tokens[row].append(token)
        return tokens


def _intervals(parts: Parts, frequencies: Frequencies) -> list[tuple[int, int, int]]:
    totals = frequencies.total.tolist()
    return list(zip(parts.low.tolist(), parts.high.tolist(), totals, strict=True))
