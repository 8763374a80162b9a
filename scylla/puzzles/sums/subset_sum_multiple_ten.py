"""Choose 4 to 6 numbers whose sum is a multiple of ten.

Validity: 6 to 16 numbers; exactly one choice of 4 to 6 places has a sum that ten divides.
"""

from scylla.list_puzzle import SumMultipleTen


class SubsetSumMultipleTen(SumMultipleTen, chosen="4, 5 or 6"):
    """4 to 6 numbers with a sum that ten divides, found by trying all such subsets."""

    title = "Subset Sum Multiple of Ten"
    min_length = 6
    max_length = 16
    sizes = range(4, 7)


PUZZLE = SubsetSumMultipleTen()
