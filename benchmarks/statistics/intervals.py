"""Measure the coverage of intervals for other documents, in simulated worlds of documents.

Worlds with known true values (``worlds.py``) land as imported losses, and the views are queried as
analysts query them. Each figure counts at most once per world and source, so the counts are
independent. Other figures of months are measured by ``months.py``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.statistics.tally import OF_DOCUMENTS, OVER_TIME, Kind, Tally
from benchmarks.statistics.worlds import (
    CONTROL,
    FIRST,
    MODELS,
    NUM_BEFORE,
    NUM_MONTHS,
    SOURCES,
    World,
    catalogue,
    simulate,
)
from core.settings import Settings
from warehouse.database.statements import Row
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

# Number of documents a source and month, by the name of the worlds.
WORLDS = {f"{number} documents a month": number for number in (30, 200)}
_BATCH_DOCUMENTS = 1_500  # documents of all worlds in one warehouse, per source and month

# True value for a world and a row, or None to skip the row. Rows have names of MODELS and SOURCES;
# without ``source``, they are of the mean over sources.
Truth = Callable[[World, Row], Any]


@dataclass(frozen=True)
class Figure:
    """A figure (column) of a view or table macro, whose intervals are checked."""

    view: str
    column: str
    truth: Truth
    # Follows ``<column>_low`` and ``<column>_high`` in the names of the interval's ends. An
    # interval for other documents has the truth of these months.
    ends: str = ""
    kind: Kind = OF_DOCUMENTS


def curve(world: World, row: Row) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the true bits per byte of the row's model and source, one number per month."""
    of_model = world.monthly[MODELS.index(row["model"])]
    if row.get("source") is None:
        return np.asarray(of_model.mean(axis=0))
    return np.asarray(of_model[SOURCES.index(row["source"])])


def of_month(world: World, row: Row) -> float | None:
    """Return the true bits per byte of model "gap" in one month of the world, else None."""
    number = world.number % NUM_MONTHS
    is_counted = row["model"] == "gap" and row["month"] == (FIRST + number).first_day
    return float(curve(world, row)[number]) if is_counted else None


def of_split(before: float, after: float) -> Truth:
    """Return a truth function of model "gap": mean losses around the cutoff, with weights."""

    def truth(world: World, row: Row) -> float | None:
        if row["model"] != "gap":
            return None
        y = curve(world, row)
        return float(before * y[:NUM_BEFORE].mean() + after * y[NUM_BEFORE:].mean())

    return truth


def of_slope(world: World, row: Row) -> float | None:
    """Return the true drift in bits per byte per month for model "steady", else None."""
    if row["model"] != "steady":
        return None
    source = row.get("source")
    return float(world.drift.mean() if source is None else world.drift[SOURCES.index(source)])


def of_decay(*horizons: int) -> Truth:
    """Return a truth function: the mean decay in % at horizons (months after the cutoff)."""

    def truth(world: World, row: Row) -> float | None:
        if row["model"] != "gap":
            return None
        y = curve(world, row)
        base = y[NUM_BEFORE - 6 : NUM_BEFORE].mean()
        ends = [NUM_BEFORE + horizon for horizon in horizons]
        return float(np.mean([100 * (y[end - 3 : end].mean() / base - 1) for end in ends]))

    return truth


def of_rank(world: World, row: Row) -> int | None:
    """Return the true rank of model "gap" in one month after its cutoff, else None.

    Compressors have no rank.
    """
    number = NUM_BEFORE + (world.number * 7) % (NUM_MONTHS - NUM_BEFORE)
    if row["model"] != "gap" or row["month"] != (FIRST + number).first_day:
        return None
    of_models = world.monthly[:2, SOURCES.index(row["source"]), number]
    return 1 + int((of_models < of_models[MODELS.index("gap")]).sum())


def of_pair(world: World, row: Row) -> float | None:
    """Return the true mean difference of models "gap" and "steady" after the cutoff, or None."""
    if {row["model"], row["other_model"]} != {"gap", "steady"}:
        return None
    other = curve(world, {**row, "model": row["other_model"]})
    return float((curve(world, row) - other)[NUM_BEFORE:].mean())


def of_adjusted_gap(world: World, row: Row) -> float | None:
    """Return the true gap of model "gap" minus the compressor's gap; else None."""
    if row["model"] != "gap":
        return None
    y = curve(world, row) - curve(world, {**row, "model": "control"})
    return float(y[NUM_BEFORE:].mean() - y[:NUM_BEFORE].mean())


