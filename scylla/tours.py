"""Shortest tours through cities, by dynamic programming over sets of cities (Held, Karp 1962)."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from scylla.puzzle import Answer, Rows

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class ShortestTours:
    """The shortest tours from city 0 and back.

    Attributes:
        length: of each.
        count: a tour and the same one backwards are two.
        tour: one of them; begins and ends with 0.
    """

    length: int
    count: int
    tour: Answer


@functools.lru_cache(maxsize=4096)
def find_shortest_tours(rows: Rows) -> ShortestTours:
    """Return the shortest tours through n cities, in O(2^n n^2) time and O(2^n n) memory.

    Args:
        rows: n by n distances, three cities at least; row i has those from city i.
    """
    num_others = len(rows) - 1
    # Longer than any path. Python's own integers where 64 bits have no room for it.
    endless = len(rows) * max(map(max, rows)) + 1
    kind: type = np.int64 if 2 * endless < 2**63 else object
    distances: Array = np.array(rows, dtype=kind)
    between, home = distances[1:, 1:], distances[1:, 0]
    # Of the paths from city 0 through a set of others that end at one of these.
    lengths: Array = np.full((1 << num_others, num_others), endless, dtype=kind)
    counts: Array = np.zeros((1 << num_others, num_others), dtype=np.int64)
    for city in range(num_others):
        lengths[1 << city, city] = distances[0, city + 1]
        counts[1 << city, city] = 1
    for city, before, after in _steps(num_others):
        extended = lengths[before] + between[:, city]
        least = extended.min(axis=1)
        lengths[after, city] = least
        counts[after, city] = (counts[before] * (extended == least[:, None])).sum(axis=1)
    closed = lengths[-1] + home
    length = int(closed.min())
    count = int(counts[-1][closed == length].sum())
    return ShortestTours(length, count, _walk_back(lengths, between, closed))


def length_of(tour: Answer, rows: Rows) -> int:
    """Return how long a tour is."""
    return sum(rows[city][following] for city, following in zip(tour, tour[1:], strict=False))


def _walk_back(lengths: Array, between: Array, closed: Array) -> Answer:
    """Return the tour whose last city makes ``closed`` shortest."""
    cities = (1 << len(closed)) - 1
    city = int(closed.argmin())
    tour = [0, city + 1]
    while cities != 1 << city:
        cities ^= 1 << city
        city = int((lengths[cities] + between[:, city]).argmin())
        tour.append(city + 1)
    return (*tour, 0)


@functools.lru_cache(maxsize=16)
def _steps(num_others: int) -> list[tuple[int, Array, Array]]:
    """Return by which city which sets (as masks) grow into which, the small sets first."""
    masks = np.arange(1 << num_others)
    sizes = np.array([mask.bit_count() for mask in range(1 << num_others)])
    steps = []
    for size in range(1, num_others):
        for city in range(num_others):
            before = masks[(sizes == size) & (masks >> city & 1 == 0)]
            steps.append((city, before, before | 1 << city))
    return steps
