"""What a puzzle is: how its inputs are made, shown and solved, and which answers are right."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

Rows = tuple[tuple[int, ...], ...]
Answer = tuple[int, ...]
InputShape = Literal["list", "pair", "matrix"]
AnswerShape = Literal["number", "list"]


@dataclass(frozen=True)
class Instance:
    """A puzzle's input.

    Attributes:
        rows: of non-negative integers: one of a list, two of a pair of lists, n of an n by n
            matrix.
        parameters: what is asked of them: a rank, a sum, the two ends of a range; else none.
    """

    rows: Rows
    parameters: tuple[int, ...] = ()


class Puzzle(ABC):
    """One of the twenty; a subclass has no state.

    Attributes:
        title: for people, and in the prompt for inputs: ``Two Sum``.
        statement: what is asked, in a sentence or two, for both prompts.
        answer_rule: how the answer is to be written, and of how many numbers it is.
        level: 1 to 5, of an anchor, by the time that a known algorithm takes: O(N), between O(N)
            and O(N^2), … O(N^4), O(2^N). None: a probe, whose algorithms span several levels.
        complexity: of the algorithm, such as ``O(N^2)``; of a probe the span, ``O(N) to O(2^N)``.
        input_shape: a list of numbers, two lists, or a square matrix.
        answer_shape: a number, or a list in brackets.
        min_length: least numbers in a list (each of two), or rows of a matrix.
        max_length: most; None: any number.
        universe: what numbers out of distribution are taken from.
    """

    title: ClassVar[str]
    statement: ClassVar[str]
    answer_rule: ClassVar[str]
    level: ClassVar[int | None]
    complexity: ClassVar[str]
    input_shape: ClassVar[InputShape] = "list"
    answer_shape: ClassVar[AnswerShape] = "list"
    min_length: ClassVar[int] = 2
    max_length: ClassVar[int | None] = None
    universe: ClassVar[range] = range(1000, 10_000)

    @property
    def name(self) -> str:
        """The file's name: ``two_sum``."""
        return type(self).__module__.rpartition(".")[2]

    def fits(self, rows: Rows) -> bool:
        """Whether rows have lengths and shape of this puzzle, and no number is negative.

        What does not fit, no repair can mend: it keeps lengths and shape.
        """
        if self.input_shape == "matrix":
            lengths = {len(rows), *map(len, rows)}
            is_shape = len(lengths) == 1
        else:
            lengths = set(map(len, rows))
            is_shape = len(rows) == (1 if self.input_shape == "list" else 2)
        most = max(lengths, default=0) if self.max_length is None else self.max_length
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
        """Return the input of a text that ``render`` gave.

        Raises:
            MalformedInput: the text is no such input.
        """

    @abstractmethod
    def pose(self, rows: Rows, rng: random.Random) -> Instance | None:
        """Draw the parameters; None where these rows make no puzzle.

        Post-conditions are the puzzle's own (``Validity`` of its docstring): a unique mode, a sum
        that one pair alone has. None, too, where lengths or shape are not those of the puzzle.
        """

    @abstractmethod
    def solve(self, instance: Instance) -> Answer:
        """Return one right answer; the docstring says in which time."""

    @abstractmethod
    def accepts(self, instance: Instance, answer: Answer) -> bool:
        """Whether an answer is right; every right one is accepted, whichever ``solve`` gives."""

    @abstractmethod
    def repair(self, rows: Rows, elements: Sequence[int], rng: random.Random) -> Rows:
        """Change rows towards a puzzle, in one random step, with numbers from ``elements`` alone.

        No number is added or left out: length and shape stay.

        Args:
            rows: that fit, and that ``pose`` refuses.
            elements: what the model wrote, each as often as it did, sorted; one at least.
            rng: of this example.
        """

    @abstractmethod
    def transfer(self, rows: Rows, universe: Sequence[int], rng: random.Random) -> Rows | None:
        """Return rows of the same shape, made of numbers of ``universe`` alone.

        What is alike stays alike: equal numbers become equal ones, and whatever else the puzzle
        needs of its inputs (residues, runs) is kept. None where the universe has too few numbers.

        Args:
            rows: in distribution, which ``pose`` accepts.
            universe: different numbers to choose from, sorted.
            rng: of this item.
        """
