"""Choose 4 to 6 numbers whose sum is a multiple of ten.

Validity: 6 to 16 numbers; exactly one choice of 4 to 6 places has a sum that ten divides.
"""

from scylla.list_puzzle import ANY_ORDER, ONCE, SumMultipleTen


class SubsetSumMultipleTen(SumMultipleTen):
    """4 to 6 numbers with a sum that ten divides, found by trying all such subsets."""

    title = "Subset Sum Multiple of Ten"
    statement = (
        "You are given a list of numbers. Choose 4, 5 or 6 numbers of the list whose sum is a "
        "multiple of 10; a sum of 0 counts as one." + ONCE
    )
    answer_rule = ANY_ORDER.format("the chosen numbers")
    level = 5
    complexity = "O(2^N)"
    min_length = 6
    max_length = 16
    sizes = range(4, 7)


PUZZLE = SubsetSumMultipleTen()
