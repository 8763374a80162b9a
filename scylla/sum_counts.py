"""How many choices of numbers have each sum. Equal numbers at two places make two choices."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

_MASK_BITS = 16  # the longest list whose 2^N subsets are all held at once

Array = np.ndarray[Any, np.dtype[Any]]


def count_sums(numbers: Sequence[int], sizes: range) -> dict[int, int]:
    """Return how many choices of ``sizes`` numbers have each sum, by sum in ascending order.

    Of few numbers that are taken together, as in pairs, sums are added up number by number: in
    O(N s D) for up to s of N numbers with D different sums. Where many are taken the sums of all
    2^N subsets come faster, as one array.
    """
    if sizes[-1] > 3 and len(numbers) <= _MASK_BITS:
        sums, counts = _sums_of_masks(numbers, sizes)
        return dict(zip(sums, counts, strict=True))
    counts_of_size = [Counter({0: 1})] + [Counter[int]() for _ in range(sizes[-1])]
    for number in numbers:
        for size in range(sizes[-1], 0, -1):
            bigger = counts_of_size[size]
            for total, count in counts_of_size[size - 1].items():
                bigger[total + number] += count
    summed: Counter[int] = sum((counts_of_size[size] for size in sizes), Counter())
    return dict(sorted(summed.items()))


def count_remainders(numbers: Sequence[int], most: int, divisor: int) -> list[list[int]]:
    """Return, by size up to ``most`` and by remainder, how many choices have such a sum."""
    counts = [[0] * divisor for _ in range(most + 1)]
    counts[0][0] = 1
    for number in numbers:
        shift = number % divisor
        for size in range(most, 0, -1):
            smaller = counts[size - 1]
            shifted = smaller[-shift:] + smaller[:-shift] if shift else smaller
            counts[size] = list(map(operator.add, counts[size], shifted))
    return counts


def _sums_of_masks(numbers: Sequence[int], sizes: range) -> tuple[list[int], list[int]]:
    # Python's own integers where 64 bits have no room for a sum.
    kind: type = np.int64 if sum(numbers) < 2**63 else object
    sums: Array = np.zeros(1, dtype=kind)
    for number in numbers:
        sums = np.concatenate([sums, sums + number])
    chosen = sums[_masks_of(len(numbers), sizes)]
    distinct, counts = np.unique(chosen, return_counts=True)
    return distinct.tolist(), counts.tolist()


@functools.lru_cache(maxsize=64)
def _masks_of(num_bits: int, sizes: range) -> Array:
    """Return the numbers of ``num_bits`` bits in which as many are set as a choice takes."""
    bits: Array = np.zeros(1, dtype=np.int64)
    for _ in range(num_bits):
        bits = np.concatenate([bits, bits + 1])
    return np.flatnonzero((bits >= sizes[0]) & (bits <= sizes[-1]))
