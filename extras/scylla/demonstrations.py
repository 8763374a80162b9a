"""Demonstrations: solved puzzles that a prompt shows before the one that it asks.

Demonstrations of the asked puzzle are inputs of the same split that no item has: see ``sampling``.
Demonstrations of other puzzles have random inputs, with numbers of 0 to 99.
"""

from __future__ import annotations

import functools
import itertools
import random

from core.errors import MalformedInput
from extras.scylla.puzzle import Answer, Instance, Puzzle, Rows, list_puzzles, load_puzzle
from extras.scylla.sampling import generator_of

LARGEST = 99
_LENGTHS = (4, 5, 6, 6, 6, 7, 7, 8, 9, 10)
_CITIES = (4, 5, 5, 6)
_TRIES = 50


def render_answer(puzzle: Puzzle, answer: Answer) -> str:
    """Return an answer in the form that the puzzle's rule asks for: 3, or [1, 2]."""
    numbers = ", ".join(map(str, answer))
    return numbers if puzzle.answer_shape == "number" else f"[{numbers}]"


@functools.lru_cache(maxsize=64)
def draw_other_puzzles(asked: Puzzle, count: int, seed: int) -> tuple[tuple[Puzzle, Instance], ...]:
    """Return ``count`` inputs of other puzzles, of as many levels of complexity as possible.

    The choice depends only on the asked puzzle, the seed, and the set of all puzzles.
    """
    rng = generator_of(seed, asked.name, "varied")
    by_level: dict[int | None, list[Puzzle]] = {}
    for puzzle in map(load_puzzle, list_puzzles()):
        if puzzle.name != asked.name:
            by_level.setdefault(puzzle.level, []).append(puzzle)
    levels = rng.sample(list(by_level), len(by_level))
    orders = [rng.sample(by_level[level], len(by_level[level])) for level in levels]
    in_turn: list[Puzzle] = []
    for of_levels in itertools.zip_longest(*orders):
        in_turn += filter(None, of_levels)
    return tuple((puzzle, draw_instance(puzzle, rng)) for puzzle in in_turn[:count])


def draw_instance(puzzle: Puzzle, rng: random.Random) -> Instance:
    """Return a random input of a puzzle.

    Raises:
        MalformedInput: repairs make no valid input (a bug of the puzzle).
    """
    for _ in range(_TRIES):
        rows = draw_rows(puzzle, rng)
        for _ in range(_TRIES):
            instance = puzzle.pose(rows, rng)
            if instance is not None:
                return instance
            rows = puzzle.repair(rows, range(1, LARGEST + 1), rng)
    raise MalformedInput(f"{puzzle.name}: no random input is valid; mend the puzzle's module")


def draw_rows(puzzle: Puzzle, rng: random.Random) -> Rows:
    """Return random rows of a puzzle's shape, which may be no valid input."""
    if puzzle.input_shape == "matrix":
        return _distances(rng.choice(_CITIES), rng)
    row = _numbers(rng)
    if puzzle.input_shape == "list":
        return (row,)
    shared = row[: rng.randint(2, 3)]
    other = _numbers(rng)
    place = rng.randint(0, len(other))
    return (row, other[:place] + shared + other[place:])


def _numbers(rng: random.Random) -> tuple[int, ...]:
    return tuple(rng.randint(0, LARGEST) for _ in range(rng.choice(_LENGTHS)))


def _distances(size: int, rng: random.Random) -> Rows:
    """Return a symmetric matrix of random distances."""
    rows = [[0] * size for _ in range(size)]
    for one in range(size):
        for other in range(one):
            rows[one][other] = rows[other][one] = rng.randint(1, LARGEST)
    return tuple(map(tuple, rows))
