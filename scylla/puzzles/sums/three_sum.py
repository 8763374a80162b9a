"""Choose three numbers whose sum is k.

Validity: 4 numbers or more; k is the sum of exactly one triple of places in the list.
"""

from scylla.list_puzzle import ANY_ORDER, ONCE, ExactSum


class ThreeSum(ExactSum):
    """Three numbers with a given sum, found by trying all triples."""

    title = "Three Sum"
    statement = (
        "You are given a list of numbers $l$ and a number $k$. Choose three numbers of the list "
        "whose sum is exactly $k$." + ONCE
    )
    answer_rule = ANY_ORDER.format("exactly three numbers")
    level = 3
    complexity = "O(N^3)"
    min_length = 4
    sizes = range(3, 4)


PUZZLE = ThreeSum()
