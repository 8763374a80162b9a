"""Choose four numbers whose sum is a multiple of ten.

Validity: 5 numbers or more; exactly one quadruple of places has a sum that ten divides.
"""

from scylla.list_puzzle import SumMultipleTen


class FourSumMultipleTen(SumMultipleTen, count=4):
    """Four numbers with a sum that ten divides, found by trying all quadruples."""

    title = "Four Sum Multiple of Ten"


PUZZLE = FourSumMultipleTen()
