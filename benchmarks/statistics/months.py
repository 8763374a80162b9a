"""Measure what the views tell of simulated months: gaps, growth, slopes, cutoffs, low months.

Worlds (``panels.py``) land as imported losses, and the views are queried. Figures are of the first
model and the first source, false alarms of all models.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from benchmarks.statistics.panels import CONTROL, FIRST, GAP, Design, designs, land
from benchmarks.statistics.tally import (
    AT_EDGE,
    FALSE_ALARM,
    FOUND,
    GRADUAL_END,
    GRADUAL_ONSET,
    NEAR_EDGE,
    NO_EFFECT,
    OF_COMPRESSOR,
    OVER_TIME,
    SEEN,
    TRUE_REASON,
    UNTOLD,
    Kind,
    Tally,
)
from core.month import Month
from core.settings import Settings
from warehouse.database.statements import Row
from warehouse.estimates.pairs import MIN_BEFORE
from warehouse.read.query import query

ALL = ", all sources"
# A figure of each view, with an interval over time; those of means over sources end in ALL.
COLUMNS = {
    "train_test_gap": "bits_per_byte_gap",
    f"train_test_gap{ALL}": "bits_per_byte_gap",
    "control_adjusted_gap": "adjusted_gap",
    f"control_adjusted_gap{ALL}": "adjusted_gap",
    "ageing": "growth_per_month",
    "effect_difference": "difference",
    "tbi_likelihood": "tbi_per_month",
    f"tbi_likelihood{ALL}": "tbi_per_month",
    "decay_by_horizon": "decay_mean_pct",
}
_SCOPED = ("train_test_gap", "control_adjusted_gap", "tbi_likelihood")
_FIRST_MODEL = "where model like 'model-%-0'"
_OF_CONTROL = (
    f"control_adjusted_gap where model = '{CONTROL}' "
    "and scope = 'source' and adjusted_gap is not null"
)

Rows = list[Row]
Shares = Iterator[tuple[str, Kind, list[bool]]]  # figure, kind, hits


def measure(names: Sequence[str], num_worlds: int, seed: int = 0) -> list[Tally]:
    """Land worlds of some designs; return what the views tell of them."""
    with tempfile.TemporaryDirectory(prefix="tidemark-worlds-") as home:
        settings = Settings(home=home)
        land(names, num_worlds, seed, settings)
        rows = {name: _read(settings, _rows_of_first(name), len(names)) for name in COLUMNS}
        cutoffs = _read(settings, f"estimated_cutoff {_FIRST_MODEL} and scope = 'all'", len(names))
        low = _read(settings, "suspected_contamination where is_suspected", len(names))
        told = _read(settings, _OF_CONTROL, len(names))
    tallies = []
    for key, name in enumerate(names):
        design = designs()[name]
        shares = [
            *_intervals(design, key, {view: found[key] for view, found in rows.items()}),
            *_cutoffs(design, cutoffs[key]),
            *_suspects(design, key, low[key], num_worlds),
        ]
        if design.are_pages or design.num_models == 1:
            hits = [number in _numbers(told[key]) for number in range(num_worlds)]
            shares.append((f"control_adjusted_gap of {CONTROL}", OF_COMPRESSOR, hits))
        for figure, kind, hits in shares:
            tallies.append(Tally(name, figure, kind, hits, design.known.get(figure)))
    return tallies


def _rows_of_first(figure: str) -> str:
    """Return the rows of a figure's view of the first model, by source or of the mean over them."""
    view = figure.removesuffix(ALL)
    if figure == "decay_by_horizon":
        return f"internal.decay_figures {_FIRST_MODEL}"
    if view not in _SCOPED:
        return f"{figure} {_FIRST_MODEL}"
    if figure == view:
        return f"{view} {_FIRST_MODEL} and scope = 'source'"
    return f"{view} select * exclude (source) {_FIRST_MODEL} and scope = 'all'"


def _read(settings: Settings, source: str, num_designs: int) -> list[Rows]:
    """Return the rows of a query by the number of their design, from the protocol."""
    rows: list[Rows] = [[] for _ in range(num_designs)]
    for row in query(settings, f"from {source}").to_pylist():
        rows[int(row["protocol"].partition("-")[0])].append(row)
    return rows


def _numbers(rows: Rows) -> set[int]:
    """Return the numbers of the worlds that rows are of."""
    return {int(row["protocol"].partition("-")[2]) for row in rows}


