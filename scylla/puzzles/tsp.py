"""Find the shortest tour through all cities.

Validity: 4 to 10 cities; distances are the same in both directions, 0 from a city to itself and
nowhere else; one tour alone is shortest, which is two as it may be walked in either direction.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

from scylla.input_text import parse_matrix, render_matrix
from scylla.puzzle import Answer, Instance, Puzzle, Rows
from scylla.substitution import substitute
from scylla.tours import find_shortest_tours, length_of


class Tsp(Puzzle):
    """The travelling salesperson's tour, from city 0; by Held and Karp."""

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
        """Return the number of cities and the matrix."""
        return render_matrix(instance.rows)

    def parse(self, text: str) -> Instance:
        """Return the input of a text that ``render`` gave.

        Raises:
            MalformedInput: the text is no square matrix of the size that it names.
        """
        return Instance(parse_matrix(text))

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Nothing is drawn."""
        if not self.fits(rows) or not _is_distances(rows):
            return None
        return Instance(rows) if find_shortest_tours(rows).count <= 2 else None

    def solve(self, instance: Instance) -> Answer:
        """Extend the shortest paths through ever larger sets of cities, O(2^N N^2)."""
        return find_shortest_tours(instance.rows).tour

    def accepts(self, instance: Instance, answer: Answer) -> bool:
        """Whether it is a tour from city 0, in either direction, and none is shorter."""
        rows = instance.rows
        return (
            len(answer) == len(rows) + 1
            and answer[0] == answer[-1] == 0
            and sorted(answer[1:]) == list(range(len(rows)))
            and length_of(answer, rows) == find_shortest_tours(rows).length
        )

    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Make the matrix one of distances; if it is one, draw some distance again."""
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
        """Give equal distances equal substitutes, none of them 0, and leave the diagonal."""
        values = sorted({number for row in rows for number in row} - {0})
        images = substitute(values, [number for number in universe if number > 0], rng)
        if images is None:
            return None
        images[0] = 0
        return tuple(tuple(images[number] for number in row) for row in rows)


def _is_distances(rows: Rows) -> bool:
    """Whether a square matrix is symmetric, and 0 on its diagonal and nowhere else."""
    size = range(len(rows))
    return all(
        rows[i][j] == rows[j][i] and (rows[i][j] == 0) == (i == j) for i in size for j in size
    )


PUZZLE = Tsp()
