"""Keep each number of a list once.

Validity: any list of two numbers or more, with or without duplicates.
"""

from __future__ import annotations

from extras.scylla.list_puzzle import ListPuzzle
from extras.scylla.puzzle import Answer, Instance


class RemoveDuplicateNumbers(ListPuzzle):
    """The puzzle of keeping the first occurrence of each number, in the order of the list."""

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

    def solve(self, instance: Instance) -> Answer:
        """Keep the first occurrences, O(N)."""
        return tuple(dict.fromkeys(instance.rows[0]))


PUZZLE = RemoveDuplicateNumbers()
