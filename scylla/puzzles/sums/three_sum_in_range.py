"""Choose three numbers whose sum lies between the numbers a and b.

Validity: 4 numbers or more; exactly one triple of places has a sum between a and b. Of all sums of
three numbers, a is the next smaller and b the next larger sum.
"""

from scylla.list_puzzle import SumInRange


class ThreeSumInRange(SumInRange, count=3):
    """Three numbers with a sum in an open interval, found by trying all triples."""

    title = "Three Sum in Range"


PUZZLE = ThreeSumInRange()