def truths(design: Design) -> dict[str, float]:
    """Return the true value of each view's figure; left out where it has none.

    A ramp has no single gap by the panel; a slope is that of a straight line. A seen month, a bend
    and another recipe change all figures. A break of the first model alone counts as gap, except in
    the panel.
    """
    if design.seen is not None or design.bend or design.recipe is not None:
        return {}
    y, months, end = design.expect(), np.arange(design.num_months), design.end
    is_after, is_there = months >= end, np.ones(design.num_months, bool)
    is_there[slice(*design.hole)] = False
    is_step, found = end == design.start + 1 and design.second is None, {}
    if is_after.any() and not is_after.all():
        if not design.missing and design.regime is None:
            gap = y[is_after & is_there].mean() - y[~is_after & is_there].mean()
            found["train_test_gap"] = float(gap)
            if 6 <= end <= design.num_months - 12 and is_there.all():
                rise = y[end : end + 12].mean() / y[end - 6 : end].mean() - 1
                found["decay_by_horizon"] = float(100 * rise)
        if is_step:
            own = float(design.gap + design.growth * (months - end + 1)[is_after].mean())
            found["control_adjusted_gap"] = own
            if design.num_models > 1:
                found["effect_difference"] = own - max(GAP, design.gap)
    if is_step and is_after.any():
        found["ageing"] = design.growth
    if not (design.has_change or design.site_break or design.season or design.regime):
        found["tbi_likelihood"] = design.drift
    if design.num_sources > 1:
        overall = {f"{view}{ALL}": value for view, value in found.items()}
        found |= {view: value for view, value in overall.items() if view in COLUMNS}
    return {view: value for view, value in found.items() if view not in design.untold}


def _intervals(design: Design, key: int, rows: dict[str, Rows]) -> Shares:
    """Yield the shares of intervals with the truth, or of those without 0 if it is 0."""
    wanted = {"source": f"news-{key}-0", "effect": "gap", "other_model": f"model-{key}-1"}
    for view, column in COLUMNS.items():
        true = truths(design).get(view)
        ends = [
            (row[f"{column}_low"], row[f"{column}_high"])
            for row in rows[view]
            if all(row.get(name, value) == value for name, value in wanted.items())
        ]
        told = [low is not None for low, _ in ends]
        inside = [low <= (true or 0) <= high for low, high in ends if low is not None]
        if view in design.untold:
            yield view, UNTOLD, told
        elif true == 0:
            yield view, NO_EFFECT, [not is_inside for is_inside in inside]
        elif true is not None:
            yield view, OVER_TIME, inside


def _cutoffs(design: Design, rows: Rows) -> Shares:
    """Yield the shares of cutoffs that are found, and of found months in their intervals."""
    hits = [row["is_at_edge"] is not None for row in rows]
    found = [row for row, is_found in zip(rows, hits, strict=True) if is_found]
    if not design.has_change:
        yield "estimated_cutoff", NO_EFFECT, hits
        return
    yield "estimated_cutoff, found", FOUND, hits
    end, onset = (GRADUAL_END, GRADUAL_ONSET) if design.is_gradual else (OVER_TIME, OVER_TIME)
    if design.end < MIN_BEFORE:
        end, onset = NEAR_EDGE, NEAR_EDGE
    # After the second step there is no text.
    last = FIRST + (design.end - 1 if design.second is None else design.second)
    first = FIRST + min(design.start + 1, design.end - 1)
    yield "estimated_cutoff", end, [_has(row, "estimated_cutoff", last) for row in found]
    told = [row for row in found if not row["is_at_edge"]]
    yield "estimated_cutoff.cutoff_onset", onset, [_has(row, "cutoff_onset", first) for row in told]
    if design.end < MIN_BEFORE:
        reasons = [row["reason"] for row in rows if row["is_at_edge"] is None]
        yield "estimated_cutoff.reason", TRUE_REASON, [_leaves_out(each, last) for each in reasons]
    if design.is_at_edge:
        at_edge = [row["is_at_edge"] and row["estimated_cutoff_high"] is None for row in found]
        yield "estimated_cutoff.is_at_edge", AT_EDGE, at_edge


def _leaves_out(reason: str, month: Month) -> bool:
    """Return True if a reason says that no change was found in months without ``month``."""
    ends = re.match(r"no change found from (\S{7}) to (\S{7});", reason)
    return ends is not None and not ends[1] <= str(month) <= ends[2]


def _has(row: Row, name: str, month: Month) -> bool:
    """Return True if the interval of a month, whose ends may be open, has ``month``."""
    low, high, day = row[f"{name}_low"], row[f"{name}_high"], month.first_day
    return (low is None or low <= day) and (high is None or high >= day)


def _suspects(design: Design, key: int, rows: Rows, num_worlds: int) -> Shares:
    """Yield the shares of worlds in which unseen and seen months are suspected."""
    planted = set()
    if design.seen is not None:
        day = (FIRST + design.seen).first_day
        planted = {(f"model-{key}-{number}", day) for number in range(design.seen_by)}
    suspects: list[set[tuple[str, Any]]] = [set() for _ in range(num_worlds)]
    for row in rows:
        [number] = _numbers([row])
        suspects[number].add((row["model"], row["month"]))
    alarms = [bool(found - planted) for found in suspects]
    yield "suspected_contamination", FALSE_ALARM, alarms
    if planted:
        is_found = [(f"model-{key}-0", day) in found for found in suspects]
        yield "suspected_contamination, seen", SEEN, is_found
