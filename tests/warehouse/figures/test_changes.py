"""Cutoffs and low months against plain loops and planted worlds; the views' cases are exact."""

import csv
import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.statistics.panels import NOISE, Design
from core.month import Month
from warehouse.estimates.changes import find_changes
from warehouse.estimates.contamination import fit_without_low_months, measure_shortfalls
from warehouse.estimates.cutoffs import CutoffFit, fit_cutoff
from warehouse.estimates.difficulty import Difficulty, Floats
from warehouse.estimates.pairs import INTERVAL_LIMIT, Hinges, find_rises, ramp
from warehouse.estimates.panel import fit_panel
from warehouse.estimates.panels import EPOCH, Curve, fit_curves
from warehouse.estimates.regression import Regression


def by_loops(y: Floats, months: Floats, difficulty: Difficulty) -> dict[str, float]:
    """Fit every pair of months by whitened least squares with all columns at once."""
    seen = ~np.isnan(y)
    y, x = y[seen], months[seen]
    columns = np.column_stack([np.ones(len(y)), difficulty.values[seen]])
    assert difficulty.covariance is not None
    error = difficulty.covariance[np.ix_(seen, seen)]
    pairs = [
        (a, b)
        for a, b in itertools.product(np.arange(x[0], x[-1] + 1), repeat=2)
        if a < b <= a + 24 and (x <= a).sum() >= 3 and (x > a).sum() >= 2
    ]
    covariance, free = np.eye(len(y)), len(y) - 5
    for last in (False, False, False, True):
        whiten = np.linalg.inv(np.linalg.cholesky(covariance))
        squares, slopes, lefts, thetas = [], [], [], []
        for a, b in pairs:
            design = np.column_stack([columns, ramp(x, a, b)])
            figures = np.linalg.lstsq(whiten @ design, whiten @ y)[0]
            if figures[2] < 0:
                design, figures = columns, np.linalg.lstsq(whiten @ columns, whiten @ y)[0]
            left = y - design @ figures
            squares.append(np.sum((whiten @ left) ** 2))
            slopes.append(figures[-1])
            lefts.append(left)
            thetas.append(figures[1])
        best = int(np.argmin(squares))
        if last:
            break
        left, theta = lefts[best], thetas[best]
        variance = left @ left / (len(y) - 3)
        own = max(variance - theta**2 * np.trace(error) / len(y), 0.2 * variance)
        is_next = np.diff(x) == 1
        r = np.mean((left[:-1] * left[1:])[is_next]) / np.mean(left**2)
        r = np.clip(r + (1 + 4 * r) / len(y), 0, 0.9)
        covariance = r ** np.abs(x[:, None] - x) + theta**2 * error / own
    inside = np.array(squares) - squares[best] <= INTERVAL_LIMIT * squares[best] / free
    ends = np.array([b - 1 for _, b in pairs])[inside]
    return {"low": ends.min(), "high": ends.max(), "best": squares[best] / free}


@pytest.mark.parametrize("number", range(6))
def test_a_fit_is_that_of_plain_loops(number: int) -> None:
    design = Design(10, 10 + 1 + 2 * number, num_months=30, missing=0.1 * (number % 3), gap=0.06)
    y = design.draw(np.random.default_rng(number))[:-1]
    months = np.arange(30)
    difficulty = fit_panel(y, design.cutoffs, months).difficulty_without(0)
    assert difficulty is not None
    fit = fit_cutoff(y[0], months, difficulty)
    assert isinstance(fit, CutoffFit)
    expected = by_loops(y[0], months.astype(float), difficulty)
    seen = months[~np.isnan(y[0])]
    low, high = expected["low"], expected["high"]
    assert np.isnan(fit.cutoff_low) if low <= seen[2] else fit.cutoff_low == low
    assert np.isnan(fit.cutoff_high) if high >= seen[-3] else fit.cutoff_high == high
    assert low <= fit.cutoff <= high
    assert 0.2 * NOISE**2 < expected["best"] < 5 * NOISE**2


