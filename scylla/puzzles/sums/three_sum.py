"""Choose three numbers whose sum is k.

Validity: 4 numbers or more; k is the sum of exactly one triple of places in the list.
"""

from scylla.list_puzzle import ExactSum


class ThreeSum(ExactSum, count=3):
    """Three numbers with a given sum, found by trying all triples."""

    title = "Three Sum"


PUZZLE = ThreeSum()
