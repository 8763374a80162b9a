"""Choose three numbers whose sum is a multiple of ten.

Validity: 4 numbers or more; exactly one triple of places has a sum that ten divides.
"""

from scylla.list_puzzle import SumMultipleTen


class ThreeSumMultipleTen(SumMultipleTen, count=3):
    """Three numbers with a sum that ten divides, found by trying all triples."""

    title = "Three Sum Multiple of Ten"


PUZZLE = ThreeSumMultipleTen()
