"""Choose four numbers whose sum is k.

Validity: 5 numbers or more; k is the sum of exactly one quadruple of places in the list.
"""

from scylla.list_puzzle import ExactSum


class FourSum(ExactSum, count=4):
    """Four numbers with a given sum, found by trying all quadruples."""

    title = "Four Sum"


PUZZLE = FourSum()
