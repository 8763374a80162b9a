"""Inputs of puzzles, drawn at random."""

from __future__ import annotations

import random

from scylla.puzzle import Instance, Puzzle, Rows


def instances_of(puzzle: Puzzle, count: int) -> list[Instance]:
    rng = random.Random(puzzle.name)
    made: list[Instance] = []
    while len(made) < count:
        rows = rows_of(puzzle, rng)
        instance = puzzle.pose(rows, rng)
        made += [] if instance is None else [instance]
    return made


def rows_of(puzzle: Puzzle, rng: random.Random) -> Rows:
    length = rng.randint(6, 9)
    if puzzle.input_shape == "matrix":
        size = rng.randint(4, 6)
        half = {(i, j): rng.randint(1, 99) for i in range(size) for j in range(i)}
        return tuple(
            tuple(half.get((max(i, j), min(i, j)), 0) for j in range(size)) for i in range(size)
        )
    count = 2 if puzzle.input_shape == "pair" else 1
    return tuple(tuple(rng.randint(0, 30) for _ in range(length)) for _ in range(count))
