"""Choose four numbers whose sum lies between the numbers a and b.

Validity: 5 numbers or more; exactly one possible sum of four numbers lies between a and b. Several
quadruples may have this sum. a is the next smaller, b the next larger possible sum.
"""

from scylla.list_puzzle import ANY_ORDER, ONCE, SumInRange


class FourSumInRange(SumInRange):
    """Four numbers with a sum in an open interval, found by trying all quadruples."""

    title = "Four Sum in Range"
    statement = (
        "You are given a list of numbers $l$ and two numbers $a$ and $b$. Choose four numbers of "
        "the list whose sum is greater than $a$ and less than $b$; a sum equal to $a$ or $b$ does"
        " not count." + ONCE
    )
    answer_rule = ANY_ORDER.format("exactly four numbers")
    level = 4
    complexity = "O(N^4)"
    min_length = 5
    sizes = range(4, 5)
    is_unique = False


PUZZLE = FourSumInRange()
