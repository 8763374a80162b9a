"""Choose three numbers whose sum lies between two others.

Validity: 4 numbers or more; exactly one triple of places has a sum between a and b, which are the
next lower and the next higher sum of three.
"""

from __future__ import annotations

from scylla.sum_puzzle import SumInRange


class ThreeSumInRange(SumInRange):
    """Three numbers with a sum in an open interval; all triples are tried."""

    title = "Three Sum in Range"
    statement = (
        "You are given a list of numbers $l$ and two numbers $a$ and $b$. Choose three numbers of "
        "the list whose sum is greater than $a$ and less than $b$; a sum equal to $a$ or $b$ does "
        "not count. Use each place of the list at most once: a number may be chosen only as often "
        "as it occurs in the list."
    )
    answer_rule = (
        "Write the answer as a list of exactly three numbers, in square brackets, separated by "
        "commas, in any order."
    )
    level = 3
    complexity = "O(N^3)"
    min_length = 4
    sizes = range(3, 4)


PUZZLE = ThreeSumInRange()
