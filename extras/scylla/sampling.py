"""Sampling of items in distribution (ID) and out of distribution (OOD) from a model's texts.

An ID item is an example that the model wrote. The OOD item with the same index is the same example
with other numbers: it has equal length, and places with equal numbers still have equal numbers. No
number of an OOD item occurs in the model's texts. Split ``ood`` uses numbers of the puzzle's
universe. Split ``ood_near`` uses the smallest unused numbers, to show the effect of magnitude.

Random choices depend only on model, puzzle, split, item, seed and the texts, not on the texts'
order. Each puzzle, split and item has its own random generator, seeded with a hash.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import random
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from core.cells.puzzles import CellStatus, Split
from core.errors import MalformedInput
from extras.scylla.puzzle import Instance, Puzzle, Rows
from extras.scylla.texts import Written

# The paper samples 264 examples for 256 questions and shows the other 8 in prompts. Here, the 8
# examples replace examples for which no OOD item can be made.
SPARE_EXAMPLES = 8
_ENOUGH = 4  # maximum number of inputs to find, as a multiple of the needed examples
_REPAIRS = 50
_TRIES = 50

Method = Literal["unique", "frequency"]


@dataclass(frozen=True)
class Sampling:
    """The parameters of sampling without replacement."""

    num_items: int = 256  # number of items in each split
    # Weights of distinct examples: all equal ("unique"), or the counts in texts ("frequency").
    method: Method = "unique"
    seed: int = 0
    num_demonstrations: int = 0  # number of further inputs in each split, at most SPARE_EXAMPLES

    @property
    def min_examples(self) -> int:
        """The minimum number of distinct examples."""
        return self.num_items + SPARE_EXAMPLES


@dataclass(frozen=True)
class PuzzleData:
    """The items of one model and puzzle."""

    # Items by split; empty if the model wrote too few examples. Split ``ood_near`` is missing if
    # there are too few unused numbers for the puzzle.
    items: Mapping[Split, tuple[Instance, ...]]
    num_id_elements: int  # count of all numbers in the model's lists, repetitions included
    num_distinct_elements: int  # count of distinct numbers in the model's lists
    num_id_examples: int  # number of distinct inputs found, repaired ones included
    num_repaired: int  # number of repaired inputs in ``num_id_examples``
    reason: str | None = None  # reason why there are no items, or None if there are items
    # Inputs to show in prompts, by split; no item has one of them.
    demonstrations: Mapping[Split, tuple[Instance, ...]] = field(default_factory=dict)

    @property
    def status(self) -> CellStatus:
        """The status that is stored in the cell's record."""
        return "complete" if self.reason is None else "insufficient_id_data"


@dataclass(frozen=True)
class _Target:
    split: Split
    universe: Sequence[int]
    items: list[Instance] = field(default_factory=list)


def sample_items(model: str, puzzle: Puzzle, written: Written, sampling: Sampling) -> PuzzleData:
    """Return the items of all splits for a model and a puzzle.

    Raises:
        MalformedInput: the puzzle's ``transfer`` violates its contract (a bug).
    """
    seeds = (sampling.seed, model, puzzle.name)
    found = _instances(seeds, puzzle, written, sampling)
    items: Mapping[Split, tuple[Instance, ...]] = {}
    reason = f"the model wrote {len(found)} different inputs; {sampling.min_examples} are needed"
    if len(found) >= sampling.min_examples:
        items = _items(seeds, puzzle, found, written, sampling)
        reason = "the model wrote too many of the numbers that the puzzle takes for others"
    asked = sampling.num_items
    num_shown = sampling.num_demonstrations
    return PuzzleData(
        items={split: each[:asked] for split, each in items.items()},
        demonstrations={split: each[asked:] for split, each in items.items() if num_shown},
        num_id_elements=written.elements.total(),
        num_distinct_elements=len(written.elements),
        num_id_examples=len(found),
        num_repaired=sum(instance.rows not in written.examples for instance in found),
        reason=None if items else reason,
    )


def _instances(
    seeds: tuple[str | int, ...], puzzle: Puzzle, written: Written, sampling: Sampling
) -> list[Instance]:
    """Return distinct inputs of the puzzle in drawing order; stop when there are enough."""
    elements = sorted(written.elements.elements())
    # Skip examples that do not fit: a repair never changes lengths or shape.
    counts = {rows: count for rows, count in sorted(written.examples.items()) if puzzle.fits(rows)}
    found: dict[Rows, Instance] = {}
    for rows in _drawn(seeds, counts, sampling.method):
        instance = _posed(seeds, puzzle, rows, elements)
        if instance is not None:
            found.setdefault(instance.rows, instance)
        if len(found) == _ENOUGH * sampling.min_examples:
            break
    return list(found.values())


def _drawn(seeds: tuple[str | int, ...], counts: Mapping[Rows, int], method: Method) -> list[Rows]:
    """Return all examples in the random order of drawing without replacement."""
    rng = generator_of(*seeds, "id")
    examples = list(counts)
    if method == "unique":
        return rng.sample(examples, len(examples))
    # Sorting by u ** (1 / weight) gives a weighted sample (Efraimidis and Spirakis 2006).
    keys = {rows: rng.random() ** (1 / count) for rows, count in counts.items()}
    return sorted(examples, key=lambda rows: -keys[rows])


