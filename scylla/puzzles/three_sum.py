"""Choose three numbers whose sum is k.

Validity: 4 numbers or more; k is the sum of one triple of places in the list, and of no other.
"""

from __future__ import annotations

from scylla.sum_puzzle import ExactSum


class ThreeSum(ExactSum):
    """Three numbers with a given sum; all triples are tried."""

    title = "Three Sum"
    statement = (
        "You are given a list of numbers $l$ and a number $k$. Choose three numbers of the list "
        "whose sum is exactly $k$. Use each place of the list at most once: a number may be chosen "
        "only as often as it occurs in the list."
    )
    answer_rule = (
        "Write the answer as a list of exactly three numbers, in square brackets, separated by "
        "commas, in any order."
    )
    level = 3
    complexity = "O(N^3)"
    min_length = 4
    sizes = range(3, 4)


PUZZLE = ThreeSum()
