"""Choose four numbers whose sum is k.

Validity: 5 numbers or more; k is the sum of one quadruple of places in the list, and of no other.
"""

from __future__ import annotations

from scylla.sum_puzzle import ExactSum


class FourSum(ExactSum):
    """Four numbers with a given sum; all quadruples are tried."""

    title = "Four Sum"
    statement = (
        "You are given a list of numbers $l$ and a number $k$. Choose four numbers of the list "
        "whose sum is exactly $k$. Use each place of the list at most once: a number may be chosen "
        "only as often as it occurs in the list."
    )
    answer_rule = (
        "Write the answer as a list of exactly four numbers, in square brackets, separated by "
        "commas, in any order."
    )
    level = 4
    complexity = "O(N^4)"
    min_length = 5
    sizes = range(4, 5)


PUZZLE = FourSum()
