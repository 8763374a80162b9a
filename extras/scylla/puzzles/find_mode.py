"""Find the number that occurs most often.

Validity: one number occurs more often than every other.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from extras.scylla.list_puzzle import ListPuzzle, replace
from extras.scylla.puzzle import Answer, Instance, Rows
from extras.scylla.sampling import contains


class FindMode(ListPuzzle):
    """The puzzle of the most frequent number (mode), solved by counting."""

    title = "Find Mode"
    statement = (
        "You are given a list of numbers, one of which occurs more often than any other. Find this "
        "number, the mode of the list."
    )
    answer_rule = "Write the answer as a single number: the mode itself, not how often it occurs."
    level = 1
    complexity = "O(N)"
    answer_shape = "number"

    def is_valid(self, rows: Rows) -> bool:
        """Return True if the mode is unique."""
        return len(_modes(rows)) == 1

    def solve(self, instance: Instance) -> Answer:
        """Count each number, O(N)."""
        return (_modes(instance.rows)[0],)

    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Replace a number by a most frequent number, so that the mode becomes unique."""
        modes = [number for number in _modes(rows) if contains(elements, number)]
        mode = rng.choice(modes or elements)
        places = [place for place, number in enumerate(rows[0]) if number != mode]
        return replace(rows, 0, rng.choice(places), mode) if places else rows


def _modes(rows: Rows) -> list[int]:
    counts = Counter(rows[0])
    most = max(counts.values())
    return sorted(number for number, count in counts.items() if count == most)


PUZZLE = FindMode()
