"""A change in whose months the other models of the panel change, too, each by its own size."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from benchmarks.statistics.panels import Staggered
from benchmarks.statistics.power import panel_of
from tests.tiers import few
from warehouse.estimates.apart import Apart
from warehouse.estimates.changes import TOGETHER, find_changes
from warehouse.estimates.coincident import LEAST_SHARE, LIMIT, LONGEST, change_together
from warehouse.estimates.pairs import ramp
from warehouse.estimates.panels import Panel
from warehouse.estimates.untreated import (
    UNTREATED,
    DatedCurve,
    Ramp,
    date_cutoffs,
    fit_untreated,
    kept_losses,
)

Array = np.ndarray[Any, np.dtype[np.float64]]
NULL = Staggered(8, 36, 3, 8, gap=0, source="break", is_felt=False)
STAGGERED = Staggered(8, 24, 3, 8)


@pytest.mark.parametrize(
    "design",
    few([NULL, replace(NULL, num_models=20, apart=1)], 1),
)
def test_most_changes_that_models_feel_by_sizes_of_their_own_are_no_cutoffs(
    design: Staggered,
) -> None:
    """Formerly, such a break gave a false cutoff to one in ten models of eight and of twenty."""
    reasons: list[str | None] = []
    for world in range(160 // design.num_models):
        changes = find_changes(panel_of(*design.draw(9921, world)[:3]))
        reasons += [each.reason for each in changes if each.cutoff and each.cutoff.is_found]
    assert reasons.count(TOGETHER) > reasons.count(None)


@pytest.mark.parametrize(("num_models", "is_stated"), [(8, True), (20, True), (20, False)])
def test_staggered_cutoffs_do_not_change_together(num_models: int, is_stated: bool) -> None:
    design = replace(STAGGERED, num_models=num_models, num_months=36, is_stated=is_stated)
    models, stated, compressor, _ = design.draw(9923, 0)
    reasons = [each.reason for each in find_changes(panel_of(models, stated, compressor))]
    assert reasons.count(TOGETHER) <= 0.1 * num_models
    assert reasons.count(None) >= 0.9 * num_models


def squares(
    apart: Apart, panel: Panel, shared: Array, owns: list[tuple[int, Ramp]]
) -> tuple[float, Array]:
    """Fit ramps to what levels, sensitivities and months leave, by two regressions."""
    num_models, num_months = panel.losses.shape
    columns = []
    for number in range(num_models):
        for row in (np.ones(num_months), shared):
            column = np.zeros(panel.losses.shape)
            column[number] = row
            columns.append(column)
    for month in range(num_months):
        column = np.zeros(panel.losses.shape)
        column[:, month] = apart.theta
        columns.append(column)
    ramps = np.zeros((len(owns), panel.losses.size))
    for place, (number, pair) in enumerate(owns):
        rows = np.zeros(panel.losses.shape)
        rows[number] = ramp(panel.months, *pair)
        ramps[place] = rows.ravel()
    others = np.array([each.ravel() for each in columns]).T
    both = np.column_stack([panel.losses.ravel(), ramps.T])
    left = both - others @ np.linalg.lstsq(others, both, rcond=1e-9)[0]
    sizes = np.linalg.lstsq(left[:, 1:], left[:, 0], rcond=1e-6)[0]
    rest = left[:, 0] - left[:, 1:] @ sizes
    return float(rest @ rest), sizes


def difficulty_of(panel: Panel, changes: list[Ramp | None]) -> Array:
    """Return lambda^: that of the fit of all months of the models alone, beside their changes."""
    alone = replace(panel, compressors=None)
    return fit_untreated(alone, [UNTREATED] * len(panel.losses), changes).whole.values


def verdict(dated: list[DatedCurve], panel: Panel, number: int) -> bool:
    """Return what ``change_together`` says of one change, by regressions on all parameters."""
    one = Apart.of(panel).one_before(panel.cutoffs)
    changes = [None if each.found is None else (each.found.start, each.found.end) for each in dated]
    apart = Apart.of(panel, changes)
    shared = difficulty_of(panel, changes)
    found = dated[number].found
    assert found is not None
    change = found.start, found.end
    own: list[tuple[int, Ramp]] = []
    for place, each in enumerate(dated):
        end = int(panel.cutoffs[place]) + 1
        pair = None if one is None else (end - one.length, end)
        other = each.found
        if other is not None and (place == number or (other.start, other.end) != change):
            pair = (other.start, other.end)
        if pair is not None:
            own.append((place, pair))
    further = [(place, change) for place in range(len(dated)) if place != number]
    first, _ = squares(apart, panel, shared, own)
    second, sizes = squares(apart, panel, shared, own + further)
    num_free = apart.num_free - len(own) - len(further)
    columns = apart.ramps([pair for _, pair in own])
    gained = (first - second) / second * num_free / apart.long_run(columns)
    expected = len(further) - 1
    if gained <= expected + LIMIT * (2 * expected) ** 0.5:
        return False
    theta = np.array([apart.theta[place] for place, _ in further])
    others = sizes[len(own) :]
    common, *_ = np.linalg.lstsq(theta[:, None], others, rcond=None)
    change = sizes[[place for place, _ in own].index(number)] - common[0] * apart.theta[number]
    typical = np.sqrt(np.sum((others - common * theta) ** 2) / expected * (1 - expected / gained))
    return bool(typical > LEAST_SHARE * abs(change))


@pytest.mark.parametrize("design", [NULL, replace(STAGGERED, length=0)])
def test_the_verdict_is_that_of_regressions_on_all_parameters(design: Staggered) -> None:
    verdicts = []
    for world in range(4):
        panel = panel_of(*design.draw(9921, world)[:3])
        dated = date_cutoffs(panel)
        if not np.isfinite(kept_losses(panel, dated).losses).all():
            continue
        together = change_together(dated, panel)
        for number, each in enumerate(dated):
            if each.found is not None and each.found.end - each.found.start <= LONGEST:
                expected = verdict(dated, panel, number)
                assert together[number] == expected
                verdicts.append(expected)
    assert verdicts
    assert any(verdicts) == (design is NULL)


def test_steps_of_three_models_beside_two_thermometers_are_their_own() -> None:
    """Formerly, sensitivities were fitted without the steps, which distorted them."""
    design = Staggered(3, 36, 3, 0, 0.08, thermometers=2)
    for world in range(4):
        models, stated, compressor, _ = design.draw(6161, world)
        changes = find_changes(panel_of(models, stated, compressor))
        assert [each.reason for each in changes[:3]] == [None] * 3


def test_small_panels_are_not_asked() -> None:
    panel = panel_of(*replace(NULL, num_models=4).draw(1, 0)[:3])
    assert change_together(date_cutoffs(panel), panel) == [False] * 4
