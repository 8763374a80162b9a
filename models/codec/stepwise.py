"""The stepwise pass: run a causal model one token at a time, as decoding requires.

A decoder needs a token's probabilities before it knows the token. So it cannot run a window in
one pass. The logits of a stepwise pass differ in their last bits from those of a pass over the
whole window. Even such a difference makes a code unreadable. So the encoder runs the same steps,
with the same shapes, through the same code.

Chunks are coded in groups, one row each. A finished row still reads token 0 at each step. So the
shapes of a step depend only on the chunks' numbers of tokens.
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
from models.codec.arithmetic import ArithmeticDecoder, ArithmeticEncoder, Frequencies, Parts
from models.scoring.scorer import Tokens
from models.weights.files import MODEL_FAILURES
from models.weights.loading import carried_state, embedding_rows

_PROBE_TOKENS = 16
_DIGESTED_STEPS = 8
_PAD = 0  # input of finished rows
# Number of logits whose frequencies are computed at once; more would exceed a processor's caches.
_SLICE = {"cpu": 2**18, "cuda": 2**24}

First = int | Sequence[int]  # the start token, or the ids that may come first
Advance = Callable[[int], None]


class StepwiseModel:
    """A causal language model that can be run token by token.

    Attributes:
        keeps_state: True if the model carries its state from step to step (KV cache, recurrent
            state); otherwise each step runs over all tokens so far.
        max_rows: most rows in a group; None is any number. Some models carry state for one row
            only. Some return the logits of all positions, which must fit into memory.
        vocabulary_size: logits at each position.

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
        """The device of the logits."""
        return self._model.device

    def start(self) -> StepwiseRun:
        """Start a group of rows that have read no token."""
        return StepwiseRun(self._model, self.keeps_state, self._keeps_last)

    def _agrees(self, ids: torch.Tensor, expected: torch.Tensor) -> bool:
        """Return True if steps that carry state agree with a pass over all tokens."""
        run = self.start()
        try:
            found = torch.stack([run.feed(column) for column in ids.T], dim=1)
        except MODEL_FAILURES:
            return False
        tolerance = 1e-3 if expected.dtype.itemsize >= 4 else 5e-2
        scale = float(expected.abs().nan_to_num(0.0, 0.0, 0.0).max())
        return found.shape == expected.shape and torch.allclose(
            found, expected, rtol=0, atol=tolerance * scale, equal_nan=True
        )


class StepwiseRun:
    """The steps of one group of rows."""

    def __init__(self, model: PreTrainedModel, keeps_state: bool, keeps_last: bool) -> None:
        self._model = model
        self._keeps_state = keeps_state
        self._last: dict[str, Any] = {"logits_to_keep": 1} if keeps_last else {}
        self._carried: dict[str, Any] = {}
        self._read: list[torch.Tensor] = []

    @torch.inference_mode()
    def feed(self, tokens: torch.Tensor) -> torch.Tensor:
        """Read one token per row, int64 (rows,); return the next logits, (rows, vocabulary)."""
        if self._keeps_state:
            output = self._model(input_ids=tokens[:, None], use_cache=True, **self._carried)
            self._carried = carried_state(output)
        else:
            self._read.append(tokens)
            prefix = torch.stack(self._read, dim=1)
            output = self._model(input_ids=prefix, use_cache=False, **self._last)
        logits: torch.Tensor = output.logits[:, -1]
        return logits


class CodedChunk(NamedTuple):
    """A chunk's code and its predicted cost."""

    code: bytes
    nats: float  # -ln of the probabilities computed by the steps
    floored_bits: float  # bits saved because the codec's least probability is 2^-60


def encode_chunks(
    model: StepwiseModel, chunks: Sequence[Tokens], first: First, advance: Advance
) -> list[CodedChunk]:
    """Code a group of chunks, each independently.

    Args:
        model: gives the probabilities.
        chunks: int64 tokens of each; at least one.
        first: the start token, which is read but not coded. Without a start token, the ids that may
            come first in a chunk, with equal probabilities.
        advance: called at each step with the number of tokens coded in it.

    Raise NotMeasurable if the model gives no finite probabilities, or if the group does not fit
    into the device's memory.
    """
    encoder = _Encoder(chunks)
    _take_steps(model, [len(chunk) for chunk in chunks], first, encoder, advance)
    return encoder.finish()


def decode_chunks(
    model: StepwiseModel, codes: Sequence[tuple[bytes, int]], first: First, advance: Advance
) -> list[Tokens]:
    """Reverse ``encode_chunks``; each code comes with its number of tokens."""
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
    """Run steps and code the next tokens until every row has its number of tokens."""
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
    coded: list[int] = []
    for part, frequencies in _frequencies(logits, rows):
        if int(frequencies.total.min()) < 0:
            raise NotMeasurable(
                "the model gives logits that are not finite, so its probabilities code nothing; "
                "try another TIDEMARK_DTYPE"
            )
        coded += coder.code(part, frequencies)
    return coded


def _frequencies(
    logits: torch.Tensor, rows: Sequence[int]
) -> Iterator[tuple[Sequence[int], Frequencies]]:
    """Compute the frequencies of the given rows, a few rows at a time."""
    size = max(1, _SLICE.get(logits.device.type, 2**18) // logits.shape[1])
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        yield part, Frequencies(logits[part])


def probe_digest(model: StepwiseModel, rows: int) -> str:
    """Return 16 hex digits over all floats of a short pass, and over the frequencies from them.

    A code of such groups cannot be read on a machine with another digest.
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
    """The encoder's part of a step: codes one token per row; row numbers count in the group."""

    def __init__(self, chunks: Sequence[Tokens]) -> None:
        self._left = [iter(chunk.tolist()) for chunk in chunks]
        self._coders = [ArithmeticEncoder() for _ in chunks]
        self._nats = np.zeros(len(chunks))
        self._floored_bits = np.zeros(len(chunks))

    def code_uniform(self, rows: Sequence[int], ids: Sequence[int]) -> list[int]:
        tokens = [next(self._left[row]) for row in rows]
        for row, token in zip(rows, tokens, strict=True):
            place = ids.index(token)
            self._coders[row].encode(place, place + 1, len(ids))
            self._nats[row] += np.log(len(ids))
        return tokens

    def code(self, rows: Sequence[int], frequencies: Frequencies) -> list[int]:
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
