"""Choose numbers of a list by their sum: ten puzzles.

They ask for a sum k, for a sum between a and b, or for a multiple of ten; of two, three or four
numbers, or of a subset of any size. ``Validity`` stands in each class's docstring. All are solved
by trying all choices.
"""

from __future__ import annotations

from collections.abc import Sequence

from extras.scylla.list_puzzle import ExactSum, SumInRange, SumMultipleTen, count_sums

_ASKED = range(4, 7)  # numbers of summands in the answers of puzzles about subsets


class TwoSum(ExactSum, count=2):
    """Validity: 3 numbers or more; k is the sum of exactly one pair of places in the list."""

    title = "Two Sum"


class ThreeSum(ExactSum, count=3):
    """Validity: 4 numbers or more; k is the sum of exactly one triple of places in the list."""

    title = "Three Sum"


class ThreeSumInRange(SumInRange, count=3):
    """Validity: 4 numbers or more; exactly one triple of places has a sum between a and b.

    Of all sums of three numbers, a is the next smaller and b the next larger sum.
    """

    title = "Three Sum in Range"


class ThreeSumMultipleTen(SumMultipleTen, count=3):
    """Validity: 4 numbers or more; exactly one triple of places has a sum that ten divides."""

    title = "Three Sum Multiple of Ten"


class FourSum(ExactSum, count=4):
    """Validity: 5 numbers or more; k is the sum of exactly one quadruple of places in the list."""

    title = "Four Sum"


class FourSumInRange(SumInRange, count=4):
    """Validity: 5 numbers or more; exactly one possible sum of four numbers is between a and b.

    Several quadruples may have this sum. a is the next smaller, b the next larger possible sum.
    """

    title = "Four Sum in Range"
    is_unique = False


class FourSumMultipleTen(SumMultipleTen, count=4):
    """Validity: 5 numbers or more; exactly one quadruple of places has a sum that ten divides."""

    title = "Four Sum Multiple of Ten"


class SubsetSum(ExactSum, chosen="one or more"):
    """Validity: 6 to 16 numbers; exactly one subset has the sum k, and it has 4 to 6 numbers."""

    title = "Subset Sum"
    min_length = 6
    max_length = 16
    sizes = range(1, max_length + 1)

    def unique_sums(self, numbers: Sequence[int]) -> list[int]:
        """Return the sums of exactly one subset, if the subset has 4 to 6 numbers."""
        if 0 in numbers:
            return []  # if the list contains 0, each sum has two subsets or more
        counts = count_sums(numbers, _ASKED)
        counts_of_all = count_sums(numbers, self.sizes)
        return [total for total in counts if counts_of_all[total] == 1]


class SubsetSumInRange(SumInRange, chosen="4, 5 or 6"):
    """Validity: 6 to 16 numbers; exactly one choice of 4 to 6 places has a sum between a and b.

    Of all sums of 4 to 6 numbers, a is the next smaller and b the next larger sum.
    """

    title = "Subset Sum in Range"
    min_length = 6
    max_length = 16
    sizes = _ASKED


class SubsetSumMultipleTen(SumMultipleTen, chosen="4, 5 or 6"):
    """Validity: 6 to 16 numbers; exactly one choice of 4 to 6 places has a sum that ten divides."""

    title = "Subset Sum Multiple of Ten"
    min_length = 6
    max_length = 16
    sizes = _ASKED


PUZZLES = (
    TwoSum(), ThreeSum(), ThreeSumInRange(), ThreeSumMultipleTen(), FourSum(), FourSumInRange(),
    FourSumMultipleTen(), SubsetSum(), SubsetSumInRange(), SubsetSumMultipleTen(),
)  # fmt: skip
