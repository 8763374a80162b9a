"""Find the smallest of some numbers.

Validity: any list of two numbers or more.
"""

from __future__ import annotations

import random

from scylla.list_puzzle import ListPuzzle
from scylla.puzzle import Answer, Instance, Rows


class FindMinimum(ListPuzzle):
    """The smallest number; a scan."""

    title = "Find Minimum"
    statement = "You are given a list of numbers. Find the smallest number in it."
    answer_rule = "Write the answer as a single number."
    level = 1
    complexity = "O(N)"
    answer_shape = "number"

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Nothing is drawn."""
        return Instance(rows) if self.fits(rows) else None

    def solve(self, instance: Instance) -> Answer:
        """Scan the list, O(N)."""
        return (min(instance.rows[0]),)

    def accepts(self, instance: Instance, answer: Answer) -> bool:
        """One number alone is the smallest."""
        return answer == self.solve(instance)


PUZZLE = FindMinimum()
