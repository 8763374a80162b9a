"""Choose any count of numbers whose sum is k.

Validity: 6 to 16 numbers; of all subsets of places one alone has the sum k, and it has 4 to 6.
"""

from __future__ import annotations

from collections.abc import Sequence

from scylla.sum_counts import count_sums
from scylla.sum_puzzle import ExactSum

_ASKED = range(4, 7)  # how many numbers the one answer has


class SubsetSum(ExactSum):
    """Numbers with a given sum; all subsets are tried, small ones first."""

    title = "Subset Sum"
    statement = (
        "You are given a list of numbers $l$ and a number $k$. Choose one or more numbers of the "
        "list whose sum is exactly $k$. Use each place of the list at most once: a number may be "
        "chosen only as often as it occurs in the list."
    )
    answer_rule = (
        "Write the answer as a list of the chosen numbers, in square brackets, separated by "
        "commas, in any order."
    )
    level = 5
    complexity = "O(2^N)"
    min_length = 6
    max_length = 16
    sizes = range(1, max_length + 1)

    def unique_sums(self, numbers: Sequence[int]) -> list[int]:
        """Return the sums that one subset has, and it is neither small nor large."""
        if 0 in numbers:
            return []  # with or without it, a sum is the same
        counts = count_sums(numbers, _ASKED)
        counts_of_all = count_sums(numbers, self.sizes)
        return [total for total in counts if counts_of_all[total] == 1]


PUZZLE = SubsetSum()
