"""Find the longest increasing subsequence of a list.

Validity: two numbers or more, of which some number is greater than an earlier one.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence

from extras.scylla.list_puzzle import ListPuzzle
from extras.scylla.puzzle import Answer, Instance, Rows

_DRAWS = 100  # maximum number of random substitutions; each is valid with probability >= 1/2


class LongestIncreasingSubsequence(ListPuzzle):
    """The puzzle of a longest strictly increasing subsequence; several may be longest."""

    title = "Longest Increasing Subsequence"
    statement = (
        "You are given a list of numbers. Find a longest strictly increasing subsequence: as many "
        "numbers of the list as possible, not necessarily next to each other, taken in the order "
        "in which they stand there, such that each is greater than the one before. If several are "
        "equally long, any one of them is right."
    )
    answer_rule = (
        "Write the answer as the list of the numbers taken, in square brackets, separated by "
        "commas."
    )
    level = None
    complexity = "O(N log N) to O(2^N)"

    def is_valid(self, rows: Rows) -> bool:
        """Return True if some number is greater than an earlier one."""
        return _increases(rows)

    def solve(self, instance: Instance) -> Answer:
        """Keep the smallest last number of subsequences of each length, O(N log N)."""
        (numbers,) = instance.rows
        ends: list[int] = []
        places: list[int] = []  # places of the numbers of ``ends`` in the list
        before: list[int | None] = []
        for place, number in enumerate(numbers):
            length = bisect_left(ends, number)
            before.append(places[length - 1] if length else None)
            if length == len(ends):
                ends.append(number)
                places.append(place)
            else:
                ends[length] = number
                places[length] = place
        taken = []
        last: int | None = places[-1]
        while last is not None:
            taken.append(numbers[last])
            last = before[last]
        return tuple(reversed(taken))

    def accepts(self, instance: Instance, answer: Answer) -> bool:
        """Return True if the answer is a longest increasing subsequence of the list."""
        rest = iter(instance.rows[0])
        return (
            len(answer) == len(self.solve(instance))
            and all(low < high for low, high in zip(answer, answer[1:], strict=False))
            and all(number in rest for number in answer)
        )

    def transfer(self, rows: Rows, universe: Sequence[int], rng: random.Random) -> Rows | None:
        """Draw substitutes until some number is greater than an earlier one."""
        for _ in range(_DRAWS):
            transferred = super().transfer(rows, universe, rng)
            if transferred is None or _increases(transferred):
                return transferred
        return None


def _increases(rows: Rows) -> bool:
    return any(low < high for low, high in zip(rows[0], rows[0][1:], strict=False))


PUZZLE = LongestIncreasingSubsequence()
