"""Choose two numbers whose sum is k.

Validity: 3 numbers or more; k is the sum of one pair of places in the list, and of no other.
"""

from __future__ import annotations

from scylla.sum_puzzle import ExactSum


class TwoSum(ExactSum):
    """Two numbers with a given sum; all pairs are tried."""

    title = "Two Sum"
    statement = (
        "You are given a list of numbers $l$ and a number $k$. Choose two numbers of the list "
        "whose sum is exactly $k$. Use each place of the list at most once: a number may be chosen "
        "only as often as it occurs in the list."
    )
    answer_rule = (
        "Write the answer as a list of exactly two numbers, in square brackets, separated by "
        "commas, in any order."
    )
    level = 2
    complexity = "O(N^2)"
    min_length = 3
    sizes = range(2, 3)


PUZZLE = TwoSum()
