"""Keep each number of a list once.

Validity: any list of two numbers or more; one without duplicates, too.
"""

from __future__ import annotations

import random

from scylla.list_puzzle import ListPuzzle
from scylla.puzzle import Answer, Instance, Rows


class RemoveDuplicateNumbers(ListPuzzle):
    """The first occurrence of each number, in the order of the list."""

    title = "Remove Duplicate Numbers"
    statement = (
        "You are given a list of numbers. Remove the duplicates: of each number keep the first "
        "occurrence only, and leave what is kept in its order."
    )
    answer_rule = (
        "Write the answer as the list that is left, in square brackets, separated by commas."
    )
    level = 2
    complexity = "O(N)"

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Nothing is drawn."""
        return Instance(rows) if self.fits(rows) else None

    def solve(self, instance: Instance) -> Answer:
        """Remember what was seen, O(N)."""
        return tuple(dict.fromkeys(instance.rows[0]))

    def accepts(self, instance: Instance, answer: Answer) -> bool:
        """The order is that of the list."""
        return answer == self.solve(instance)


PUZZLE = RemoveDuplicateNumbers()
