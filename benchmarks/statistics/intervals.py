"""Check the coverage of 95 % intervals by simulation, for each figure.

Worlds of a known truth (``worlds.py``) land as imported losses, and the views are queried as
analysts query them. The coverage is the share of intervals that hold the truth. A figure counts
once a world and source, so that the worlds are independent.
"""

from __future__ import annotations

import argparse
import datetime as dt
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

CONTRACT_WORLDS = 1_000  # with fewer, a figure fails only where chance does not explain it
_BATCH_DOCUMENTS = 1_500  # of a source and month, over all worlds that share a warehouse

Row = Mapping[str, Any]
Truth = Callable[[World, Row], Any]


@dataclass(frozen=True)
class Figure:
    """A figure that is checked.

    Attributes:
        view: is queried.
        column: its interval is ``<column>_low`` to ``<column>_high``.
        truth: the true value, given the world and the row; None if the row does not count.
            Models and sources are named as in MODELS and SOURCES. A view without ``source`` is of
            the mean over both.
        is_discrete: a rank or a month: intervals may be wider, as bounds move in steps.
    """

    view: str
    column: str
    truth: Truth
    is_discrete: bool = False

    @property
    def bounds(self) -> tuple[float, float]:
        """Return the lowest and highest coverage allowed."""
        return (0.92, 1.0) if self.is_discrete else (0.92, 0.98)


@dataclass
class Tally:
    """Counts of intervals that hold the truth, with their widths if these are numbers."""

    covered: list[bool] = field(default_factory=list)
    widths: list[float] = field(default_factory=list)

    @property
    def coverage(self) -> float:
        """Return the share of intervals that hold the truth."""
        return sum(self.covered) / len(self.covered)

    def wilson(self) -> tuple[float, float]:
        """Return the coverage's own 95 % interval (Wilson's)."""
        n, p, z2 = len(self.covered), self.coverage, 1.959963984540054**2
        middle = (p + z2 / (2 * n)) / (1 + z2 / n)
        half = math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n)
        return middle - half, middle + half

    def keeps(self, bounds: tuple[float, float]) -> bool:
        """Return True if the coverage is within bounds, given the number of worlds."""
        enough = len(self.covered) >= CONTRACT_WORLDS
        low, high = (self.coverage, self.coverage) if enough else self.wilson()
        return high >= bounds[0] and low <= bounds[1]


Tallies = dict[tuple[Figure, str], Tally]


def curve(world: World, row: Row) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the true monthly figures of the row's model and source (or the mean over both)."""
    of_model = world.monthly[MODELS.index(row["model"])]
    if row.get("source") is None:
        return np.asarray(of_model.mean(axis=0))
    return np.asarray(of_model[SOURCES.index(row["source"])])


def of_month(world: World, row: Row) -> float | None:
    """Return the true figure of one month, another one in each world."""
    number = world.number % NUM_MONTHS
    is_counted = row["model"] == "gap" and row["month"] == (FIRST + number).first_day
    return float(curve(world, row)[number]) if is_counted else None


def of_split(before: float, after: float) -> Truth:
    """Make the truth of ``before`` times the mean before the cutoff and ``after`` times that after.

    The model with a gap counts.
    """

    def truth(world: World, row: Row) -> float | None:
        if row["model"] != "gap":
            return None
        y = curve(world, row)
        return float(before * y[:NUM_BEFORE].mean() + after * y[NUM_BEFORE:].mean())

    return truth


def of_slope(world: World, row: Row) -> float | None:
    """Return the drift: shocks of single months are chance. The model without a gap counts."""
    if row["model"] != "steady":
        return None
    source = row.get("source")
    return float(world.drift.mean() if source is None else world.drift[SOURCES.index(source)])


def of_decay(*horizons: int) -> Truth:
    """Make the true mean decay in % at horizons; the release is in the month after the cutoff."""

    def truth(world: World, row: Row) -> float | None:
        if row["model"] != "gap":
            return None
        y = curve(world, row)
        base = y[NUM_BEFORE - 6 : NUM_BEFORE].mean()
        ends = [NUM_BEFORE + horizon for horizon in horizons]
        return float(np.mean([100 * (y[end - 3 : end].mean() / base - 1) for end in ends]))

    return truth


def of_rank(world: World, row: Row) -> int | None:
    """Return the true rank in one month, another one in each world."""
    number = (world.number * 7) % NUM_MONTHS
    if row["model"] != "gap" or row["month"] != (FIRST + number).first_day:
        return None
    of_source = world.monthly[:, SOURCES.index(row["source"]), number]
    return 1 + int((of_source < of_source[MODELS.index("gap")]).sum())


def of_pair(world: World, row: Row) -> float | None:
    """Return the true mean difference of the two models that are no compressors."""
    if {row["model"], row["other_model"]} != {"gap", "steady"}:
        return None
    other = curve(world, {**row, "model": row["other_model"]})
    return float((curve(world, row) - other).mean())


def of_adjusted_gap(world: World, row: Row) -> float | None:
    """Return the true gap less that of the compressor; the model with a gap counts."""
    if row["model"] != "gap":
        return None
    y = curve(world, row) - curve(world, {**row, "model": "control"})
    return float(y[NUM_BEFORE:].mean() - y[:NUM_BEFORE].mean())


def of_cutoff(_: World, row: Row) -> dt.date | None:
    """Return the cutoff of the model with a gap, where the view estimates one."""
    is_counted = row["model"] == "gap" and row["estimated_cutoff"] is not None
    return (FIRST + (NUM_BEFORE - 1)).first_day if is_counted else None


_SPLIT = f"date '{FIRST + NUM_BEFORE}-01'"

FIGURES: tuple[Figure, ...] = (
    Figure("monthly_loss", "bits_per_byte", of_month),
    *(
        Figure(view, column, truth)
        # The views have fewer intervals than their table macros.
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
        Figure("internal.decay_after_release_details", f"decay_{horizon}_pct", of_decay(horizon))
        for horizon in (3, 6, 9, 12)
    ),
    Figure("internal.decay_after_release_details", "decay_mean_pct", of_decay(3, 6, 9, 12)),
    Figure("control_adjusted_gap", "adjusted_gap", of_adjusted_gap),
    Figure("control_adjusted_gap_overall", "adjusted_gap", of_adjusted_gap),
    Figure("estimated_cutoff", "estimated_cutoff", of_cutoff, is_discrete=True),
    Figure("monthly_rank", "rank", of_rank, is_discrete=True),
    Figure("model_difference", "difference", of_pair),
)


def measure(numbers: Sequence[int], num_documents: int) -> Tallies:
    """Count over worlds how often each figure's interval has the truth, by figure and design."""
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
    """Land worlds in a warehouse of their own; yield figure, design, truth, low and high."""
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
            continue  # the compressor's mean over the sources of all worlds
        world = worlds[int(names[0].split("-")[1])]
        plain = {key: _plain(value) for key, value in row.items()}
        for figure in figures:
            if (truth := figure.truth(world, plain)) is not None:
                low, high = row[f"{figure.column}_low"], row[f"{figure.column}_high"]
                yield figure, plain.get("source") or "both", truth, low, high


def _plain(value: Any) -> Any:
    """Return the name of a model or source without its world; other values as they are."""
    if value == CONTROL:
        return "control"
    return value.split("-", 2)[2] if str(value).startswith("world-") else value


def report(tallies: Tallies) -> list[str]:
    """Return the table's lines."""
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
    """Return the exit code: 0 if every figure keeps the contract."""
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
    print(f"\n{failures or 'no'} coverages outside 92 to 98 % (ranks and months: below 92 %)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
