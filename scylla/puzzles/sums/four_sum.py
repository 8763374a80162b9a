"""Choose four numbers whose sum is k.

Validity: 5 numbers or more; k is the sum of exactly one quadruple of places in the list.
"""

from scylla.list_puzzle import ANY_ORDER, ONCE, ExactSum


class FourSum(ExactSum):
    """Four numbers with a given sum, found by trying all quadruples."""

    title = "Four Sum"
    statement = (
        "You are given a list of numbers $l$ and a number $k$. Choose four numbers of the list "
        "whose sum is exactly $k$." + ONCE
    )
    answer_rule = ANY_ORDER.format("exactly four numbers")
    level = 4
    complexity = "O(N^4)"
    min_length = 5
    sizes = range(4, 5)


PUZZLE = FourSum()
