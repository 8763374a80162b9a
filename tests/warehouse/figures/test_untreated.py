"""Months before the onsets tell lambda: against joint least squares, and in planted worlds."""

from typing import Any

import numpy as np
import pytest
import scipy.linalg

from benchmarks.statistics.panels import Staggered
from tests.tiers import few
from warehouse.estimates.bends import find_bends
from warehouse.estimates.changes import BEND, NONE_UNTREATED, SAME_CUTOFF, find_changes
from warehouse.estimates.difficulty import Readings
from warehouse.estimates.panels import Curve, fit_curves
from warehouse.estimates.untreated import (
    UNTREATED,
    Spell,
    date_cutoffs,
    fit_untreated,
)

Array = np.ndarray[Any, np.dtype[np.float64]]


def readings(y: Array, cutoffs: Array | None = None, control: Array | None = None) -> Readings:
    """Return curves from month 0 on, without regimes; by default, no cutoff is stated."""
    stated = np.full(len(y), np.nan) if cutoffs is None else cutoffs
    num_months = y.shape[1]
    return Readings(y, stated, np.arange(num_months), np.zeros((num_months, 0)), control)


def test_lambda_is_that_of_joint_least_squares() -> None:
    """A dummy for each month, and each model's level, and level and line after its spell."""
    rng = np.random.default_rng(1)
    y = 1 + rng.normal(0, 0.02, 36) + rng.normal(0, 0.007, (4, 36))
    spells = [Spell(10, 19), Spell(18, 27), UNTREATED, None]
    fit = fit_untreated(readings(y), spells)
    found = fit.without(1)
    assert found is not None
    rows, values = [], []
    for model in (0, 2):
        for month in range(36):
            if model == 0 and 10 < month < 19:
                continue
            row = np.zeros(36 + 4)
            row[month] = fit.theta[model]
            is_after = model == 0 and month >= 19
            row[36:] = [model == 0, is_after, is_after * month, model == 2]
            rows.append(row)
            values.append(y[model, month])
    expected = scipy.linalg.lstsq(np.array(rows), np.array(values))[0][:36]
    both = found.values - found.values.mean(), expected - expected.mean()
    unknown = np.column_stack([np.ones(36), found.unknown])
    left = [each - unknown @ np.linalg.lstsq(unknown, each)[0] for each in both]
    assert left[0] == pytest.approx(left[1], abs=1e-9)


def share(worlds: list[tuple[Array, Array, Array, Array]]) -> tuple[float, float, int]:
    """Return the share of planted ramps found, of these covered, and their number."""
    found, covered, planted = 0, 0, 0
    for y, stated, control, truth in worlds:
        for each, last in zip(date_cutoffs(readings(y, stated, control)), truth, strict=True):
            planted += 1
            if each.cutoff is not None and each.cutoff.is_found:
                found += 1
                low, high = each.cutoff.cutoff_low, each.cutoff.cutoff_high
                covered += not (low > last or high < last)
    return found / planted, covered / max(found, 1), planted


@pytest.mark.parametrize("is_stated", few([True, False], 1))
@pytest.mark.parametrize(("gap", "least"), [(0.08, 0.8), (0.04, 0.6)])
def test_ramps_of_all_models_are_found(gap: float, least: float, is_stated: bool) -> None:
    """Eight models, cutoffs three months apart, ramps of eight months; before: 1 of 320."""
    worlds = [Staggered(gap=gap, is_stated=is_stated).draw(number) for number in range(3)]
    found, covered, planted = share(worlds)
    assert planted == 24
    assert found >= least
    assert covered >= 0.9


@pytest.mark.parametrize("bend", ["drift", "break", "bend"])
def test_models_without_a_change_have_none(bend: str) -> None:
    worlds = [Staggered(gap=0, source=bend).draw(number) for number in range(4)]
    assert share(worlds)[0] <= 0.06


def test_a_single_model_with_two_compressors() -> None:
    design = Staggered(num_models=1, num_months=24, gap=0.15, length=0, is_stated=False)
    found, covered, _ = share([design.draw(number) for number in range(20)])
    assert found >= 0.85
    assert covered >= 0.9


def test_models_that_change_together_may_show_the_source() -> None:
    """Two models of other stated cutoffs feel a month's new texts, the others do not."""
    rng = np.random.default_rng(0)
    y = 1 + rng.normal(0, 0.02, 48) + rng.normal(0, 0.004, (6, 48))
    y[:2, 20:] += np.array([[0.05], [0.03]])
    cutoffs = np.array([30.0, 40, 36, 33, 38, 42])
    panel = readings(y, cutoffs)
    dated = date_cutoffs(panel)
    bends = find_bends(dated, panel)
    assert dated[0].cutoff is not None and dated[0].cutoff.is_found
    assert bends[:2] == [1, 0]
    assert np.isnan(dated[0].cutoff.opened().cutoff_high)
    assert "{}" in BEND


def test_without_an_anchor_the_last_months_are_unknown() -> None:
    """Models whose first spells hold the last months, and no compressor."""
    rng = np.random.default_rng(0)
    y = 1 + rng.normal(0, 0.02, 24) + rng.normal(0, 0.004, (2, 24))
    fit = fit_untreated(readings(y), [Spell(11, np.inf)] * 2)
    other = fit.without(0)
    assert other is not None
    assert np.abs(other.unknown[12:]).max(axis=1) == pytest.approx(1)
    assert NONE_UNTREATED


@pytest.mark.parametrize(("num_models", "lasts"), [(3, True), (9, True), (10, False)])
def test_the_error_of_few_models_lasts_as_their_noise(num_models: int, lasts: bool) -> None:
    rng = np.random.default_rng(5)
    noise = rng.normal(size=(num_models, 48))
    for month in range(1, 48):
        noise[:, month] += 0.7 * noise[:, month - 1]
    y = 1 + rng.normal(size=48) + 0.1 * noise
    fit = fit_untreated(readings(y), [UNTREATED] * num_models)
    difficulty = fit.without(0)
    assert difficulty is not None and difficulty.covariance is not None
    assert difficulty.memory.long_run > 2, "that of all panels"
    covariance = difficulty.covariance
    assert (covariance.diagonal(1).mean() > 0.3 * covariance.diagonal().mean()) == lasts


@pytest.mark.parametrize(("other", "is_compared"), [(11.0, False), (17.0, True), (np.nan, True)])
def test_models_of_one_stated_month_alone_are_not_said_to_be_without_a_change(
    other: float, is_compared: bool
) -> None:
    """Formerly "no change found; a step of 0.018 would be found" beside a step of 0.2 in both."""
    rng = np.random.default_rng(3)
    y = 1 + rng.normal(0, 0.02, 24) + rng.normal(0, 0.004, (2, 24))
    y += 0.2 * (np.arange(24) > 11)
    curves = {
        name: Curve({month: (float(bits), np.nan, None) for month, bits in enumerate(row)})
        for name, row in zip("ab", y, strict=True)
    }
    panel = fit_curves(curves, {"a": 11.0, "b": other}, [{}])
    reasons = [change.reason for change in find_changes(panel)]
    assert reasons == [None if is_compared else SAME_CUTOFF] * 2
