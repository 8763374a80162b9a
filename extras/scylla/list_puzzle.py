"""Base classes of puzzles about lists, in steps, and about numbers with a given sum.

The sum may have to be exactly k, inside a range, or a multiple of ten. A subclass adds its
statement, and the count of numbers to choose. Equal numbers at two places count as two choices.
"""

from __future__ import annotations

import itertools
import operator
import random
from abc import abstractmethod
from collections import Counter
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from core.errors import MalformedInput
from extras.scylla.puzzle import Answer, Instance, Puzzle, Rows
from extras.scylla.sampling import Substitution, substitute, substitute_by_residue
from extras.scylla.texts import malformed, parse_lists, render_lists

GROWTH = (1, 2, 4, 8)  # numbers of steps of the levels of a ``SteppedPuzzle``


class ListPuzzle(Puzzle):
    """A puzzle about one or two lists."""

    parameter_names: ClassVar[tuple[str, ...]] = ()  # the parameters' names in the statement

    def render(self, instance: Instance) -> str:
        """Return lists and parameters as text with their names; a single list has no name."""
        parameters = tuple((number,) for number in instance.parameters)
        return render_lists(self._input_names, instance.rows + parameters)

    def parse(self, text: str) -> Instance:
        """Return the input from a text of ``render``."""
        lists = parse_lists(self._input_names, text)
        num_rows = len(lists) - len(self.parameter_names)
        rows = lists[:num_rows]
        parameters = lists[num_rows:]
        if any(len(numbers) != 1 for numbers in parameters):
            names = ", ".join(self.parameter_names)
            raise malformed(text, f"one number for each of {names}")
        return Instance(rows, tuple(number for (number,) in parameters))

    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Replace one number at a random place."""
        return replace_anywhere(rows, elements, rng)

    def transfer(self, rows: Rows, universe: Sequence[int], rng: random.Random) -> Rows | None:
        """Replace equal numbers by equal numbers, and different numbers by different ones."""
        values = sorted({number for row in rows for number in row})
        images = self.substitute(values, universe, rng)
        if images is None:
            return None
        return tuple(tuple(images[number] for number in row) for row in rows)

    def substitute(
        self, values: Sequence[int], universe: Sequence[int], rng: random.Random
    ) -> Substitution | None:
        """Return a substitute for each value, or None if the universe has too few numbers."""
        return substitute(values, universe, rng)

    @property
    def _input_names(self) -> tuple[str, ...]:
        if self.input_shape == "pair":
            return ("l_1", "l_2", *self.parameter_names)
        return ("l", *self.parameter_names) if self.parameter_names else ()


class SteppedPuzzle(ListPuzzle):
    """A puzzle that asks for the result of k steps; k is 1, 2, 4 or 8.

    So the work doubles from one level of an item to the next. k is at most the length of a list.
    """

    parameter_names = ("k",)

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Draw k."""
        if not self.fits(rows) or not self.is_valid(rows):
            return None
        return Instance(rows, (rng.choice([k for k in GROWTH if k <= min(map(len, rows))]),))


