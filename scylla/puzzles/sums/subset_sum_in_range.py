"""Choose 4 to 6 numbers whose sum lies between the numbers a and b.

Validity: 6 to 16 numbers; exactly one choice of 4 to 6 places has a sum between a and b.
Of all sums of 4 to 6 numbers, a is the next smaller and b the next larger sum.
"""

from scylla.list_puzzle import SumInRange


class SubsetSumInRange(SumInRange, chosen="4, 5 or 6"):
    """4 to 6 numbers with a sum in an open interval, found by trying all such subsets."""

    title = "Subset Sum in Range"
    min_length = 6
    max_length = 16
    sizes = range(4, 7)


PUZZLE = SubsetSumInRange()
