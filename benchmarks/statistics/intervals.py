"""Check by simulation that 95 % intervals contain the true value as often as they should.

Simulated worlds with known true values (``worlds.py``) land as imported losses, and the views are
queried as analysts query them. The coverage is the share of intervals that contain the true value.
Each figure counts at most once per world and source, so the counts are independent. Cutoffs and low
months are measured by ``panels.py``.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

CONTRACT_WORLDS = 1_000  # with fewer worlds, Wilson's interval is compared with the bounds
_BATCH_DOCUMENTS = 1_500  # documents of all worlds in one warehouse, per source and month

Row = Mapping[str, Any]
Truth = Callable[[World, Row], Any]


@dataclass(frozen=True)
class Figure:
    """A figure (column) of a warehouse view, whose intervals are checked.

    Attributes:
        view: view or table macro to query.
        column: name of the figure.
        ends: what follows ``<column>_low`` and ``<column>_high`` in the names of the interval's
            ends. An interval for other documents has the truth of these months.
        truth: function that returns the true value for a world and a row of the view, or None to
            skip the row. Rows have names of MODELS and SOURCES; no ``source``: mean over sources.
        is_discrete: True for a rank, whose coverage may exceed 98 %.
    """

    view: str
    column: str
    truth: Truth
    is_discrete: bool = False
    ends: str = ""

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the lowest and highest accepted coverage."""
        return (0.92, 1.0) if self.is_discrete else (0.92, 0.98)


@dataclass
class Tally:
    """Per interval: True if the interval contains the true value; the width, if numeric."""

    covered: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    @property
    def coverage(self) -> float:
        """Return the share of intervals that contain the true value."""
        return sum(self.covered) / len(self.covered)

    def wilson(self) -> tuple[float, float]:
        """Return Wilson's 95 % interval of the coverage."""
        n, p, z2 = len(self.covered), self.coverage, 1.959963984540054**2
        middle = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n)
        return middle - half, middle + half

    def keeps(self, bounds: tuple[float, float]) -> bool:
        """Return True if the coverage, or with few worlds its interval, overlaps the bounds."""
        enough = len(self.covered) >= CONTRACT_WORLDS
        low, high = (self.coverage, self.coverage) if enough else self.wilson()
        return high >= bounds[0] and low <= bounds[1]


Tallies = dict[tuple[Figure, str], Tally]


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
    """Return a truth function: a weighted sum of mean losses before and after the cutoff.

    ``before`` and ``after`` are the weights. Rows of other models than "gap" are skipped.
    """

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
    """Return the true rank of model "gap" in one month of the world, else None."""
    number = (world.number * 7) % NUM_MONTHS
    if row["model"] != "gap" or row["month"] != (FIRST + number).first_day:
        return None
    of_source = world.monthly[:, SOURCES.index(row["source"]), number]
    return 1 + int((of_source < of_source[MODELS.index("gap")]).sum())


def of_pair(world: World, row: Row) -> float | None:
    """Return the true mean difference of models "gap" and "steady"; None for other pairs."""
    if {row["model"], row["other_model"]} != {"gap", "steady"}:
        return None
    other = curve(world, {**row, "model": row["other_model"]})
    return float((curve(world, row) - other).mean())


def of_adjusted_gap(world: World, row: Row) -> float | None:
    """Return the true gap of model "gap" minus the compressor's gap; else None."""
    if row["model"] != "gap":
        return None
    y = curve(world, row) - curve(world, {**row, "model": "control"})
    return float(y[NUM_BEFORE:].mean() - y[:NUM_BEFORE].mean())


_DECAY = "internal.decay_after_release_details"
_SPLIT = f"date '{FIRST + NUM_BEFORE}-01'"