_DECAY = "internal.decay_figures"
_SPLIT = f"date '{FIRST + NUM_BEFORE}-01'"

FIGURES: tuple[Figure, ...] = (
    Figure("monthly_loss", "bits_per_byte", of_month),
    *(
        # This table macro returns more intervals than the view without ``_at``.
        Figure(f"train_test_gap_at({_SPLIT})", column, truth, ends="_documents")
        for column, truth in (
            ("bits_per_byte_before", of_split(1, 0)),
            ("bits_per_byte_after", of_split(0, 1)),
            ("bits_per_byte_gap", of_split(-1, 1)),
            ("expected_next", of_split(-1, 2)),
        )
    ),
    Figure("tbi_likelihood", "tbi_per_month", of_slope, kind=OVER_TIME),
    *(
        Figure(_DECAY, f"decay_{horizon}_pct", of_decay(horizon), ends="_documents")
        for horizon in (3, 6, 9, 12)
    ),
    Figure(_DECAY, "decay_mean_pct", of_decay(3, 6, 9, 12), ends="_documents"),
    *(
        Figure(f"{macro}(cast(null as date))", "adjusted_gap", of_adjusted_gap)
        for macro in (
            "internal.control_adjusted_gap_at",
            "internal.control_adjusted_gap_overall_at",
        )
    ),
    Figure("monthly_rank", "rank", of_rank),
    Figure("model_difference", "difference", of_pair, ends="_documents"),
)


def measure(names: Sequence[str], num_worlds: int, seed: int = 0) -> list[Tally]:
    """Simulate worlds; return a tally of each figure and source ("both": mean over sources)."""
    tallies: dict[tuple[str, str, int], Tally] = {}
    for name in names:
        size = max(1, _BATCH_DOCUMENTS // WORLDS[name])
        for first in range(0, num_worlds, size):
            # Numbers of worlds with another seed do not meet these.
            numbers = range(first + 10**6 * seed, min(first + size, num_worlds) + 10**6 * seed)
            for figure, design, is_covered in _intervals(numbers, WORLDS[name]):
                view = figure.view.partition("(")[0]
                column = f"{view}.{figure.column}"
                tally = Tally(f"{name}, {design}", column, figure.kind)
                key = (name, design, FIGURES.index(figure))
                tallies.setdefault(key, tally).hits.append(is_covered)
    return [tallies[key] for key in sorted(tallies)]


def _intervals(numbers: Sequence[int], num_documents: int) -> Iterator[tuple[Figure, str, bool]]:
    """Insert simulated losses; yield figure, source, and True if the interval has the truth."""
    worlds, losses = simulate(numbers, num_documents)
    by_number = {world.number: world for world in worlds}
    with tempfile.TemporaryDirectory(prefix="tidemark-worlds-") as home:
        settings = Settings(home=home)
        with open_warehouse(settings) as warehouse:
            warehouse.land_losses(losses, "simulated worlds")
            warehouse.upsert_models(catalogue(worlds))
        publish(settings)
        for view in dict.fromkeys(figure.view for figure in FIGURES):
            rows = query(settings, f"from {view}").to_pylist()
            yield from _of_view(view, by_number, rows)


def _of_view(
    view: str, worlds: Mapping[int, World], rows: Iterable[Row]
) -> Iterator[tuple[Figure, str, bool]]:
    """Yield each figure of a view's rows with True if its interval has the planted value."""
    figures = [figure for figure in FIGURES if figure.view == view]
    for row in rows:
        names = [value for value in row.values() if str(value).startswith("world-")]
        if not names:
            continue  # this row is a mean over all worlds, not of one world
        world = worlds[int(names[0].split("-")[1])]
        plain = {key: _plain(value) for key, value in row.items()}
        for figure in figures:
            if (truth := figure.truth(world, plain)) is not None:
                low, high = (row[f"{figure.column}_{end}{figure.ends}"] for end in ("low", "high"))
                is_covered = low is not None and high is not None and low <= truth <= high
                yield figure, plain.get("source") or "both", is_covered


def _plain(value: Any) -> Any:
    """Return the name of a model or source without its world prefix; keep other values."""
    if value == CONTROL:
        return "control"
    return value.split("-", 2)[2] if str(value).startswith("world-") else value
