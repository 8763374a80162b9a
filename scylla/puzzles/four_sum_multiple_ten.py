"""Choose four numbers whose sum is a multiple of ten.

Validity: 5 numbers or more, of which exactly one quadruple of places has such a sum.
"""

from __future__ import annotations

from scylla.sum_puzzle import SumMultipleTen


class FourSumMultipleTen(SumMultipleTen):
    """Four numbers whose sum ten divides; all quadruples are tried."""

    title = "Four Sum Multiple of Ten"
    statement = (
        "You are given a list of numbers. Choose four numbers of the list whose sum is a multiple "
        "of 10; a sum of 0 counts as one. Use each place of the list at most once: a number may be "
        "chosen only as often as it occurs in the list."
    )
    answer_rule = (
        "Write the answer as a list of exactly four numbers, in square brackets, separated by "
        "commas, in any order."
    )
    level = 4
    complexity = "O(N^4)"
    min_length = 5
    sizes = range(4, 5)


PUZZLE = FourSumMultipleTen()
