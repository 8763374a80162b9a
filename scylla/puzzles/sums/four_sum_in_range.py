"""Choose four numbers whose sum lies between the numbers a and b.

Validity: 5 numbers or more; exactly one possible sum of four numbers lies between a and b. Several
quadruples may have this sum. a is the next smaller, b the next larger possible sum.
"""

from scylla.list_puzzle import SumInRange


class FourSumInRange(SumInRange, count=4):
    """Four numbers with a sum in an open interval, found by trying all quadruples."""

    title = "Four Sum in Range"
    is_unique = False


PUZZLE = FourSumInRange()
