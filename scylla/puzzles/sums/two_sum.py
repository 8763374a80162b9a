"""Choose two numbers whose sum is k.

Validity: 3 numbers or more; k is the sum of exactly one pair of places in the list.
"""

from scylla.list_puzzle import ExactSum


class TwoSum(ExactSum, count=2):
    """Two numbers with a given sum, found by trying all pairs."""

    title = "Two Sum"


PUZZLE = TwoSum()