def _posed(
    seeds: tuple[str | int, ...], puzzle: Puzzle, rows: Rows, elements: Sequence[int]
) -> Instance | None:
    """Return an example as input of the puzzle, repaired if needed, or None if that fails."""
    rng = generator_of(*seeds, "example", str(rows))
    instance = puzzle.pose(rows, rng)
    for _ in range(_REPAIRS):
        if instance is not None:
            break
        rows = puzzle.repair(rows, elements, rng)
        instance = puzzle.pose(rows, rng)
    return instance


def _items(
    seeds: tuple[str | int, ...],
    puzzle: Puzzle,
    order: Sequence[Instance],
    written: Written,
    sampling: Sampling,
) -> Mapping[Split, tuple[Instance, ...]]:
    """Return the items of all possible splits, each followed by its demonstrations.

    Return nothing if split ``ood`` is impossible.
    An example for which no OOD item can be made is skipped, so that all splits have paired items.
    """
    known = written.known
    far = [number for number in puzzle.universe if number not in known]
    # As many of the smallest numbers as the lists have; distances between cities are never 0.
    smallest = itertools.count(1 if puzzle.input_shape == "matrix" else 0)
    others = (number for number in smallest if number not in known)
    near = list(itertools.islice(others, len(written.elements)))
    wanted = sampling.num_items + sampling.num_demonstrations
    for with_near in (True, False):
        targets = [_Target("ood", far)]
        if with_near:
            targets.append(_Target("ood_near", near))
        chosen: list[Instance] = []
        for instance in order:
            if len(chosen) == wanted:
                break
            place = (*seeds, len(chosen))
            made = [_counterpart(place, puzzle, instance, target) for target in targets]
            items = [item for item in made if item is not None]
            if len(items) < len(targets):
                continue
            chosen.append(instance)
            for target, item in zip(targets, items, strict=True):
                target.items.append(item)
        if len(chosen) == wanted:
            _require_apart(puzzle, chosen, targets, written)
            made_of: dict[Split, tuple[Instance, ...]] = {"id": tuple(chosen)}
            return made_of | {each.split: tuple(each.items) for each in targets}
    return {}


def _counterpart(
    place: tuple[str | int, ...], puzzle: Puzzle, instance: Instance, target: _Target
) -> Instance | None:
    """Return an OOD item: an ID item's shape with other numbers, or None if impossible."""
    for attempt in range(_TRIES):
        rng = generator_of(*place, target.split, attempt)
        rows = puzzle.transfer(instance.rows, target.universe, rng)
        if rows is None:
            return None
        item = puzzle.pose(rows, rng)
        if item is not None and item not in target.items:
            return item
    return None


def _require_apart(
    puzzle: Puzzle, chosen: Sequence[Instance], targets: Sequence[_Target], written: Written
) -> None:
    """Raise MalformedInput unless splits have disjoint numbers, equal lengths, distinct items."""
    for target in targets:
        for instance, item in zip(chosen, target.items, strict=True):
            lengths = [list(map(len, each.rows)) for each in (instance, item)]
            known = sorted(set(_numbers(puzzle, item)) & written.known)
            if lengths[0] != lengths[1] or known:
                raise MalformedInput(
                    f"{puzzle.name}: transfer made {item.rows} of {instance.rows}; expected equal "
                    f"lengths and none of the numbers {known}; mend the puzzle's module"
                )
        if len({*target.items}) < len(target.items):
            raise MalformedInput(f"{puzzle.name}: an item of split {target.split} is there twice")


def _numbers(puzzle: Puzzle, instance: Instance) -> Iterator[int]:
    for place, row in enumerate(instance.rows):
        for column, number in enumerate(row):
            if puzzle.input_shape != "matrix" or column != place:
                yield number


def seed_of(*parts: str | int) -> int:
    """Return a 64-bit hash of the parts, such as a model, a puzzle and an index."""
    text = json.dumps(parts, ensure_ascii=True)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


def generator_of(*parts: str | int) -> random.Random:
    """Return a random generator seeded with the parts."""
    return random.Random(seed_of(*parts))  # noqa: S311 - not for security


_GUESSES = 20  # number of random tries to place one run, before all places are searched
_PLACEMENTS = 50  # number of tries to place all runs, before ``substitute_by_run`` gives up

Substitution = dict[int, int]


def substitute(
    values: Sequence[int], universe: Sequence[int], rng: random.Random
) -> Substitution | None:
    """Map values to different numbers of the universe; return None if there are too few numbers."""
    if len(universe) < len(values):
        return None
    return dict(zip(values, rng.sample(universe, len(values)), strict=True))


def substitute_by_residue(
    values: Sequence[int], universe: Sequence[int], modulus: int, rng: random.Random
) -> Substitution | None:
    """Map values as ``substitute`` does; keep each value's remainder modulo ``modulus``."""
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
    """Map values as ``substitute`` does; map each run v, v+1, … to a separate run."""
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
    """Split numbers into runs v, v+1, …; the longest, which are hard to place, come first."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and runs[-1][-1] == value - 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return sorted(runs, key=len, reverse=True)


def _place(lengths: Sequence[int], universe: Sequence[int], rng: random.Random) -> list[int] | None:
    """Return start numbers of runs that do not touch, or None if a run does not fit."""
    taken: set[int] = set()  # numbers of placed runs, and their neighbours
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
    """Return the start of a free run of numbers, chosen at random; None if there is none."""

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
    """Return True if a sorted sequence contains a number (binary search)."""
    index = bisect_left(ordered, number)
    return index < len(ordered) and ordered[index] == number
