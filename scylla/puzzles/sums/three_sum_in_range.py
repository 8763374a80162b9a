"""Choose three numbers whose sum lies between the numbers a and b.

Validity: 4 numbers or more; exactly one triple of places has a sum between a and b. Of all sums of
three numbers, a is the next smaller and b the next larger sum.
"""

from scylla.list_puzzle import ANY_ORDER, ONCE, SumInRange


class ThreeSumInRange(SumInRange):
    """Three numbers with a sum in an open interval, found by trying all triples."""

    title = "Three Sum in Range"
    statement = (
        "You are given a list of numbers $l$ and two numbers $a$ and $b$. Choose three numbers of"
        " the list whose sum is greater than $a$ and less than $b$; a sum equal to $a$ or $b$ "
        "does not count." + ONCE
    )
    answer_rule = ANY_ORDER.format("exactly three numbers")
    level = 3
    complexity = "O(N^3)"
    min_length = 4
    sizes = range(3, 4)


PUZZLE = ThreeSumInRange()
