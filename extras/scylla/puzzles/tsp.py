"""Find the shortest tour through all cities.

Validity: 4 to 10 cities; a symmetric matrix of distances, which are 0 only on the diagonal; exactly
one shortest tour (both directions of a tour count as one).
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extras.scylla.puzzle import Answer, Instance, Puzzle, Rows
from extras.scylla.sampling import substitute
from extras.scylla.texts import parse_matrix, render_matrix


class Tsp(Puzzle):
    """The travelling salesperson problem, solved with Held and Karp's algorithm."""

    title = "Traveling Salesman Problem"
    statement = (
        "You are given a number of cities $n$, numbered from 0 to $n-1$, and an $n$ by $n$ matrix "
        "$D$ of distances: the number in row $i$ and column $j$ is the distance from city $i$ to "
        "city $j$. Find the shortest tour: it starts at city 0, visits every other city exactly "
        "once, and returns to city 0."
    )
    answer_rule = (
        "Write the answer as the list of the cities in the order of the visit, in square brackets, "
        "separated by commas; it begins and ends with 0."
    )
    level = 5
    complexity = "O(2^N N^2)"
    input_shape = "matrix"
    min_length = 4
    max_length = 10
    universe = range(100, 1000)

    def render(self, instance: Instance) -> str:
        """Return the number of cities and the matrix as text."""
        return render_matrix(instance.rows)

    def parse(self, text: str) -> Instance:
        """Return the input from a text of ``render``."""
        return Instance(parse_matrix(text))

    def is_valid(self, rows: Rows) -> bool:
        """Return True if exactly one tour is shortest, with both directions counted as one."""
        return _is_distances(rows) and find_shortest_tours(rows).count <= 2

    def solve(self, instance: Instance) -> Answer:
        """Extend shortest paths to larger and larger sets of cities, O(2^N N^2)."""
        return find_shortest_tours(instance.rows).tour

    def accepts(self, instance: Instance, answer: Answer) -> bool:
        """Return True if the answer is a shortest tour from city 0, in either direction."""
        rows = instance.rows
        return (
            len(answer) == len(rows) + 1
            and answer[0] == answer[-1] == 0
            and sorted(answer[1:]) == list(range(len(rows)))
            and sum(rows[city][following] for city, following in itertools.pairwise(answer))
            == find_shortest_tours(rows).length
        )

    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Make the matrix symmetric with zero diagonal; if it already is, replace a distance."""
        lengths = [number for number in elements if number > 0]
        if not lengths:
            return rows
        size = len(rows)
        pairs = list(itertools.combinations(range(size), 2))
        again = rng.choice(pairs) if _is_distances(rows) else None
        mended = [[0] * size for _ in range(size)]
        for i, j in pairs:
            written = [number for number in (rows[i][j], rows[j][i]) if number > 0]
            drawn = rng.choice(written if written and (i, j) != again else lengths)
            mended[i][j] = mended[j][i] = drawn
        return tuple(map(tuple, mended))

    def transfer(self, rows: Rows, universe: Sequence[int], rng: random.Random) -> Rows | None:
        """Replace equal distances by equal nonzero numbers; keep the diagonal."""
        values = sorted({number for row in rows for number in row} - {0})
        images = substitute(values, [number for number in universe if number > 0], rng)
        if images is None:
            return None
        images[0] = 0
        return tuple(tuple(images[number] for number in row) for row in rows)


def _is_distances(rows: Rows) -> bool:
    """Return True if a square matrix is symmetric, with zeros on its diagonal and only there."""
    size = range(len(rows))
    return all(
        rows[i][j] == rows[j][i] and (rows[i][j] == 0) == (i == j) for i in size for j in size
    )


Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class ShortestTours:
    """The shortest tours from city 0 back to city 0."""

    length: int  # length of each shortest tour
    count: int  # number of shortest tours; the two directions of a tour count as two
    tour: Answer  # one shortest tour; begins and ends with 0


@functools.lru_cache(maxsize=4096)
def find_shortest_tours(rows: Rows) -> ShortestTours:
    """Return the shortest tours through n >= 3 cities, in O(2^n n^2) time and O(2^n n) memory."""
    num_others = len(rows) - 1
    # No path is as long as ``endless``. Use Python integers if lengths may exceed 64 bits.
    endless = len(rows) * max(map(max, rows)) + 1
    kind: type = np.int64 if 2 * endless < 2**63 else object
    distances: Array = np.array(rows, dtype=kind)
    between = distances[1:, 1:]
    home = distances[1:, 0]
    # Shortest paths from city 0 through a set of cities; index: set (bit mask), last city.
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


def _walk_back(lengths: Array, between: Array, closed: Array) -> Answer:
    """Return a shortest tour; ``closed``: length of the best tour with each last city."""
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
    """Return cities, each with the sets (bit masks) without it and with it; small sets first."""
    masks = np.arange(1 << num_others)
    sizes = np.array([mask.bit_count() for mask in range(1 << num_others)])
    steps = []
    for size in range(1, num_others):
        for city in range(num_others):
            before = masks[(sizes == size) & (masks >> city & 1 == 0)]
            steps.append((city, before, before | 1 << city))
    return steps


PUZZLE = Tsp()
