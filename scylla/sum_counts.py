"""How many choices of numbers have each sum. Equal numbers at two places make two choices."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def count_sums(numbers: Sequence[int], sizes: range) -> dict[int, int]:
    """Return how many choices of ``sizes`` numbers have each sum, by sum in ascending order.

    The sums of all choices of at most that many numbers are held at once, as arrays: half a million
    of four in 64, 2^16 of any number in 16.
    """
    # Python's own integers where 64 bits have no room for a sum.
    kind: type = np.int64 if sum(numbers) < 2**63 else object
    sums_of_size: list[Array] = [np.zeros(1, dtype=kind)]
    sums_of_size += [np.zeros(0, dtype=kind) for _ in range(sizes[-1])]
    for number in numbers:
        for size in range(sizes[-1], 0, -1):
            bigger = sums_of_size[size - 1] + number
            sums_of_size[size] = np.concatenate([sums_of_size[size], bigger])
    chosen = np.concatenate([sums_of_size[size] for size in sizes])
    sums, counts = np.unique(chosen, return_counts=True)
    return dict(zip(sums.tolist(), counts.tolist(), strict=True))


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
