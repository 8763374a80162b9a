"""From what a model wrote to the items that it is asked: in distribution, and out of it.

An item in distribution (ID) is an example that the model wrote. The item out of it (OOD) of the
same number is the same example with other numbers: of the same length, equal where it was equal,
and none of them a number that the model ever wrote. The latter are taken from the puzzle's universe
(split ``ood``) or from the smallest numbers there are (``ood_near``), so that a difference can be
told from one of mere magnitude.

All that is drawn depends on model, puzzle, split, item and seed alone (``seeds.py``), and on what
was written, in whatever order it came.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from core.errors import MalformedInput
from core.puzzles import CellStatus, Split
from scylla.examples import Written
from scylla.puzzle import Instance, Puzzle, Rows
from scylla.seeds import generator_of

# More examples than are asked, as the paper has it: there they are shown, here they step in for
# those that no numbers out of distribution can stand for. 264 where 256 are asked.
SPARE_EXAMPLES = 8
_ENOUGH = 4  # times what is needed: more examples are not looked at, some take milliseconds
_REPAIRS = 50
_TRIES = 50

Method = Literal["unique", "frequency"]


@dataclass(frozen=True)
class Sampling:
    """How items are chosen.

    Attributes:
        num_items: in each split.
        method: ``unique``: all different examples are equally likely; ``frequency``: by how often
            the model wrote them. None is taken twice.
        seed: decides all that is drawn.
    """

    num_items: int = 256
    method: Method = "unique"
    seed: int = 0

    @property
    def min_examples(self) -> int:
        """How many different examples there must be."""
        return self.num_items + SPARE_EXAMPLES

    @property
    def max_examples(self) -> int:
        """After how many no more are looked for."""
        return _ENOUGH * self.min_examples


@dataclass(frozen=True)
class PuzzleData:
    """The items of one model and puzzle.

    Attributes:
        items: of each split; empty where the model wrote too few examples. There is no
            ``ood_near`` where the numbers that it takes are too few for the puzzle.
        num_id_elements: numbers that the model wrote.
        num_distinct_elements: of these.
        num_id_examples: different inputs that make the puzzle, repaired ones included; at most
            ``Sampling.max_examples``, 1,056 where 256 are asked.
        num_repaired: of these.
        reason: why there are no items.
    """

    items: Mapping[Split, tuple[Instance, ...]]
    num_id_elements: int
    num_distinct_elements: int
    num_id_examples: int
    num_repaired: int
    reason: str | None = None

    @property
    def status(self) -> CellStatus:
        """As the record of a cell says it."""
        return "complete" if self.reason is None else "insufficient_id_data"


@dataclass(frozen=True)
class _Target:
    """A split out of distribution, and the numbers that its items are made of."""

    split: Split
    universe: Sequence[int]
    items: list[Instance] = field(default_factory=list)


def sample_items(model: str, puzzle: Puzzle, written: Written, sampling: Sampling) -> PuzzleData:
    """Return the items that a model is asked.

    Raises:
        MalformedInput: the puzzle's ``transfer`` breaks its promise, which is a fault of ours.
    """
    seeds = (sampling.seed, model, puzzle.name)
    found = _instances(seeds, puzzle, written, sampling)
    items: Mapping[Split, tuple[Instance, ...]] = {}
    reason = f"the model wrote {len(found)} different inputs; {sampling.min_examples} are needed"
    if len(found) >= sampling.min_examples:
        items = _items(seeds, puzzle, found, written, sampling)
        reason = "the model wrote too many of the numbers that the puzzle takes for others"
    return PuzzleData(
        items=items,
        num_id_elements=written.elements.total(),
        num_distinct_elements=len(written.elements),
        num_id_examples=len(found),
        num_repaired=sum(instance.rows not in written.examples for instance in found),
        reason=None if items else reason,
    )


def _instances(
    seeds: tuple[str | int, ...], puzzle: Puzzle, written: Written, sampling: Sampling
) -> list[Instance]:
    """Return different inputs of the puzzle in the order in which they are drawn, if not all."""
    elements = sorted(written.elements.elements())
    # Lengths and shape are never mended.
    counts = {rows: count for rows, count in sorted(written.examples.items()) if puzzle.fits(rows)}
    found: dict[Rows, Instance] = {}
    for rows in _drawn(seeds, counts, sampling.method):
        instance = _posed(seeds, puzzle, rows, elements)
        if instance is not None:
            found.setdefault(instance.rows, instance)
        if len(found) == sampling.max_examples:
            break
    return list(found.values())


def _drawn(seeds: tuple[str | int, ...], counts: Mapping[Rows, int], method: Method) -> list[Rows]:
    """Return all examples in the order in which they are drawn, without replacement."""
    rng = generator_of(*seeds, "id")
    examples = list(counts)
    if method == "unique":
        return rng.sample(examples, len(examples))
    # Efraimidis and Spirakis 2006: the largest u ** (1 / weight) are a weighted sample.
    keys = {rows: rng.random() ** (1 / count) for rows, count in counts.items()}
    return sorted(examples, key=lambda rows: -keys[rows])


def _posed(
    seeds: tuple[str | int, ...], puzzle: Puzzle, rows: Rows, elements: Sequence[int]
) -> Instance | None:
    """Return the puzzle that an example makes, if need be after some steps of repair."""
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
    """Return the items of all splits, or of those that can be made; of none where ``ood`` cannot.

    An example that has no counterpart gives way to the next one, so that all splits keep pairs.
    """
    known = written.known
    far = [number for number in puzzle.universe if number not in known]
    near = _smallest_others(puzzle, written)
    for with_near in (True, False):
        targets = [_Target("ood", far)] + [_Target("ood_near", near)] * with_near
        chosen: list[Instance] = []
        for instance in order:
            if len(chosen) == sampling.num_items:
                break
            place = (*seeds, len(chosen))
            made = [_counterpart(place, puzzle, instance, target) for target in targets]
            items = [item for item in made if item is not None]
            if len(items) < len(targets):
                continue
            chosen.append(instance)
            for target, item in zip(targets, items, strict=True):
                target.items.append(item)
        if len(chosen) == sampling.num_items:
            _require_apart(puzzle, chosen, targets, written)
            made_of: dict[Split, tuple[Instance, ...]] = {"id": tuple(chosen)}
            return made_of | {each.split: tuple(each.items) for each in targets}
    return {}


def _smallest_others(puzzle: Puzzle, written: Written) -> list[int]:
    """Return as many numbers as the model wrote different ones: the smallest that it did not."""
    start = 1 if puzzle.input_shape == "matrix" else 0  # no distance is 0
    known = written.known
    others = (number for number in itertools.count(start) if number not in known)
    return list(itertools.islice(others, len(written.elements)))


def _counterpart(
    place: tuple[str | int, ...], puzzle: Puzzle, instance: Instance, target: _Target
) -> Instance | None:
    """Return an item of the same shape made of other numbers, unlike all before; None: no such."""
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
    """Check what makes splits comparable: other numbers, the same lengths, no item twice."""
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
    """Yield the numbers of an input; of a matrix not the zeros that each diagonal has."""
    for place, row in enumerate(instance.rows):
        for column, number in enumerate(row):
            if puzzle.input_shape != "matrix" or column != place:
                yield number
