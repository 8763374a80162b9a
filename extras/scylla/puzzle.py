"""The interface of puzzles, and functions that find the puzzles in the folder ``puzzles/``."""

from __future__ import annotations

import functools
import importlib
import pkgutil
import random
import re
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from core.errors import UnknownName
from extras.scylla import puzzles

Rows = tuple[tuple[int, ...], ...]
Answer = tuple[int, ...]
InputShape = Literal["list", "pair", "matrix"]
AnswerShape = Literal["number", "list"]


@dataclass(frozen=True)
class Instance:
    """A puzzle's input.

    Attributes:
        rows: non-negative integers: one row for a list, two for a pair, n for an n by n matrix.
        parameters: parameters of the question: a rank, a sum, or both ends of a range.
    """

    rows: Rows
    parameters: tuple[int, ...] = ()


class Puzzle(ABC):
    """A puzzle; a subclass has no state."""

    title: ClassVar[str]  # name in reports and prompts, such as ``Two Sum``
    statement: ClassVar[str]  # the task, as stated in both prompts (see ``texts.py``)
    answer_rule: ClassVar[str]  # format of the answer
    # Difficulty of an anchor (a puzzle of known running time): 1 for O(N), 2 up to O(N^2), … 4 for
    # O(N^4), 5 for O(2^N). None for a probe, a puzzle whose algorithms differ in running time.
    level: ClassVar[int | None]
    complexity: ClassVar[str]  # running time, such as ``O(N^2)``; probe: ``O(N) to O(2^N)``
    input_shape: ClassVar[InputShape] = "list"
    answer_shape: ClassVar[AnswerShape] = "list"
    min_length: ClassVar[int] = 2  # minimum length of each list, or number of rows
    max_length: ClassVar[int | None] = None  # maximum length or number of rows, or None
    universe: ClassVar[range] = range(1000, 10_000)  # numbers for items of split ``ood``

    @property
    def name(self) -> str:
        """Name of the puzzle: that of its class, such as ``two_sum`` for ``TwoSum``."""
        return re.sub(r"(?<!^)(?=[A-Z])", "_", type(self).__name__).lower()

    def fits(self, rows: Rows) -> bool:
        """Return True if rows have this puzzle's lengths and shape, and no negative number.

        ``repair`` never changes lengths or shape.
        """
        lengths = set(map(len, rows))
        if self.input_shape == "matrix":
            is_shape = lengths == {len(rows)}
        else:
            is_shape = len(rows) == (1 if self.input_shape == "list" else 2)
        most = self.max_length or max(lengths, default=0)
        return (
            is_shape
            and all(self.min_length <= length <= most for length in lengths)
            and all(number >= 0 for row in rows for number in row)
        )

    @abstractmethod
    def render(self, instance: Instance) -> str:
        """Return the input as text, for a prompt."""

    @abstractmethod
    def parse(self, text: str) -> Instance:
        """Return the input from a text of ``render``; raise MalformedInput for other texts."""

    def is_valid(self, rows: Rows) -> bool:
        """Return True if rows meet ``Validity`` in the docstring of the puzzle's file or class."""
        return True

    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Return the rows as an input, with randomly drawn parameters if the puzzle has any.

        Return None if the rows do not fit or are not valid.
        """
        return Instance(rows) if self.fits(rows) and self.is_valid(rows) else None

    @abstractmethod
    def solve(self, instance: Instance) -> Answer:
        """Return one right answer; an override's docstring states the running time."""

    def accepts(self, instance: Instance, answer: Answer) -> bool:
        """Return True if an answer is right; override it if several answers can be right."""
        return answer == self.solve(instance)

    @abstractmethod
    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Change rows that fit by one random step towards validity; keep lengths and shape.

        ``elements`` are the numbers to use: all numbers that the model wrote, with repetitions,
        sorted, at least one.
        """

    @abstractmethod
    def transfer(self, rows: Rows, universe: Sequence[int], rng: random.Random) -> Rows | None:
        """Return rows of the same shape with numbers of ``universe`` only.

        Equal numbers stay equal. Properties that the puzzle needs (remainders, runs) are kept.
        ``pose`` accepts ``rows``. The universe is sorted, without duplicates. Return None if the
        universe has too few numbers.
        """


def list_puzzles() -> tuple[str, ...]:
    """Return the names of all puzzles, sorted."""
    return tuple(sorted(find_puzzles()))


@functools.cache
def find_puzzles() -> dict[str, Puzzle]:
    """Return all puzzles by name: ``PUZZLE`` or ``PUZZLES`` of each file of ``puzzles/``."""
    names = (each.name for each in pkgutil.iter_modules(puzzles.__path__))
    modules = (importlib.import_module(f"{puzzles.__name__}.{name}") for name in names)
    found = (getattr(each, "PUZZLES", None) or (each.PUZZLE,) for each in modules)
    return {puzzle.name: puzzle for several in found for puzzle in several}


@functools.cache
def count_anchors() -> tuple[int, ...]:
    """Return the number of anchors (puzzles with a level) at each level, 1 to 5."""
    found = Counter(puzzle.level for puzzle in find_puzzles().values())
    return tuple(found[level] for level in range(1, 6))


def load_puzzle(name: str) -> Puzzle:
    """Return a puzzle by name; raise UnknownName if there is no such puzzle."""
    if name not in find_puzzles():
        raise UnknownName("puzzle", name, list(list_puzzles()))
    return find_puzzles()[name]
