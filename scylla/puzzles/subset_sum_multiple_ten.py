"""Choose 4 to 6 numbers whose sum is a multiple of ten.

Validity: 6 to 16 numbers; of all choices of 4 to 6 places one alone has such a sum.
"""

from __future__ import annotations

from scylla.sum_puzzle import SumMultipleTen


class SubsetSumMultipleTen(SumMultipleTen):
    """4 to 6 numbers whose sum ten divides; all such subsets are tried.

    They are a fifth to two thirds of all 2^N, for the lengths that there are.
    """

    title = "Subset Sum Multiple of Ten"
    statement = (
        "You are given a list of numbers. Choose 4, 5 or 6 numbers of the list whose sum is a "
        "multiple of 10; a sum of 0 counts as one. Use each place of the list at most once: a "
        "number may be chosen only as often as it occurs in the list."
    )
    answer_rule = (
        "Write the answer as a list of the chosen numbers, in square brackets, separated by "
        "commas, in any order."
    )
    level = 5
    complexity = "O(2^N)"
    min_length = 6
    max_length = 16
    sizes = range(4, 7)


PUZZLE = SubsetSumMultipleTen()