@pytest.mark.parametrize("number", range(10))
def test_of_equal_fits_in_a_hole_the_first_is_taken(number: int) -> None:
    design = Design(18, 19, gap=0.3, hole=(16, 20))
    fit = fit_first(design, number)
    assert (fit.onset, fit.cutoff) == (15, 15), "the last month with figures before the hole"


def fit_first(design: Design, number: int) -> CutoffFit:
    """Fit the first model of a world."""
    y = design.draw(np.random.default_rng(number))[:-1]
    difficulty = fit_panel(y, design.cutoffs, np.arange(36)).difficulty_without(0)
    assert difficulty is not None
    fit = fit_cutoff(y[0], np.arange(36), difficulty)
    assert fit is not None
    return fit


def test_growth_without_a_jump_has_the_cutoff_in_its_interval() -> None:
    fits = [fit_first(Design(gap=0, growth=0.003), number) for number in range(30)]
    assert sum(not fit.cutoff_low > 17 and np.isnan(fit.cutoff_high) for fit in fits) >= 27
    found = [fit.cutoff for fit in fits if fit.is_growth]
    assert len(found) >= 20
    assert abs(np.median(found) - 17) <= 1
    assert not any(fit_first(Design(gap=0.1), number).is_growth for number in range(10))


def test_growth_that_is_slow_at_first_has_its_begin_in_the_interval() -> None:
    """Formerly, the interval began with the months in which the growth is plain."""
    months = np.arange(48)
    covered = np.zeros(2, dtype=int)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = 0.02 * rng.normal(size=48)
        difficulty = Difficulty(values, np.ones((48, 1)) / 48**0.5, 1e-6 * np.eye(48))
        losses = 1 + values + 0.0002 * np.maximum(months - 20, 0.0) ** 2
        fit = fit_cutoff(losses + 0.003 * rng.normal(size=48), months, difficulty)
        assert fit is not None and fit.is_found and fit.is_growth
        covered += [not each.cutoff_low > 20 for each in (fit, fit.begun_slowly())]
    assert covered[0] < 10
    assert covered[1] >= 18
    step = fit_first(Design(gap=0.1), 0)
    assert step.begun_slowly() is step


def test_two_rises_are_told() -> None:
    fits = [fit_first(Design(11, 12, second=23, gap=0.1), number) for number in range(10)]
    rises = [fit.rises for fit in fits if fit.rises and fit.rises.is_found and fit.is_found]
    assert len(rises) >= 9
    assert sum((each.first.month, each.second.month) == (11, 23) for each in rises) >= 9
    assert all(each.first.low <= 11 <= each.first.high for each in rises)
    assert all(each.second.low <= 23 <= each.second.high for each in rises)


ONE_CHANGE = {
    "step": Design(gap=0.1),
    "step, noise AR(0.5)": Design(memory=0.5),
    "ramp": Design(12, 24, gap=0.1),
    "growth": Design(gap=0, growth=0.003),
    "step, then growth": Design(gap=0.06, growth=0.003),
    "ramp, then growth": Design(10, 18, gap=0.06, growth=0.003),
}


@pytest.mark.parametrize("name", ONE_CHANGE)
def test_one_change_is_not_two(name: str) -> None:
    fits = [fit_first(ONE_CHANGE[name], number) for number in range(20)]
    assert sum(fit.rises is not None and fit.rises.is_found for fit in fits) <= 1
    assert sum(fit.is_found for fit in fits) >= 15, "there is a change"


