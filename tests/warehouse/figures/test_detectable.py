"""The change that a search is said to find in 80 % of worlds is found in about as many."""

import numpy as np
import pytest

from benchmarks.statistics.power import panel_of
from tests.tiers import few
from warehouse.estimates.changes import Change, find_changes
from warehouse.estimates.difficulty import Floats
from warehouse.estimates.pairs import ramp
from warehouse.estimates.panels import Panel

NUM_WORLDS = 40
MONTHS = np.arange(36)


def world(random: np.random.Generator, num_models: int) -> tuple[Floats, Floats]:
    """Return curves of models and of a compressor: a shared month, and noise of their own."""
    shared = 0.02 * random.normal(size=len(MONTHS))
    models = 1 + shared + 0.01 * random.normal(size=(num_models, len(MONTHS)))
    return models, 2 + shared + 0.01 * random.normal(size=len(MONTHS))


def panel(models: Floats, compressor: Floats) -> Panel:
    """The first model has no stated cutoff; those of the others are spread over the months."""
    cutoffs = 4.0 + 4 * np.arange(len(models))
    cutoffs[0] = np.nan
    return panel_of(models, cutoffs, compressor)


def detectable(change: Change, whole: Panel, kind: str) -> float:
    """The formula of internal.cutoff_tests, of a single test."""
    row = change.row(whole)
    error, num_free = row[f"{kind}_error"], row["num_free"]
    assert isinstance(error, float) and isinstance(num_free, int)
    return error * (0.84 + np.sqrt(5 * (num_free + 2) / num_free * (-0.4 - np.log(0.05))))


@pytest.mark.long
@pytest.mark.parametrize("length", [1, 9])
@pytest.mark.parametrize("num_models", few([1, 8], 1))
def test_a_detectable_change_is_found_in_four_of_five_worlds(num_models: int, length: int) -> None:
    """Formerly only that of a step was told; of ramps of this size, two in five were found."""
    num_found = 0
    for seed in range(NUM_WORLDS):
        random = np.random.default_rng([num_models, seed])
        models, compressor = world(random, num_models)
        whole = panel(models, compressor)
        calm = find_changes(whole)[0]
        assert calm.cutoff is not None
        last = int(random.integers(2 + length, calm.cutoff.last_datable + 1))
        size = detectable(calm, whole, "step" if length == 1 else "ramp")
        models[0] += size * ramp(MONTHS, last + 1 - length, last + 1)
        change = find_changes(panel(models, compressor))[0]
        is_told = change.reason is None
        num_found += change.cutoff is not None and change.cutoff.is_found and is_told
    assert 0.64 * NUM_WORLDS <= num_found <= 0.99 * NUM_WORLDS


def test_a_ramp_that_does_not_fit_in_the_months_has_no_size() -> None:
    models, compressor = world(np.random.default_rng(0), 3)
    kept = slice(None, 12)
    whole = panel_of(models[:, kept], np.array([np.nan, 4, 8]), compressor[kept])
    row = find_changes(whole)[0].row(whole)
    assert row["step_error"] is not None
    assert row["ramp_error"] is None
