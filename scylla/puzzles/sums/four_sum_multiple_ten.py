"""Choose four numbers whose sum is a multiple of ten.

Validity: 5 numbers or more; exactly one quadruple of places has a sum that ten divides.
"""

from scylla.list_puzzle import ANY_ORDER, ONCE, SumMultipleTen


class FourSumMultipleTen(SumMultipleTen):
    """Four numbers with a sum that ten divides, found by trying all quadruples."""

    title = "Four Sum Multiple of Ten"
    statement = (
        "You are given a list of numbers. Choose four numbers of the list whose sum is a multiple"
        " of 10; a sum of 0 counts as one." + ONCE
    )
    answer_rule = ANY_ORDER.format("exactly four numbers")
    level = 4
    complexity = "O(N^4)"
    min_length = 5
    sizes = range(4, 5)


PUZZLE = FourSumMultipleTen()