def test_two_rises_are_those_of_plain_least_squares() -> None:
    """V = I, so that all squares are those of ordinary regressions."""
    rng = np.random.default_rng(4)
    months = np.arange(20)
    y = 0.1 * (months > 6) + 0.1 * (months > 12) + 0.02 * rng.normal(size=20)
    hinges = np.maximum(months[:, None] - months, 0.0)
    centred = hinges - hinges.mean(axis=0)
    own = Hinges(months, centred.T @ y, centred.T @ centred, 20 * float(np.var(y)), 0)
    starts = np.arange(2, 18)
    pairs = [(a, b) for a in starts for b in range(a + 1, 20)]
    starts_of_pairs, ends = np.array(pairs).T
    found = find_rises(own, starts, (starts_of_pairs, ends), 0.0, 15)
    assert found is not None

    def squares(*columns: Floats) -> float:
        design = np.column_stack([np.ones(20), *columns])
        left = y - design @ np.linalg.lstsq(design, y)[0]
        return float(left @ left)

    steps = {
        (j, k): squares(months > j, months > k)
        for j, k in itertools.combinations(starts, 2)
        if k - j >= 3
    }
    best = min(steps, key=lambda pair: steps[pair])
    single = min(squares(ramp(months, a, b), np.maximum(months - b, 0)) for a, b in pairs)
    statistic = (single - steps[best]) / (steps[best] / 15) * 15 / 17
    assert (found.first.month, found.second.month) == best
    assert found.p_value == pytest.approx(min(1, np.exp(0.5 - statistic / 2)))


def test_a_falling_curve_has_no_change_at_a_regime() -> None:
    """The first ramp that is tried begins with the regime, and no ramp rises."""
    months = np.arange(24)
    regime = (months >= 3).astype(float)
    unknown, _ = np.linalg.qr(np.column_stack([np.ones(24), regime]))
    for seed in range(3):
        rng = np.random.default_rng(seed)
        values = 0.02 * rng.normal(size=24)
        difficulty = Difficulty(values, unknown, 1e-6 * np.eye(24))
        falling = 1 + values - 0.01 * months + 0.003 * rng.normal(size=24)
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            fit = fit_cutoff(falling, months, difficulty)
        assert fit is not None
        assert not fit.is_found
        assert fit.step_error < 0.05, "the fall is left in the residuals"


def test_a_compressor_of_equal_losses_says_nothing_of_the_months() -> None:
    """What is left of its difficulty is rounding, which no model may be fitted to."""
    months = np.arange(16)
    unknown = np.ones((16, 1)) / 4
    values = 1e-15 * np.random.default_rng(0).normal(size=16)
    difficulty = Difficulty(values, unknown, 1e-4 * np.eye(16))
    losses = np.where(months > 7, 1.4, 1.0)
    curve = Regression.of(losses, months, difficulty)
    assert not curve.columns[:, -1].any()
    assert curve.num_free == 15


def test_a_curve_of_zeros_has_no_change() -> None:
    """Formerly, one such table stopped publication."""
    difficulty = Difficulty(np.zeros(24), np.ones((24, 1)) / 24**0.5)
    fit = fit_cutoff(np.zeros(24), np.arange(24), difficulty)
    assert fit is not None
    assert not fit.is_found
    found = measure_shortfalls(np.zeros(24), np.arange(24), difficulty, None, np.full(24, np.nan))
    assert found is not None
    assert not np.nan_to_num(found.value).any()


@pytest.mark.parametrize("seed", range(4))
def test_low_months_beside_a_change_of_all_others_have_the_error_of_noise(seed: int) -> None:
    """Formerly, errors were 0.1 to 28,024,493: the design had the same column twice."""
    months = np.arange(24)
    after = (months > 11).astype(float)
    rng = np.random.default_rng(seed)
    values = 0.02 * rng.normal(size=24)
    alone = Difficulty(values, np.ones((24, 1)) / 24**0.5, 1e-6 * np.eye(24))
    losses = 1 + values + 0.1 * after + 0.003 * rng.normal(size=24)
    change = fit_cutoff(losses, months, alone)
    assert change is not None and (change.is_found, change.cutoff) == (True, 11)
    of_others, _ = np.linalg.qr(np.column_stack([np.ones(24), after]))
    shared = replace(alone, unknown=of_others)
    found = measure_shortfalls(losses, months, shared, change, np.full(24, np.nan))
    assert found is not None
    assert np.nanmax(found.error) < 0.01
    assert np.nanmax(np.abs(found.value)) < 0.03