def replace_anywhere(rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
    """Return rows with the number at a random place replaced by a random element."""
    places = [(row, place) for row, numbers in enumerate(rows) for place in range(len(numbers))]
    row, place = rng.choice(places)
    return replace(rows, row, place, rng.choice(elements))


def replace(rows: Rows, row: int, place: int, number: int) -> Rows:
    """Return rows with the number at one place replaced."""
    changed = rows[row][:place] + (number,) + rows[row][place + 1 :]
    return rows[:row] + (changed,) + rows[row + 1 :]


# The last sentence of a sum puzzle's statement, and a sum puzzle's answer rule.
_ONCE = (
    " Use each place of the list at most once: a number may be chosen only as often as it occurs "
    "in the list."
)
_ANY_ORDER = (
    "Write the answer as a list of {}, in square brackets, separated by commas, in any order."
)
_COUNTS = {2: "two", 3: "three", 4: "four"}
_TEN = 10
_CANDIDATES = 10  # number of random numbers from which a repair takes the best


class SumPuzzle(ListPuzzle):
    """A puzzle that asks for numbers of a list with a given sum.

    A subclass names the number of numbers to choose (``count``), or several (``chosen``, as in "one
    or more"). In that case it also states its sizes and lengths.
    """

    max_length = 64  # longer lists have too many sums of four numbers
    sizes: ClassVar[range]  # allowed counts of chosen numbers
    task: ClassVar[str]  # the statement, with {} for the count of numbers
    level = 5
    complexity = "O(2^N)"

    def __init_subclass__(cls, count: int | None = None, chosen: str | None = None) -> None:
        """Derive the statement, and what follows from a single count."""
        super().__init_subclass__()
        if count is not None:
            cls.sizes = range(count, count + 1)
            cls.min_length = count + 1
            cls.level = count
            cls.complexity = f"O(N^{count})"
            cls.statement = cls.task.format(_COUNTS[count]) + _ONCE
            cls.answer_rule = _ANY_ORDER.format(f"exactly {_COUNTS[count]} numbers")
        elif chosen is not None:
            cls.statement = cls.task.format(chosen) + _ONCE
            cls.answer_rule = _ANY_ORDER.format("the chosen numbers")

    @abstractmethod
    def is_wanted(self, total: int, parameters: tuple[int, ...]) -> bool:
        """Return True if a sum solves the puzzle."""

    def solve(self, instance: Instance) -> Answer:
        """Try all choices: O(N^s) if up to s of N numbers are chosen, O(2^N) for any count."""
        for size in self.sizes:
            for chosen in itertools.combinations(instance.rows[0], size):
                if self.is_wanted(sum(chosen), instance.parameters):
                    return chosen
        raise MalformedInput(
            f"{self.title}: {self.render(instance)!r} has no answer; pose it with numbers that have"
        )

    def accepts(self, instance: Instance, answer: Answer) -> bool:
        """Return True if the answer's numbers are in the list and their sum is right."""
        return (
            len(answer) in self.sizes
            and Counter(answer) <= Counter(instance.rows[0])
            and self.is_wanted(sum(answer), instance.parameters)
        )


class ExactSum(SumPuzzle):
    """A sum puzzle that asks for the sum k; exactly one choice of numbers has this sum."""

    parameter_names = ("k",)
    task = (
        "You are given a list of numbers $l$ and a number $k$. Choose {} numbers of the list whose "
        "sum is exactly $k$."
    )

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Draw k from the sums that exactly one choice of places in the list has."""
        if not self.fits(rows):
            return None
        sums = self.unique_sums(rows[0])
        return Instance(rows, (rng.choice(sums),)) if sums else None

    def unique_sums(self, numbers: Sequence[int]) -> list[int]:
        """Return the allowed values of k in ascending order."""
        counts = count_sums(numbers, self.sizes)
        return [total for total, count in counts.items() if count == 1]

    def is_wanted(self, total: int, parameters: tuple[int, ...]) -> bool:
        """Return True if the sum is k."""
        return parameters == (total,)


class SumInRange(SumPuzzle):
    """A sum puzzle that asks for the only possible sum between a and b."""

    parameter_names = ("a", "b")
    task = (
        "You are given a list of numbers $l$ and two numbers $a$ and $b$. Choose {} numbers of the "
        "list whose sum is greater than $a$ and less than $b$; a sum equal to $a$ or $b$ does not "
        "count."
    )
    is_unique: ClassVar[bool] = True  # if False, several choices may have the sum

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Draw a sum; a is the next smaller possible sum, and b the next larger one."""
        if not self.fits(rows):
            return None
        counts = count_sums(rows[0], self.sizes)
        sums = list(counts)
        inner = range(1, len(sums) - 1)
        places = [place for place in inner if counts[sums[place]] == 1 or not self.is_unique]
        if not places:
            return None
        place = rng.choice(places)
        return Instance(rows, (sums[place - 1], sums[place + 1]))

    def is_wanted(self, total: int, parameters: tuple[int, ...]) -> bool:
        """Return True if the sum is strictly between a and b."""
        low, high = parameters
        return low < total < high


class SumMultipleTen(SumPuzzle):
    """A sum puzzle that asks for a multiple of ten; exactly one choice has such a sum."""

    task = (
        "You are given a list of numbers. Choose {} numbers of the list whose sum is a multiple of "
        "10; a sum of 0 counts as one."
    )

    def is_valid(self, rows: Rows) -> bool:
        """Return True if exactly one choice has a sum that ten divides."""
        counts = count_remainders(rows[0], self.sizes[-1], divisor=_TEN)
        return sum(counts[size][0] for size in self.sizes) == 1

    def is_wanted(self, total: int, parameters: tuple[int, ...]) -> bool:
        """Return True if ten divides the sum."""
        return total % _TEN == 0

    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Replace a number by the best of some random ones, because few long lists are valid."""
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
        """Keep each number's last digit, so that ten divides the sums of the same choices."""
        return substitute_by_residue(values, universe, _TEN, rng)


Array = np.ndarray[Any, np.dtype[Any]]


def count_sums(numbers: Sequence[int], sizes: range) -> dict[int, int]:
    """Return the number of choices of ``sizes`` numbers for each sum; sums in ascending order.

    All sums are in memory: 635,376 for 4 of 64 numbers, 2^16 for subsets of 16.
    """
    # Use Python integers if a sum may exceed 64 bits.
    kind: type = np.int64 if sum(numbers) < 2**63 else object
    sums_of_size: list[Array] = [np.zeros(1, dtype=kind)]
    sums_of_size += [np.zeros(0, dtype=kind) for _ in range(sizes[-1])]
    for number in numbers:
        for size in range(sizes[-1], 0, -1):
            bigger = sums_of_size[size - 1] + number
            sums_of_size[size] = np.concatenate([sums_of_size[size], bigger])
    chosen = np.concatenate([sums_of_size[size] for size in sizes])
    sums, counts = np.unique(chosen, return_counts=True)
    return dict(zip(sums.tolist(), counts.tolist(), strict=True))


def count_remainders(numbers: Sequence[int], most: int, divisor: int) -> list[list[int]]:
    """Return how many choices of each size (0 to ``most``) have each remainder of their sum."""
    counts = [[0] * divisor for _ in range(most + 1)]
    counts[0][0] = 1
    for number in numbers:
        shift = number % divisor
        for size in range(most, 0, -1):
            smaller = counts[size - 1]
            shifted = smaller[-shift:] + smaller[:-shift] if shift else smaller
            counts[size] = list(map(operator.add, counts[size], shifted))
    return counts
