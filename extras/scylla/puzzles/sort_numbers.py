"""Sort numbers.

Validity: any list of two numbers or more.
"""

from __future__ import annotations

from extras.scylla.list_puzzle import ListPuzzle
from extras.scylla.puzzle import Answer, Instance


class SortNumbers(ListPuzzle):
    """The puzzle of sorting numbers in ascending order."""

    title = "Sort Numbers"
    statement = (
        "You are given a list of numbers. Sort it in ascending order, from the smallest number to "
        "the largest. A number that occurs more than once stays in the list as often as it occurs."
    )
    answer_rule = "Write the answer as the sorted list, in square brackets, separated by commas."
    level = 2
    complexity = "O(N log N)"

    def solve(self, instance: Instance) -> Answer:
        """Sort the list, O(N log N)."""
        return tuple(sorted(instance.rows[0]))


PUZZLE = SortNumbers()
