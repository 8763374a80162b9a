"""Choose four numbers whose sum lies between two others.

Validity: 5 numbers or more; exactly one sum of four numbers lies between a and b, which are the
next lower and the next higher one; several quadruples may have it.
"""

from __future__ import annotations

from scylla.sum_puzzle import SumInRange


class FourSumInRange(SumInRange):
    """Four numbers with a sum in an open interval; all quadruples are tried."""

    title = "Four Sum in Range"
    statement = (
        "You are given a list of numbers $l$ and two numbers $a$ and $b$. Choose four numbers of "
        "the list whose sum is greater than $a$ and less than $b$; a sum equal to $a$ or $b$ does "
        "not count. Use each place of the list at most once: a number may be chosen only as often "
        "as it occurs in the list."
    )
    answer_rule = (
        "Write the answer as a list of exactly four numbers, in square brackets, separated by "
        "commas, in any order."
    )
    level = 4
    complexity = "O(N^4)"
    min_length = 5
    sizes = range(4, 5)
    is_unique = False


PUZZLE = FourSumInRange()
