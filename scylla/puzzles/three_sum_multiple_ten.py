"""Choose three numbers whose sum is a multiple of ten.

Validity: 4 numbers or more, of which exactly one triple of places has such a sum.
"""

from __future__ import annotations

from scylla.sum_puzzle import SumMultipleTen


class ThreeSumMultipleTen(SumMultipleTen):
    """Three numbers whose sum ten divides; all triples are tried."""

    title = "Three Sum Multiple of Ten"
    statement = (
        "You are given a list of numbers. Choose three numbers of the list whose sum is a multiple "
        "of 10; a sum of 0 counts as one. Use each place of the list at most once: a number may be "
        "chosen only as often as it occurs in the list."
    )
    answer_rule = (
        "Write the answer as a list of exactly three numbers, in square brackets, separated by "
        "commas, in any order."
    )
    level = 3
    complexity = "O(N^3)"
    min_length = 4
    sizes = range(3, 4)


PUZZLE = ThreeSumMultipleTen()
