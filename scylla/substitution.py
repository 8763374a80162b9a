"""Maps of numbers to others, one to one, by which a puzzle's input gets numbers it never had."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence

_GUESSES = 20  # at a room for a run, before all places are looked at
_PLACEMENTS = 50  # tries to lay out runs, before the universe counts as too small for them

Substitution = dict[int, int]


def substitute(
    values: Sequence[int], universe: Sequence[int], rng: random.Random
) -> Substitution | None:
    """Give each value another number of the universe; None where there are too few."""
    if len(universe) < len(values):
        return None
    return dict(zip(values, rng.sample(universe, len(values)), strict=True))


def substitute_by_residue(
    values: Sequence[int], universe: Sequence[int], modulus: int, rng: random.Random
) -> Substitution | None:
    """Likewise, and a number and its substitute have the same remainder."""
    choices: list[list[int]] = [[] for _ in range(modulus)]
    for number in universe:
        choices[number % modulus].append(number)
    images: Substitution = {}
    for residue in sorted({value % modulus for value in values}):
        alike = [value for value in values if value % modulus == residue]
        chosen = substitute(alike, choices[residue], rng)
        if chosen is None:
            return None
        images |= chosen
    return images


def substitute_by_run(
    values: Sequence[int], universe: Sequence[int], rng: random.Random
) -> Substitution | None:
    """Likewise, and each run v, v+1, … of values becomes a run, next to which no other stands.

    So runs are as many and as long as they were.
    """
    runs = _runs_of(values)
    for _ in range(_PLACEMENTS):
        starts = _place([len(run) for run in runs], universe, rng)
        if starts is not None:
            return {
                value: start + step
                for run, start in zip(runs, starts, strict=True)
                for step, value in enumerate(run)
            }
    return None


def _runs_of(values: Sequence[int]) -> list[list[int]]:
    """Split numbers into runs, the longest first: these are the hardest to place."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return sorted(runs, key=len, reverse=True)


def _place(lengths: Sequence[int], universe: Sequence[int], rng: random.Random) -> list[int] | None:
    """Return where runs start, none next to another; None where one found no room."""
    taken: set[int] = set()  # with the two numbers beside each run
    starts = []
    for length in lengths:
        start = _find_room(length, universe, taken, rng)
        if start is None:
            return None
        starts.append(start)
        taken.update(range(start - 1, start + length + 1))
    return starts


def _find_room(
    length: int, universe: Sequence[int], taken: set[int], rng: random.Random
) -> int | None:
    """Draw the start of a free run of the universe; None where there is none."""

    def is_room(index: int) -> bool:
        start = universe[index]
        return universe[index + length - 1] == start + length - 1 and taken.isdisjoint(
            range(start, start + length)
        )

    indices = range(len(universe) - length + 1)
    for _ in range(_GUESSES if indices else 0):
        index = rng.choice(indices)
        if is_room(index):
            return universe[index]
    rooms = [index for index in indices if is_room(index)]
    return universe[rng.choice(rooms)] if rooms else None


def contains(ordered: Sequence[int], number: int) -> bool:
    """Whether a number is among others that are sorted; of a hundred thousand it reads a few."""
    index = bisect_left(ordered, number)
    return index < len(ordered) and ordered[index] == number
