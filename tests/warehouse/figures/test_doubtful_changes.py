"""Changes that may be the source's: one that all models share, one that a single source shows."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from benchmarks.statistics.panels import CONTROL, Staggered
from benchmarks.statistics.power import measure, panel_of
from warehouse.estimates.bends import SHARED_LIMIT, may_be_shared
from warehouse.estimates.changes import ONE_SOURCE, Change, find_changes
from warehouse.estimates.pairs import ramp
from warehouse.estimates.panels import Curve, Curves, Panel, fit_curves
from warehouse.estimates.untreated import DatedCurve, date_cutoffs

Array = np.ndarray[Any, np.dtype[np.float64]]
SMALL = Staggered(num_models=3, num_months=24, apart=1, length=4)
MONTHS = np.arange(24)


def date(panel: Panel) -> list[DatedCurve]:
    return date_cutoffs(panel.losses, panel.cutoffs, panel.months, panel.regimes, panel.compressors)


def squares(curves: Array, owns: list[Array | None]) -> float:
    """Return the least squares of level + theta lambda + beta own, over all parameters at once."""
    num_models, num_months = curves.shape
    columns = [own for own in owns if own is not None]
    rows = [number for number, own in enumerate(owns) if own is not None]

    def left(figures: Array) -> Array:
        level, theta, difficulty, beta = np.split(
            figures, np.cumsum([num_models, num_models, num_months])
        )
        fitted = level[:, None] + (1 + theta)[:, None] * difficulty
        for row, own, slope in zip(rows, columns, beta, strict=True):
            fitted[row] += slope * own
        held = 100 * np.array([theta.sum(), difficulty.sum()])  # what the fit leaves open
        return np.append((curves - fitted).ravel(), held)

    first = np.concatenate([
        curves.mean(axis=1), np.zeros(num_models),
        curves.mean(axis=0) - curves.mean(), np.zeros(len(rows)),
    ])  # fmt: skip
    return float(2 * optimize.least_squares(left, first).cost)


@pytest.mark.parametrize(("gap", "source"), [(0.08, ""), (0.0, "break")])
def test_the_verdict_is_that_of_all_parameters_at_once(gap: float, source: str) -> None:
    design = replace(SMALL, gap=gap, source=source, is_shared=not source)
    worlds = [panel_of(*design.draw(1, number)[:3]) for number in range(8)]
    verdicts = []
    for panel in worlds:
        dated = date(panel)
        found = [each.cutoff if each.cutoff and each.cutoff.is_found else None for each in dated]
        if not any(found) or any(np.isnan(each.losses).any() for each in dated):
            continue
        curves = np.array([each.losses for each in dated])
        owns = [each and ramp(panel.months, each.start, each.end) for each in found]
        both = squares(curves, [None] * 3), squares(curves, owns)
        num_found = sum(each is not None for each in found)
        num_free = curves.size - 3 - 3 - (24 - 1) - num_found + 1
        ratio = (both[0] - both[1]) / both[1] * num_free / num_found
        verdict = may_be_shared(dated, panel.cutoffs, panel.months, panel.regimes)
        if abs(ratio - SHARED_LIMIT) > 0.2:  # sensitivities are fitted in three rounds
            assert verdict == (ratio < SHARED_LIMIT)
            verdicts.append(verdict)
    assert verdicts
    assert np.mean(verdicts) == pytest.approx(float(bool(source)), abs=0.2)


@pytest.mark.parametrize("source", ["bend", "break", "drift"])
def test_few_models_that_bend_alike_have_no_cutoff(source: str) -> None:
    null = replace(SMALL, length=8, gap=0, source=source, is_shared=False)
    shares = measure(null, 8, 0)  # before: up to 4 of 24
    assert shares.models == 24
    assert shares.found <= 0.06 * shares.models


def test_few_models_that_thin_out_have_one() -> None:
    shares = measure(SMALL, 6, 0)
    assert shares.found >= 0.8 * shares.models
    assert shares.covered >= 0.9 * shares.found


def test_models_of_one_stated_month_may_change_together() -> None:
    rng = np.random.default_rng(2)
    y = 1 + rng.normal(0, 0.003, (2, 24)) + 0.1 * (MONTHS > 11)
    compressor = 2 + rng.normal(0, 0.003, 24)
    for stated, is_told in (([11.0, 11.0], True), ([11.0, 14.0], False), ([5.0, 5.0], False)):
        changes = find_changes(panel_of(y, np.array(stated), compressor))
        assert [each.reason is None for each in changes] == [is_told] * 2, stated


def changes_of(steps: Array, num_sources: int, later: float = 0) -> list[Change]:
    """Date four models of staggered cutoffs; ``steps`` (sources,) has the first model's changes.

    In source s1 alone, the first model has a step of size ``later`` after month 18, too.
    """
    rng = np.random.default_rng(0)
    parts: dict[str, Curves] = {}
    ends = np.array([12, 6, 9, 16])
    for source in range(num_sources):
        sizes = np.array([steps[source], 0.05, 0.05, 0.05])
        rise = sizes[:, None] * (ends[:, None] < MONTHS)
        y = 1 + rng.normal(0, 0.02, 24) + rise + rng.normal(0, 0.004, (4, 24))
        y[0] += later * (source == 1) * (MONTHS > 18)
        rows = {f"m{number}": row for number, row in enumerate(y)}
        rows[CONTROL] = 2 + rng.normal(0, 0.02, 24)
        parts[f"s{source}"] = {
            name: Curve(
                {month: (float(bits), np.nan, None) for month, bits in enumerate(row)},
                is_compressor=name == CONTROL,
            )
            for name, row in rows.items()
        }
    means = {
        name: Curve(
            {
                month: (
                    float(np.mean([curves[name].figures[month][0] for curves in parts.values()])),
                    np.nan,
                    None,
                )
                for month in range(24)
            },
            is_compressor=name == CONTROL,
        )
        for name in parts["s0"]
    }
    cutoffs = {f"m{number}": float(end) for number, end in enumerate(ends)} | {CONTROL: np.nan}
    return find_changes(fit_curves(means, cutoffs, [{}] * num_sources, parts))


@pytest.mark.parametrize("num_sources", [2, 4])
def test_a_change_of_one_source_is_not_that_of_all(num_sources: int) -> None:
    alone = np.zeros(num_sources)
    alone[1] = 0.1
    reasons = [each.reason for each in changes_of(alone, num_sources)]
    assert reasons == [ONE_SOURCE.format("s1"), None, None, None]
    everywhere = np.full(num_sources, 0.05)
    first, *others = changes_of(everywhere, num_sources, later=0.3 * num_sources)
    assert (first.source, first.reason) == ("s1", None), "the other sources are dated"
    assert first.cutoff is not None
    assert first.cutoff.cutoff_low <= 12 <= first.cutoff.cutoff_high
    assert [each.source for each in others] == [None] * 3
    assert [each.reason for each in changes_of(everywhere, num_sources)] == [None] * 4