@pytest.mark.parametrize(
    ("num_seen", "spread"), [(0, 0), (1, 0), (2, 0), (4, 0), (8, 0), (4, 0.3), (8, 0.3)]
)
def test_a_month_seen_by_half_of_the_models_is_told(num_seen: int, spread: float) -> None:
    rng, months, cutoffs = np.random.default_rng(3), np.arange(36), np.linspace(4, 31, 8).round()
    theta = 1 + spread * np.linspace(-1, 1, 8)[[0, 7, 2, 5, 3, 6, 1, 4], None]
    y = 1 + theta * (rng.normal(0, 0.02, 36) + 0.003 * months) + rng.normal(0, 0.008, (8, 36))
    y[:num_seen, 25] -= 0.15 + spread / 3
    calm = fit_without_low_months(
        fit_panel(y, cutoffs, months), y, lambda kept: fit_panel(kept, cutoffs, months)
    )
    suspected = []
    for model, row in enumerate(y):
        other = calm.difficulty_without(model)
        assert other is not None
        found = measure_shortfalls(row, months, other, None, np.full(36, np.nan))
        assert found is not None
        suspected.append(np.flatnonzero(found.value > 5 * found.error).tolist())
    is_told = num_seen < 8  # what all models know is an easier month
    assert suspected == [[25] if number < num_seen and is_told else [] for number in range(8)]


STATED = {name: "2020-12" for name in ("LLaMA-7B-HF", "LLaMA-13B", "LLaMA-30B", "LLaMA-65B")}
STATED |= {name: "2022-09" for name in ("Llama-2-7B-HF", "Llama-2-13B", "Llama-2-70B")}
STATED |= {"Yi-6B": "2023-06"}


@pytest.mark.slow
def test_other_members_of_a_panel_do_not_exclude_a_stated_cutoff(shared: Path) -> None:
    """Without LLaMA-30B, the panel of the rest alone dates LLaMA-65B 2021-01 to 2021-03."""
    curves: dict[str, Curve] = {name: Curve() for name in STATED}
    with (shared / "data/published/wikitext_monthly_rates.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            if row["model"] in STATED:
                month = Month(row["month"]).months_since(EPOCH)
                rate = 8 * float(row["compression_rate"])
                curves[row["model"]].figures[month] = rate, np.nan, None
    cutoffs = {name: float(Month(month).months_since(EPOCH)) for name, month in STATED.items()}
    for left_out in [None, *STATED]:
        kept = {name: curve for name, curve in curves.items() if name != left_out}
        panel = fit_curves(kept, cutoffs, [{}])
        changes = find_changes(panel)
        for number, model in enumerate(panel.models):
            found = changes[number].cutoff
            if found is not None and found.is_found:
                is_late = found.cutoff_low > cutoffs[model]
                is_early = found.cutoff_high < cutoffs[model]
                is_open = np.isnan(found.cutoff_low + found.cutoff_high)
                assert (is_open and left_out) or not (is_late or is_early), (model, left_out)


def test_an_interval_holds_those_of_panels_without_a_model() -> None:
    fit = fit_first(Design(gap=0.1), 0)
    other = replace(fit, cutoff_low=fit.cutoff_low - 2, cutoff_high=np.nan)
    wide = fit.widened([other, fit])
    assert wide.cutoff_low == fit.cutoff_low - 2
    assert np.isnan(wide.cutoff_high)
    assert (wide.onset_low, wide.onset_high, wide.cutoff) == (
        fit.onset_low,
        fit.onset_high,
        fit.cutoff,
    )


def test_a_model_without_a_month_in_all_sources_lacks_months() -> None:
    curves = {"a": Curve(), "b": Curve()}
    for month in range(24):
        curves["a"].figures[month] = 1.0 + month % 2, np.nan, None
    changes = find_changes(fit_curves(curves, {"a": 11.0, "b": 11.0}, [{}]))
    assert changes[1].reason == "0 months; 8 are needed"
    assert changes[0].reason == "no other model, and no compressor, tells its months"
