"""Paths of straight lines in few letters: relative coordinates, in tenths of a pixel."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

Point = tuple[int, int]  # tenths of a pixel


def svg_path(points: Sequence[Point]) -> str:
    """Return a path through points."""
    # Differences are taken between rounded positions, so that errors do not add up.
    steps = [
        _short(after[0] - before[0]) + _separated(_short(after[1] - before[1]))
        for before, after in itertools.pairwise(points)
    ]
    lines = steps[0] + "".join(map(_separated, steps[1:]))
    return f"M{_short(points[0][0])}{_separated(_short(points[0][1]))}l{lines}"


def _short(tenths: int) -> str:
    """Return a number of tenths without needless digits, such as ``-.3`` or ``12``."""
    text = f"{abs(tenths) / 10:.1f}".removesuffix(".0")
    return ("-" if tenths < 0 else "") + (text.removeprefix("0") or "0" if tenths else "0")


def _separated(number: str) -> str:
    """Return a number with a space before it, unless its sign separates it."""
    return number if number.startswith("-") else f" {number}"
