"""Arithmetic coding: convert symbols with known probabilities to bytes and back, without loss.

Each symbol narrows an interval of integers in proportion to the symbol's probability. The code is a
number in the last interval, of about -log2 P bits; P is the product of the symbols' probabilities
(Rissanen & Langdon 1979). A probability is a part [low, high) of an integer total. With integers,
encoder and decoder narrow the interval to exactly the same bounds.

The interval's width is between 2^88 and 2^96, and a total is at most 2^62. So rounding a bound
changes even the narrowest part by less than 2^-26 of its width. So the code hardly grows.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from core.errors import UsageError

MAX_TOTAL = 2**62

_WIDTH = 96  # bits of the widest interval
_TOP = 1 << _WIDTH
_LEAST = 1 << (_WIDTH - 8)  # if the interval is narrower, the encoder outputs a byte
_SCALE = 2.0**60  # approximate sum of all frequencies; frequency 1 is a probability of 2^-60
_BLOCK = 256  # number of symbols whose frequencies are summed at once


class ArithmeticEncoder:
    """Encodes symbols; each symbol is given as its part [low, high) of a total."""

    def __init__(self) -> None:
        self._low = 0
        self._range = _TOP
        self._bytes = bytearray()

    def encode(self, low: int, high: int, total: int) -> None:
        """Narrow the interval to a symbol's part.

        Raise UsageError unless 0 <= low < high <= total <= 2^62: the code could not be decoded.
        """
        if not 0 <= low < high <= total <= MAX_TOTAL:
            raise UsageError(f"[{low}, {high}) is no part of {total}; expected at most 2^62")
        start = self._range * low // total
        self._range = self._range * high // total - start
        self._low += start
        if self._low >= _TOP:
            self._low -= _TOP
            self._carry()
        while self._range < _LEAST:
            self._bytes.append(self._low >> (_WIDTH - 8))
            self._low = (self._low << 8) % _TOP
            self._range <<= 8

    def finish(self) -> bytes:
        """Return the shortest bytes that decode to the encoded symbols.

        Trailing zero bytes are omitted, because the decoder reads zeros after the last byte.
        """
        for bits in range(_WIDTH, -1, -8):
            place = -(-self._low >> bits) << bits  # rounded up to ``bits`` zero bits
            if place < self._low + self._range:
                break
        if place >= _TOP:
            self._carry()
        self._bytes += (place % _TOP).to_bytes(_WIDTH // 8, "big")
        return bytes(self._bytes.rstrip(b"\0"))

    def _carry(self) -> None:
        """Add one to the number that the output bytes form."""
        position = len(self._bytes) - 1
        while self._bytes[position] == 0xFF:
            self._bytes[position] = 0
            position -= 1
        self._bytes[position] += 1


class ArithmeticDecoder:
    """Decodes the bytes of an :class:`ArithmeticEncoder`; wrong bytes give wrong symbols."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = _WIDTH // 8
        head = data[: self._position]
        self._offset = int.from_bytes(head.ljust(self._position, b"\0"), "big")  # minus ``low``
        self._range = _TOP

    def position(self, total: int) -> int:
        """Return a number in [0, total) that lies in the part [low, high) of the next symbol."""
        return ((self._offset + 1) * total - 1) // self._range

    def advance(self, low: int, high: int, total: int) -> None:
        """Narrow the interval to the decoded symbol's part, which contains ``position(total)``."""
        start = self._range * low // total
        self._offset -= start
        self._range = self._range * high // total - start
        while self._range < _LEAST:
            following = self._data[self._position : self._position + 1]
            self._offset = (self._offset << 8) | (following[0] if following else 0)
            self._position += 1
            self._range <<= 8


class Parts(NamedTuple):
    """One symbol per row, with its part [low, high) of the row's total; all int64 (rows,)."""

    symbols: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor


class Frequencies:
    """Integer frequencies of symbols, proportional to the softmax of logits and at least one.

    Sums of integers do not depend on their order. So two machines with equal frequencies have equal
    parts for all symbols. The softmax is computed in float64.

    Args:
        logits: any float dtype, (rows, vocabulary); a logit of -inf gives a frequency of one.

    Attributes:
        total: sum of each row, int64 (rows,), below 2^62; negative if a logit is NaN or +inf.
    """

    def __init__(self, logits: torch.Tensor) -> None:
        rows, vocabulary = logits.shape
        self._logits = logits
        self._highest = logits.amax(-1, keepdim=True).double()
        weights = (logits.double() - self._highest).exp_()
        self._sum = weights.sum(-1, keepdim=True)
        weights *= _SCALE / self._sum
        weights += 1
        num_blocks = -(-vocabulary // _BLOCK)
        counts = weights.new_empty((rows, num_blocks * _BLOCK), dtype=torch.int64)
        counts[:, :vocabulary] = weights  # rounded down
        counts[:, vocabulary:] = 0
        self._counts = counts.view(rows, num_blocks, _BLOCK)
        self._ends = self._counts.sum(-1).cumsum(-1)  # sum of frequencies up to each block's end
        self.total = self._ends[:, -1].where(self._sum[:, 0].isfinite(), -1)

    def parts(self, symbols: torch.Tensor) -> Parts:
        """Return the parts of one symbol per row; ``symbols`` is int64 (rows,)."""
        begin, ends = self._within(symbols // _BLOCK)
        place = (symbols % _BLOCK)[:, None]
        high = ends.gather(1, place)
        low = torch.where(place > 0, ends.gather(1, (place - 1).clamp(min=0)), begin)
        return Parts(symbols, low[:, 0], high[:, 0])

    def find(self, positions: torch.Tensor) -> Parts:
        """Return each row's symbol whose part contains the position; int64 (rows,), below total."""
        wanted = positions[:, None]
        blocks = torch.searchsorted(self._ends, wanted, right=True)[:, 0]
        _, ends = self._within(blocks)
        places = torch.searchsorted(ends, wanted, right=True)[:, 0]
        return self.parts(blocks * _BLOCK + places)

    def nats(self, symbols: torch.Tensor) -> torch.Tensor:
        """Return -ln softmax(logits) at one symbol per row; float64 (rows,)."""
        chosen = self._logits.gather(1, symbols[:, None]).double()
        return (self._sum.log() + self._highest - chosen)[:, 0]

    def _within(self, blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return sums of frequencies before each row's block, and up to each of its symbols."""
        rows = torch.arange(len(blocks), device=blocks.device)
        own = self._counts[rows, blocks]
        begin = (self._ends[rows, blocks] - own.sum(-1))[:, None]
        return begin, begin + own.cumsum(-1)
