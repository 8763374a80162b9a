"""The stepwise pass: a causal model fed one token at a time, as a decoder must.

A decoder knows a token only after it has the probabilities before it, so it cannot run a window in
one pass. The logits of a stepwise pass differ from those of a pass over the whole window in their
last bits, which is enough to make a code unreadable: so the encoder takes the very same steps, with
the very same shapes, through the very same code.

Chunks are coded in groups, one row each. A row that is finished goes on being fed token 0, so that
the shapes of a step follow from the chunks' numbers of tokens alone.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from transformers import PreTrainedModel

from core.errors import ModelLoadError, NotMeasurable
from models.arithmetic import ArithmeticDecoder, ArithmeticEncoder, Frequencies, Parts
from models.backend import Tokens
from models.checkpoint import embedding_rows
from models.failures import MODEL_FAILURES

# How outputs name what a model carries from one token to the next, and how inputs take it.
_STATES = ("past_key_values", "cache_params", "state")
_PROBE_TOKENS = 16
_DIGESTED_STEPS = 8
_PAD = 0  # fed to rows that are finished
# Logits whose frequencies are worked out at once: more would leave a processor's caches.
_SLICE = {"cpu": 2**18, "cuda": 2**24}

First = int | Sequence[int]  # the start token, or the ids of which any may come first
Advance = Callable[[int], None]


class StepwiseModel:
    """A causal language model that can be fed token by token.

    Args:
        model: in evaluation mode, on its device.

    Attributes:
        keeps_state: whether the model carries its state from step to step (KV cache, recurrent
            state); if not, each step runs over all tokens so far.
        max_rows: most rows in a group; None is any number. Some models carry a state for one row
            alone, and some return the logits of all positions, which must fit into memory.
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
        """Where the logits are."""
        return self._model.device

    def start(self) -> StepwiseRun:
        """Begin a group of rows, with nothing read."""
        return StepwiseRun(self._model, self.keeps_state, self._keeps_last)

    def _agrees(self, ids: torch.Tensor, expected: torch.Tensor) -> bool:
        """Whether steps that carry the state give what a pass over the whole does."""
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
        """Read one token a row, int64 (rows,); return the logits after it, (rows, vocabulary)."""
        if self._keeps_state:
            output = self._model(input_ids=tokens[:, None], use_cache=True, **self._carried)
            self._carried = _carried(output)
        else:
            self._read.append(tokens)
            prefix = torch.stack(self._read, dim=1)
            output = self._model(input_ids=prefix, use_cache=False, **self._last)
        logits: torch.Tensor = output.logits[:, -1]
        return logits


def _carried(output: Any) -> dict[str, Any]:
    for name in _STATES:
        if getattr(output, name, None) is not None:
            return {name: getattr(output, name)}
    raise LookupError("the model returns no state")


class CodedChunk(NamedTuple):
    """A chunk's code, and what it should cost."""

    code: bytes
    nats: float  # -ln of the probabilities that the steps gave
    floored_bits: float  # by how much the code is shorter: no token is rarer than 2^-60


class _Coder(Protocol):
    """One side's part in the steps; rows count from 0 within the group."""

    def code_uniform(self, rows: Sequence[int], ids: Sequence[int]) -> list[int]:
        """Code one token a row, all ids alike; return the tokens."""

    def code(self, rows: Sequence[int], frequencies: Frequencies) -> list[int]:
        """Code one token a row by frequencies whose rows are those of ``rows``."""


def encode_chunks(
    model: StepwiseModel, chunks: Sequence[Tokens], first: First, advance: Advance
) -> list[CodedChunk]:
    """Code a group of chunks, each by itself.

    Args:
        model: gives the probabilities.
        chunks: int64 tokens of each; at least one.
        first: the start token, which is read but not coded; or, where there is none, the ids any
            of which may be a chunk's first token, with equal probabilities.
        advance: called at each step with the number of tokens coded in it.

    Raises:
        NotMeasurable: the model gives no finite probabilities, or the group does not fit into the
            device's memory.
    """
    encoder = _Encoder(chunks)
    _take_steps(model, [len(chunk) for chunk in chunks], first, encoder, advance)
    return encoder.finish()


def decode_chunks(
    model: StepwiseModel,
    codes: Sequence[tuple[bytes, int]],
    first: First,
    advance: Advance,
) -> list[Tokens]:
    """Undo ``encode_chunks``; codes come with their numbers of tokens.

    Raises:
        NotMeasurable: as ``encode_chunks``.
    """
    decoder = _Decoder([code for code, _ in codes])
    _take_steps(model, [length for _, length in codes], first, decoder, advance)
    return [np.array(tokens, dtype=np.int64) for tokens in decoder.tokens]


def _take_steps(
    model: StepwiseModel,
    lengths: Sequence[int],
    first: First,
    coder: _Coder,
    advance: Advance,
) -> None:
    """Feed the model and code what comes after, until every row has its number of tokens."""
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


def _code_step(logits: torch.Tensor, rows: Sequence[int], coder: _Coder) -> list[int]:
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
    """Work out the frequencies of some rows, a few at a time."""
    size = max(1, _SLICE.get(logits.device.type, 2**18) // logits.shape[1])
    for begin in range(0, len(rows), size):
        part = rows[begin : begin + size]
        yield part, Frequencies(logits[part])


def probe_digest(model: StepwiseModel, rows: int) -> str:
    """Return 16 hex digits over all floats of a short pass, and over the frequencies from them.

    Where they differ, a code of such groups cannot be read.

    Args:
        model: takes the steps.
        rows: in the group, as in the file.
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
