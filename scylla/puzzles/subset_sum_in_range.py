"""Choose 4 to 6 numbers whose sum lies between two others.

Validity: 6 to 16 numbers; of all choices of 4 to 6 places one alone has a sum between a and b,
which are the next lower and the next higher sum of such choices.
"""

from __future__ import annotations

from scylla.sum_puzzle import SumInRange


class SubsetSumInRange(SumInRange):
    """4 to 6 numbers with a sum in an open interval; all such subsets are tried.

    They are a fifth to two thirds of all 2^N, for the lengths that there are.
    """

    title = "Subset Sum in Range"
    statement = (
        "You are given a list of numbers $l$ and two numbers $a$ and $b$. Choose 4, 5 or 6 numbers "
        "of the list whose sum is greater than $a$ and less than $b$; a sum equal to $a$ or $b$ "
        "does not count. Use each place of the list at most once: a number may be chosen only as "
        "often as it occurs in the list."
    )
    answer_rule = (
        "Write the answer as a list of the chosen numbers, in square brackets, separated by "
        "commas, in any order."
    )
    level = 5
    complexity = "O(2^N)"
    min_length = 6
    max_length = 16
    sizes = range(4, 7)


PUZZLE = SubsetSumInRange()
