"""Choose two numbers whose sum is k.

Validity: 3 numbers or more; k is the sum of exactly one pair of places in the list.
"""

from scylla.list_puzzle import ANY_ORDER, ONCE, ExactSum


class TwoSum(ExactSum):
    """Two numbers with a given sum, found by trying all pairs."""

    title = "Two Sum"
    statement = (
        "You are given a list of numbers $l$ and a number $k$. Choose two numbers of the list "
        "whose sum is exactly $k$." + ONCE
    )
    answer_rule = ANY_ORDER.format("exactly two numbers")
    level = 2
    complexity = "O(N^2)"
    min_length = 3
    sizes = range(2, 3)


PUZZLE = TwoSum()
