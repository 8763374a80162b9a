"""Find the k-th largest of some numbers.

Validity: four numbers or more; k is drawn from 2 to half the length of the list.
"""

from __future__ import annotations

import random

from extras.scylla.list_puzzle import ListPuzzle
from extras.scylla.puzzle import Answer, Instance, Rows


class FindTopk(ListPuzzle):
    """The puzzle of the k-th largest number, solved by sorting; equal numbers all count."""

    title = "Find Top K"
    statement = (
        "You are given a list of numbers $l$ and a number $k$. Find the $k$-th largest number of "
        "the list: the one at place $k$ when the list is sorted from the largest number to the "
        "smallest. Equal numbers each take a place of their own."
    )
    answer_rule = "Write the answer as a single number."
    level = 2
    complexity = "O(N log N)"
    answer_shape = "number"
    min_length = 4
    parameter_names = ("k",)

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Draw the rank k, from 2 to half the length."""
        if not self.fits(rows):
            return None
        return Instance(rows, (rng.randint(2, len(rows[0]) // 2),))

    def solve(self, instance: Instance) -> Answer:
        """Sort the list, O(N log N)."""
        (rank,) = instance.parameters
        return (sorted(instance.rows[0], reverse=True)[rank - 1],)


PUZZLE = FindTopk()
