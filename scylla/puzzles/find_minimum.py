"""Find the smallest of some numbers.

Validity: any list of two numbers or more.
"""

from __future__ import annotations

from scylla.list_puzzle import ListPuzzle
from scylla.puzzle import Answer, Instance


class FindMinimum(ListPuzzle):
    """The puzzle of the smallest number, solved by a scan."""

    title = "Find Minimum"
    statement = "You are given a list of numbers. Find the smallest number in it."
    answer_rule = "Write the answer as a single number."
    level = 1
    complexity = "O(N)"
    answer_shape = "number"

    def solve(self, instance: Instance) -> Answer:
        """Scan the list, O(N)."""
        return (min(instance.rows[0]),)


PUZZLE = FindMinimum()
