"""Choose any count of numbers whose sum is k.

Validity: 6 to 16 numbers; exactly one subset has the sum k, and it has 4 to 6 numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

from scylla.list_puzzle import ExactSum, count_sums

_ASKED = range(4, 7)  # allowed numbers of summands in the answer


class SubsetSum(ExactSum, chosen="one or more"):
    """A subset with a given sum, found by trying all subsets, small ones first."""

    title = "Subset Sum"
    min_length = 6
    max_length = 16
    sizes = range(1, max_length + 1)

    def unique_sums(self, numbers: Sequence[int]) -> list[int]:
        """Return the sums of exactly one subset, if the subset has 4 to 6 numbers."""
        if 0 in numbers:
            return []  # if the list contains 0, each sum has two subsets or more
        counts = count_sums(numbers, _ASKED)
        counts_of_all = count_sums(numbers, self.sizes)
        return [total for total in counts if counts_of_all[total] == 1]


PUZZLE = SubsetSum()
