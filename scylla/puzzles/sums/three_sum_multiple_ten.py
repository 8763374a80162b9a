"""Choose three numbers whose sum is a multiple of ten.

Validity: 4 numbers or more; exactly one triple of places has a sum that ten divides.
"""

from scylla.list_puzzle import ANY_ORDER, ONCE, SumMultipleTen


class ThreeSumMultipleTen(SumMultipleTen):
    """Three numbers with a sum that ten divides, found by trying all triples."""

    title = "Three Sum Multiple of Ten"
    statement = (
        "You are given a list of numbers. Choose three numbers of the list whose sum is a "
        "multiple of 10; a sum of 0 counts as one." + ONCE
    )
    answer_rule = ANY_ORDER.format("exactly three numbers")
    level = 3
    complexity = "O(N^3)"
    min_length = 4
    sizes = range(3, 4)


PUZZLE = ThreeSumMultipleTen()
