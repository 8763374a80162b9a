"""Find the longest run v, v+1, … among the numbers of a list.

Validity: two numbers or more, among them two consecutive numbers.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from extras.scylla.list_puzzle import ListPuzzle, replace, replace_anywhere
from extras.scylla.puzzle import Answer, Instance, Rows
from extras.scylla.sampling import Substitution, contains, substitute_by_run


class LongestConsecutiveElements(ListPuzzle):
    """The puzzle of a longest run of consecutive numbers; several runs may be longest."""

    title = "Longest Consecutive Elements"
    statement = (
        "You are given a list of numbers. Find a longest run of consecutive numbers $v$, $v+1$, "
        "$v+2$, … all of which are in the list, wherever they stand in it. If several runs are "
        "equally long, any one of them is right."
    )
    answer_rule = (
        "Write the answer as the list of the run's numbers, each once and in ascending order, in "
        "square brackets, separated by commas."
    )
    level = None
    complexity = "O(N) to O(2^N)"

    def is_valid(self, rows: Rows) -> bool:
        """Return True if two numbers are consecutive."""
        return len(self.solve(Instance(rows))) > 1

    def solve(self, instance: Instance) -> Answer:
        """Count upwards from the first number of each run, O(N)."""
        numbers = set(instance.rows[0])
        longest = range(0)
        for first in sorted(number for number in numbers if number - 1 not in numbers):
            end = first
            while end in numbers:
                end += 1
            longest = max(longest, range(first, end), key=len)
        return tuple(longest)

    def accepts(self, instance: Instance, answer: Answer) -> bool:
        """Return True if the answer is a run of the list's numbers, and no run is longer."""
        return (
            len(answer) == len(self.solve(instance))
            and answer == tuple(range(answer[0], answer[0] + len(answer)))
            and set(answer) <= set(instance.rows[0])
        )

    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Replace a number by another number plus or minus one; if impossible, by any number."""
        kept, changed = rng.sample(range(len(rows[0])), 2)
        beside = [rows[0][kept] - 1, rows[0][kept] + 1]
        choices = [number for number in beside if contains(elements, number)]
        if not choices:
            return replace_anywhere(rows, elements, rng)
        return replace(rows, 0, changed, rng.choice(choices))

    def substitute(
        self, values: Sequence[int], universe: Sequence[int], rng: random.Random
    ) -> Substitution | None:
        """Replace whole runs, so that their number and lengths stay equal."""
        return substitute_by_run(values, universe, rng)


PUZZLE = LongestConsecutiveElements()
