"""Which puzzles there are: the modules of ``scylla/puzzles``."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections import Counter

import scylla.puzzles
from core.errors import UnknownName
from scylla.puzzle import Puzzle


@functools.cache
def list_puzzles() -> tuple[str, ...]:
    """Return the names of all puzzles, sorted."""
    return tuple(sorted(module.name for module in pkgutil.iter_modules(scylla.puzzles.__path__)))


@functools.cache
def count_anchors() -> tuple[int, ...]:
    """Return how many anchors there are at levels 1 to 5."""
    found = Counter(load_puzzle(name).level for name in list_puzzles())
    return tuple(found[level] for level in range(1, 6))


def load_puzzle(name: str) -> Puzzle:
    """Return a puzzle.

    Raises:
        UnknownName: there is none of that name; the message suggests the nearest.
    """
    if name not in list_puzzles():
        raise UnknownName("puzzle", name, list(list_puzzles()))
    puzzle: Puzzle = importlib.import_module(f"scylla.puzzles.{name}").PUZZLE
    return puzzle
