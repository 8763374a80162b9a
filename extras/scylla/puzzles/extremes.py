"""Find the largest, or the smallest, of some numbers.

Validity: any list of two numbers or more.
"""

from __future__ import annotations

from extras.scylla.list_puzzle import ListPuzzle
from extras.scylla.puzzle import Answer, Instance


class _Extreme(ListPuzzle):
    answer_rule = "Write the answer as a single number."
    level = 1
    complexity = "O(N)"
    answer_shape = "number"


class FindMaximum(_Extreme):
    """The puzzle of the largest number, solved by a scan."""

    title = "Find Maximum"
    statement = "You are given a list of numbers. Find the largest number in it."

    def solve(self, instance: Instance) -> Answer:
        """Scan the list, O(N)."""
        return (max(instance.rows[0]),)


class FindMinimum(_Extreme):
    """The puzzle of the smallest number, solved by a scan."""

    title = "Find Minimum"
    statement = "You are given a list of numbers. Find the smallest number in it."

    def solve(self, instance: Instance) -> Answer:
        """Scan the list, O(N)."""
        return (min(instance.rows[0]),)


PUZZLES = (FindMaximum(), FindMinimum())