FIGURES: tuple[Figure, ...] = (
    Figure("monthly_loss", "bits_per_byte", of_month),
    *(
        Figure(view, column, truth, ends="_documents")
        # These table macros return more intervals than the views without ``_at``.
        for view in (f"train_test_gap_at({_SPLIT})", f"train_test_gap_overall_at({_SPLIT})")
        for column, truth in (
            ("bits_per_byte_before", of_split(1, 0)),
            ("bits_per_byte_after", of_split(0, 1)),
            ("bits_per_byte_gap", of_split(-1, 1)),
            ("expected_next", of_split(-1, 2)),
        )
    ),
    Figure("tbi_likelihood", "tbi_per_month", of_slope),
    Figure("tbi_likelihood_overall", "tbi_per_month", of_slope),
    *(
        Figure(_DECAY, f"decay_{horizon}_pct", of_decay(horizon), ends="_documents")
        for horizon in (3, 6, 9, 12)
    ),
    Figure(_DECAY, "decay_mean_pct", of_decay(3, 6, 9, 12), ends="_documents"),
    *(
        Figure(f"{macro}(cast(null as date))", "adjusted_gap", of_adjusted_gap)
        for macro in ("control_adjusted_gap_at", "control_adjusted_gap_overall_at")
    ),
    Figure("monthly_rank", "rank", of_rank, is_discrete=True),
    Figure("model_difference", "difference", of_pair, ends="_documents"),
)


def measure(numbers: Sequence[int], num_documents: int) -> Tallies:
    """Simulate losses; return the tally of each figure and source ("both": mean over sources)."""
    tallies: Tallies = defaultdict(Tally)
    size = max(1, _BATCH_DOCUMENTS // num_documents)
    for first in range(0, len(numbers), size):
        batch = numbers[first : first + size]
        for figure, design, truth, low, high in _intervals(batch, num_documents):
            tally = tallies[figure, design]
            is_there = low is not None and high is not None
            tally.covered.append(is_there and low <= truth <= high)
            if is_there and not figure.is_discrete:
                tally.widths.append(high - low)
        print(f"{num_documents} documents: {first + len(batch)} worlds", file=sys.stderr)
    return tallies


def _intervals(
    numbers: Sequence[int], num_documents: int
) -> Iterator[tuple[Figure, str, Any, Any, Any]]:
    """Insert simulated losses; yield figure, source, true value and both interval ends."""
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
    view: str, worlds: Mapping[int, World], rows: Iterable[dict[str, Any]]
) -> Iterator[tuple[Figure, str, Any, Any, Any]]:
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
                yield figure, plain.get("source") or "both", truth, low, high


def _plain(value: Any) -> Any:
    """Return the name of a model or source without its world prefix; keep other values."""
    if value == CONTROL:
        return "control"
    return value.split("-", 2)[2] if str(value).startswith("world-") else value


def report(tallies: Tallies) -> list[str]:
    """Return the lines of a Markdown table, one row per tally."""
    lines = [
        "| view | figure | design | coverage | its 95 % interval | median width | |",
        "|---|---|---|--:|--:|--:|---|",
    ]
    in_order = sorted(tallies.items(), key=lambda item: (FIGURES.index(item[0][0]), item[0][1]))
    for (figure, design), tally in in_order:
        low, high = tally.wilson()
        width = f"{statistics.median(tally.widths):.4g}" if tally.widths else ""
        verdict = "" if tally.keeps(figure.bounds) else "OUTSIDE"
        lines.append(
            f"| {figure.view} | {figure.column} | {design} | {100 * tally.coverage:.1f} % "
            f"| {100 * low:.1f} to {100 * high:.1f} % | {width} | {verdict} |"
        )
    return lines


def main() -> int:
    """Print the coverage tables; return 0 if all coverages are within bounds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=CONTRACT_WORLDS)
    parser.add_argument("--documents", type=int, nargs="+", default=[30, 200], help="a month")
    arguments = parser.parse_args()
    failures = 0
    for num_documents in arguments.documents:
        began = time.monotonic()
        tallies = measure(range(arguments.worlds), num_documents)
        took = time.monotonic() - began
        print(
            f"\n### {arguments.worlds} worlds, {num_documents} documents a month ({took:.0f} s)\n"
        )
        print("\n".join(report(tallies)), flush=True)
        failures += sum(not tally.keeps(figure.bounds) for (figure, _), tally in tallies.items())
    print(f"\n{failures or 'no'} coverages outside 92 to 98 % (ranks: below 92 %)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
