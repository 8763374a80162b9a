"""Arithmetic coding: probabilities into bytes and back, without loss.

Each symbol takes its share of an interval of integers, whose place is then written down with about
as many bits as the shares multiply to (Rissanen & Langdon 1979). Shares are integers, too: both
sides must cut the interval at the very same points.

The interval is kept in 96 bits and is never narrower than 88; shares are parts of a total below
2^62. So a cut is off by less than one part in 2^26 of the narrowest share, and a vocabulary of
hundreds of thousands of tokens loses nothing that could be measured.
"""

from __future__ import annotations

from typing import NamedTuple

import torch

from core.errors import UsageError

MAX_TOTAL = 2**62

_WIDTH = 96  # bits of the interval
_TOP = 1 << _WIDTH
_LEAST = 1 << (_WIDTH - 8)  # narrower than this, the interval gives off a byte
_SCALE = 2.0**60  # of frequencies: the floor of one is a probability of 2^-60
_BLOCK = 256  # symbols whose frequencies are summed at once


class ArithmeticEncoder:
    """Codes symbols, each given as its part [low, high) of a total."""

    def __init__(self) -> None:
        self._low, self._range = 0, _TOP
        self._bytes = bytearray()

    def encode(self, low: int, high: int, total: int) -> None:
        """Narrow the interval to a symbol's part.

        Raises:
            UsageError: not 0 <= low < high <= total <= 2^62; nothing could be decoded again.
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
        """Return the shortest bytes that decode to what was encoded.

        The decoder takes what follows the bytes for zeros, so trailing zeros are left out.
        """
        for bits in range(_WIDTH, -1, -8):
            place = -(-self._low >> bits) << bits  # the next one with so many zeros at its end
            if place < self._low + self._range:
                break
        if place >= _TOP:
            self._carry()
        self._bytes += (place % _TOP).to_bytes(_WIDTH // 8, "big")
        return bytes(self._bytes.rstrip(b"\0"))

    def _carry(self) -> None:
        """Add one to the number that the bytes so far spell."""
        position = len(self._bytes) - 1
        while self._bytes[position] == 0xFF:
            self._bytes[position] = 0
            position -= 1
        self._bytes[position] += 1


class ArithmeticDecoder:
    """Undoes an :class:`ArithmeticEncoder`; any bytes decode to something.

    Args:
        data: what ``finish`` returned.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = _WIDTH // 8
        head = data[: self._position]
        self._offset = int.from_bytes(head.ljust(self._position, b"\0"), "big")  # above low
        self._range = _TOP

    def position(self, total: int) -> int:
        """Return a number in [0, total): the next symbol is the one whose part it lies in."""
        return ((self._offset + 1) * total - 1) // self._range

    def advance(self, low: int, high: int, total: int) -> None:
        """Narrow the interval to the part that ``position`` was found to lie in."""
        start = self._range * low // total
        self._offset -= start
        self._range = self._range * high // total - start
        while self._range < _LEAST:
            following = self._data[self._position : self._position + 1]
            self._offset = (self._offset << 8) | (following[0] if following else 0)
            self._position += 1
            self._range <<= 8


class Parts(NamedTuple):
    """Symbols of several rows, each with its part of its row's total; all int64 (rows,)."""

    symbols: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor


class Frequencies:
    """Integer frequencies in proportion to the softmax of logits, none below one.

    Sums of integers do not depend on their order: wherever two machines agree on the frequencies,
    they agree on every part. The softmax is computed in float64.

    Args:
        logits: of any float dtype, (rows, vocabulary); -inf is a frequency of one.

    Attributes:
        total: their sum, int64 (rows,); below 2^62. Negative where logits were NaN or +inf.
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
        self._ends = self._counts.sum(-1).cumsum(-1)  # of blocks
        self.total = self._ends[:, -1].where(self._sum[:, 0].isfinite(), -1)

    def parts(self, symbols: torch.Tensor) -> Parts:
        """Return the part of one symbol a row; int64 (rows,)."""
        begin, ends = self._within(symbols // _BLOCK)
        place = (symbols % _BLOCK)[:, None]
        high = ends.gather(1, place)
        low = torch.where(place > 0, ends.gather(1, (place - 1).clamp(min=0)), begin)
        return Parts(symbols, low[:, 0], high[:, 0])

    def find(self, positions: torch.Tensor) -> Parts:
        """Return the symbols whose parts the positions lie in; int64 (rows,), each below total."""
        wanted = positions[:, None]
        blocks = torch.searchsorted(self._ends, wanted, right=True)[:, 0]
        _, ends = self._within(blocks)
        places = torch.searchsorted(ends, wanted, right=True)[:, 0]
        return self.parts(blocks * _BLOCK + places)

    def nats(self, symbols: torch.Tensor) -> torch.Tensor:
        """Return -ln softmax(logits) at one symbol a row; float64 (rows,)."""
        chosen = self._logits.gather(1, symbols[:, None]).double()
        return (self._sum.log() + self._highest - chosen)[:, 0]

    def _within(self, blocks: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Where one block a row begins (rows, 1), and where its symbols' parts end."""
        rows = torch.arange(len(blocks), device=blocks.device)
        own = self._counts[rows, blocks]
        begin = (self._ends[rows, blocks] - own.sum(-1))[:, None]
        return begin, begin + own.cumsum(-1)
