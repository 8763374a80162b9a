"""Puzzles that ask for some of a list's numbers, chosen by their sum.

Three ways to ask for a sum: exactly k, inside a range, a multiple of ten. What a puzzle adds is how
many numbers are to be chosen, and its words.
"""

from __future__ import annotations

import itertools
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

from core.errors import MalformedInput
from scylla.list_puzzle import ListPuzzle, replace
from scylla.puzzle import Answer, Instance, Rows
from scylla.substitution import Substitution, substitute_by_residue
from scylla.sum_counts import count_remainders, count_sums

_TEN = 10
_CANDIDATES = 10  # numbers of which a repair takes the best


class SumPuzzle(ListPuzzle):
    """Choose numbers of a list by their sum.

    Attributes:
        sizes: how many may be chosen.
    """

    # Of four among more, the sums that a list may have are too many to be counted.
    max_length = 64
    sizes: ClassVar[range]

    @abstractmethod
    def is_wanted(self, total: int, parameters: tuple[int, ...]) -> bool:
        """Whether a sum is what was asked for."""

    def solve(self, instance: Instance) -> Answer:
        """Try all choices, O(N^s) for up to s of N numbers; for any number of them, O(2^N).

        Raises:
            MalformedInput: no choice is right; ``pose`` gives no such instance.
        """
        for size in self.sizes:
            for chosen in itertools.combinations(instance.rows[0], size):
                if self.is_wanted(sum(chosen), instance.parameters):
                    return chosen
        raise MalformedInput(
            f"{self.title}: {self.render(instance)!r} has no answer; pose it with numbers that have"
        )

    def accepts(self, instance: Instance, answer: Answer) -> bool:
        """Whether numbers of the list were chosen, in any order, none too often, with that sum."""
        return (
            len(answer) in self.sizes
            and Counter(answer) <= Counter(instance.rows[0])
            and self.is_wanted(sum(answer), instance.parameters)
        )


class ExactSum(SumPuzzle):
    """The sum is k, which one choice alone has."""

    parameter_names = ("k",)

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Draw k from the sums that one choice has, told apart by places in the list."""
        if not self.fits(rows):
            return None
        sums = self.unique_sums(rows[0])
        return Instance(rows, (rng.choice(sums),)) if sums else None

    def unique_sums(self, numbers: Sequence[int]) -> list[int]:
        """Return the sums that k may be, in ascending order."""
        counts = count_sums(numbers, self.sizes)
        return [total for total, count in counts.items() if count == 1]

    def is_wanted(self, total: int, parameters: tuple[int, ...]) -> bool:
        """Whether the sum is k."""
        return parameters == (total,)


class SumInRange(SumPuzzle):
    """The sum is above a and below b, which are sums of other choices.

    Attributes:
        is_unique: whether one choice alone lies between them; else the choices there may be
            several, all of the same sum.
    """

    parameter_names = ("a", "b")
    is_unique: ClassVar[bool] = True

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Draw a sum that is neither the least nor the greatest; a and b are those next to it."""
        if not self.fits(rows):
            return None
        counts = count_sums(rows[0], self.sizes)
        sums = list(counts)
        places = [
            place
            for place in range(1, len(sums) - 1)
            if counts[sums[place]] == 1 or not self.is_unique
        ]
        if not places:
            return None
        place = rng.choice(places)
        return Instance(rows, (sums[place - 1], sums[place + 1]))

    def is_wanted(self, total: int, parameters: tuple[int, ...]) -> bool:
        """Whether the sum is between the two ends, and none of them."""
        low, high = parameters
        return low < total < high


class SumMultipleTen(SumPuzzle):
    """Ten divides the sum, of one choice alone."""

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Nothing is drawn."""
        if not self.fits(rows):
            return None
        counts = count_remainders(rows[0], self.sizes[-1], divisor=_TEN)
        return Instance(rows) if sum(counts[size][0] for size in self.sizes) == 1 else None

    def is_wanted(self, total: int, parameters: tuple[int, ...]) -> bool:
        """Whether ten divides the sum."""
        return total % _TEN == 0

    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Replace a number anywhere with the best of some: of long lists, few have one choice."""
        (numbers,) = rows
        place = rng.randrange(len(numbers))
        counts = count_remainders(
            numbers[:place] + numbers[place + 1 :], self.sizes[-1], divisor=_TEN
        )

        def distance(number: int) -> int:
            num_with = sum(counts[size - 1][-number % _TEN] for size in self.sizes)
            return abs(num_with + sum(counts[size][0] for size in self.sizes) - 1)

        tried = [rng.choice(elements) for _ in range(_CANDIDATES)]
        return replace(rows, 0, place, min(tried, key=distance))

    def substitute(
        self, values: Sequence[int], universe: Sequence[int], rng: random.Random
    ) -> Substitution | None:
        """Keep last digits, so that the same choices have sums that ten divides."""
        return substitute_by_residue(values, universe, _TEN, rng)
