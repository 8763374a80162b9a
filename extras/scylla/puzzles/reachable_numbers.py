"""Find the numbers that can be reached in a network in at most k links.

Validity: two lists of two numbers or more; from the first number of the first list, at least two
other numbers can be reached. k, the number of links, doubles from level to level: 1, 2, 4, 8.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from extras.scylla.list_puzzle import SteppedPuzzle, replace, replace_anywhere
from extras.scylla.puzzle import Answer, Instance, Rows

_SHARE_ANYWHERE = 0.2  # of the repairs that replace any number


class ReachableNumbers(SteppedPuzzle):
    """Reachability in a directed graph, solved by breadth-first search."""

    title = "Reachable Numbers"
    statement = (
        "You are given two lists of numbers $l_1$ and $l_2$ and a number $k$. They describe a "
        "network: from each number of $l_1$, a one-way link leads to the number at the same place "
        "of $l_2$. Numbers without a partner at the same place have no link. Start at the first "
        "number of $l_1$. Find all numbers that can be reached over at most $k$ links; the start "
        "itself counts."
    )
    answer_rule = (
        "Write the answer as a list of the reached numbers, each once, in ascending order, in "
        "square brackets, separated by commas."
    )
    level = None
    complexity = "O(N) to O(N^2)"
    input_shape = "pair"

    def is_valid(self, rows: Rows) -> bool:
        """Return True if at least two other numbers can be reached over any number of links."""
        return len(_reach(rows, min(map(len, rows)))) > 2

    def solve(self, instance: Instance) -> Answer:
        """Follow all links k times, O(kN)."""
        (k,) = instance.parameters
        return tuple(sorted(_reach(instance.rows, k)))

    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Let a link begin where a link ends, so that more is reached, or replace any number.

        The first link keeps its beginning, where the search starts.
        """
        if rng.random() < _SHARE_ANYWHERE:
            return replace_anywhere(rows, elements, rng)
        starts, ends = rows
        num_links = min(len(starts), len(ends))
        changed = rng.randrange(1, num_links)
        followed = rng.randrange(num_links)
        return replace(rows, 0, changed, ends[followed])


def _reach(rows: Rows, num_steps: int) -> set[int]:
    """Return the numbers that at most so many steps lead to."""
    links = list(zip(*rows, strict=False))
    reached = {rows[0][0]}
    for _ in range(num_steps):
        reached |= {end for start, end in links if start in reached}
    return reached


PUZZLE = ReachableNumbers()
