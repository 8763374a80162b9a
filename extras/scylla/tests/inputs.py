import itertools
import random
from collections.abc import Sequence

from hypothesis import strategies as st

from extras.scylla.puzzle import Instance, Puzzle, Rows

_TRIES = 50


def draw_rows(puzzle: Puzzle, rng: random.Random, highest: int, longest: int) -> Rows:
    """Rows of the puzzle's shape with numbers up to ``highest``; most are no valid input."""

    def numbers(length: int) -> tuple[int, ...]:
        return tuple(rng.randint(0, highest) for _ in range(length))

    def length() -> int:
        return rng.randint(puzzle.min_length, longest)

    if puzzle.input_shape == "matrix":
        size = length()
        return tuple(numbers(size) for _ in range(size))
    return tuple(numbers(length()) for _ in range(1 if puzzle.input_shape == "list" else 2))


def pose_with_repair(
    puzzle: Puzzle, rows: Rows, elements: Sequence[int], rng: random.Random
) -> Instance | None:
    for _ in range(_TRIES):
        instance = puzzle.pose(rows, rng)
        if instance is not None:
            return instance
        rows = puzzle.repair(rows, elements, rng)
    return puzzle.pose(rows, rng)


def instances_of(puzzle: Puzzle, count: int) -> list[Instance]:
    rng = random.Random(puzzle.name)
    posed = (
        pose_with_repair(puzzle, draw_rows(puzzle, rng, 30, 9), range(1, 100), rng)
        for _ in range(100 * count)
    )
    return list(itertools.islice((each for each in posed if each is not None), count))


@st.composite
def instances(draw: st.DrawFn, puzzle: Puzzle, longest: int = 8) -> Instance:
    rng = random.Random(draw(st.integers(0, 2**32)))
    highest = draw(st.sampled_from([4, 9, 30, 100, 9999]))
    longest = max(longest, puzzle.min_length)
    for _ in range(_TRIES):
        rows = draw_rows(puzzle, rng, highest, longest)
        elements = sorted(rng.randint(0, highest) for _ in range(60))
        instance = pose_with_repair(puzzle, rows, elements, rng)
        if instance is not None:
            return instance
    raise AssertionError(f"{puzzle.name}: no input up to {highest} is valid")
