"""Find the longest block (contiguous part) that two lists have in common.

Validity: two lists of two numbers or more; exactly one common block is longest.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from extras.scylla.list_puzzle import ListPuzzle, replace, replace_anywhere
from extras.scylla.puzzle import Answer, Instance, Rows


class LongestCommonSubarray(ListPuzzle):
    """The puzzle of the longest common block, solved by dynamic programming."""

    title = "Longest Common Subarray"
    statement = (
        "You are given two lists of numbers $l_1$ and $l_2$. Find the longest block that both have "
        "in common: numbers that stand next to each other, in the same order and without gaps, in "
        "the one list as in the other."
    )
    answer_rule = (
        "Write the answer as the list of the block's numbers in their order, in square brackets, "
        "separated by commas."
    )
    level = None
    complexity = "O(N^2) to O(2^N)"
    input_shape = "pair"

    def is_valid(self, rows: Rows) -> bool:
        """Return True if exactly one common block is longest."""
        return len(_longest_blocks(rows)) == 1

    def solve(self, instance: Instance) -> Answer:
        """Extend the common block that ends at each pair of places in the two lists, O(N^2)."""
        return _longest_blocks(instance.rows)[0]

    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Copy a number to the same place of the other list, or replace any number."""
        if rng.random() < 0.5:
            return replace_anywhere(rows, elements, rng)
        place = rng.randrange(min(map(len, rows)))
        return replace(rows, 1, place, rows[0][place])


def _longest_blocks(rows: Rows) -> list[Answer]:
    """Return all longest blocks that both rows have, row by row."""
    first, second = rows
    longest = 1
    blocks: set[Answer] = set()
    above = [0] * (len(second) + 1)
    for end, number in enumerate(first, start=1):
        lengths = [0]
        for place, other in enumerate(second):
            lengths.append(above[place] + 1 if number == other else 0)
        if max(lengths) > longest:
            longest = max(lengths)
            blocks = set()
        if longest in lengths:
            blocks.add(first[end - longest : end])
        above = lengths
    return sorted(blocks)


PUZZLE = LongestCommonSubarray()
