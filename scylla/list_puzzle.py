"""What puzzles about a list, or a pair of lists, have in common."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import ClassVar

from scylla.input_text import malformed, parse_lists, render_lists
from scylla.puzzle import Instance, Puzzle, Rows
from scylla.substitution import Substitution, substitute


class ListPuzzle(Puzzle):
    """A puzzle about one list or two.

    Attributes:
        parameter_names: as they stand in statement and input text.
    """

    parameter_names: ClassVar[tuple[str, ...]] = ()

    def render(self, instance: Instance) -> str:
        """Return the lists and parameters, each after its name; one list alone has none."""
        parameters = tuple((number,) for number in instance.parameters)
        return render_lists(self._input_names, instance.rows + parameters)

    def parse(self, text: str) -> Instance:
        """Return the input of a text that ``render`` gave.

        Raises:
            MalformedInput: names or numbers are not where they were expected.
        """
        lists = parse_lists(self._input_names, text)
        num_rows = len(lists) - len(self.parameter_names)
        rows, parameters = lists[:num_rows], lists[num_rows:]
        if any(len(numbers) != 1 for numbers in parameters):
            names = ", ".join(self.parameter_names)
            raise malformed(text, f"one number for each of {names}")
        return Instance(rows, tuple(number for (number,) in parameters))

    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Replace a number anywhere."""
        return replace_anywhere(rows, elements, rng)

    def transfer(self, rows: Rows, universe: Sequence[int], rng: random.Random) -> Rows | None:
        """Give equal numbers equal substitutes, and different ones different ones."""
        values = sorted({number for row in rows for number in row})
        images = self.substitute(values, universe, rng)
        if images is None:
            return None
        return tuple(tuple(images[number] for number in row) for row in rows)

    def substitute(
        self, values: Sequence[int], universe: Sequence[int], rng: random.Random
    ) -> Substitution | None:
        """Return a substitute for each value; None where the universe has too few numbers."""
        return substitute(values, universe, rng)

    @property
    def _input_names(self) -> tuple[str, ...]:
        if self.input_shape == "pair":
            return ("l_1", "l_2", *self.parameter_names)
        return ("l", *self.parameter_names) if self.parameter_names else ()


def replace_anywhere(rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
    """Return rows with one number, at any place, replaced by any of the elements."""
    place = rng.randrange(sum(map(len, rows)))
    row = 0
    while place >= len(rows[row]):
        place -= len(rows[row])
        row += 1
    return replace(rows, row, place, rng.choice(elements))


def replace(rows: Rows, row: int, place: int, number: int) -> Rows:
    """Return rows with another number at one place."""
    changed = rows[row][:place] + (number,) + rows[row][place + 1 :]
    return rows[:row] + (changed,) + rows[row + 1 :]
