"""Find the largest of some numbers.

Validity: any list of two numbers or more.
"""

from __future__ import annotations

from scylla.list_puzzle import ListPuzzle
from scylla.puzzle import Answer, Instance


class FindMaximum(ListPuzzle):
    """The puzzle of the largest number, solved by a scan."""

    title = "Find Maximum"
    statement = "You are given a list of numbers. Find the largest number in it."
    answer_rule = "Write the answer as a single number."
    level = 1
    complexity = "O(N)"
    answer_shape = "number"

    def solve(self, instance: Instance) -> Answer:
        """Scan the list, O(N)."""
        return (max(instance.rows[0]),)


PUZZLE = FindMaximum()
