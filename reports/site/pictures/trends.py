"""Small lines of the board: how far each model is above its level, over all months."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

WIDTH = 60  # pixels
HEIGHT = 20
MAX_POINTS = 13  # each is the mean of successive months


@dataclass(frozen=True)
class Trend:
    """A line as an SVG path, and its last value."""

    path: str
    last: float


def trends_of(rows: pl.DataFrame) -> Mapping[str, Trend]:
    """Return the line of each model; all have the same scales.

    ``rows`` has the columns model, month and rise.
    """
    if rows.is_empty():
        return {}
    months = rows["month"].unique().sort()
    last = max(1, min(MAX_POINTS, len(months)) - 1)
    place = pl.col("month").rank("dense") - 1
    points = (
        rows.with_columns(x=(place * last / max(1, len(months) - 1)).round().cast(pl.Int64))
        .group_by("model", "x")
        .agg(pl.mean("rise"))
        .sort("model", "x")
        .drop_nulls()
    )
    low = points["rise"].min()
    high = points["rise"].max()
    scale = (HEIGHT - 2) / ((high - low) or 1)  # type: ignore[operator]
    drawn = points.with_columns(
        px=(pl.col("x") * WIDTH / last).round().cast(pl.Int64),
        py=(HEIGHT - 1 - (pl.col("rise") - low) * scale).round().cast(pl.Int64),
    )
    return {
        str(model): Trend(_path(line["px"].to_list(), line["py"].to_list()), line["rise"][-1])
        for [model], line in drawn.partition_by("model", as_dict=True).items()
        if line.height > 1
    }


def _path(xs: list[int], ys: list[int]) -> str:
    """Return straight lines through points, relative; a minus sign replaces the space."""
    steps = [
        f"{x - before_x}{'' if y < before_y else ' '}{y - before_y}"
        for before_x, x, before_y, y in zip(xs, xs[1:], ys, ys[1:], strict=False)
    ]
    return f"M{xs[0]} {ys[0]}l{' '.join(steps)}"
