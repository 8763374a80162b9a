"""The statistics of the views, by simulation."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

from benchmarks.verify_statistics import FIGURES, measure
from core.month import Month
from core.settings import Settings
from warehouse.land import open_warehouse
from warehouse.schema import list_views

F_THRESHOLD = 12.5


def largest_rise(curves: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Return the largest F of a rise for each curve (n_curves, n_months), as the view does."""
    months = curves.shape[1]
    before = np.arange(3, months - 2)
    sums = curves.cumsum(axis=1)
    mean_before = sums[:, before - 1] / before
    mean_after = (sums[:, -1:] - sums[:, before - 1]) / (months - before)
    explained = np.where(
        mean_after > mean_before,
        before * (months - before) / months * (mean_after - mean_before) ** 2,
        0,
    ).max(axis=1)
    return (months - 2) * explained / (curves.var(axis=1) * months - explained)


@pytest.mark.parametrize(
    ("months", "share"), [(6, 0.015), (8, 0.02), (12, 0.02), (24, 0.0115), (120, 0.01)]
)
def test_the_threshold_of_estimated_cutoff(months: int, share: float) -> None:
    assert f"below {F_THRESHOLD}" in list_views()["estimated_cutoff"].read_text()
    noise = np.random.default_rng(months).standard_normal((40_000, months))
    assert float((largest_rise(noise) > F_THRESHOLD).mean()) <= share


def simulated(model: str, gap: float, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Twelve months of forty documents; bits rise by ``gap`` (bits per byte) from July."""
    rows = []
    for month in range(12):
        for document in range(40):
            num_bytes = int(rng.lognormal(7, 1)) + 10
            bits = num_bytes * (2 + rng.normal(0, 0.2) + (gap if month >= 6 else 0))
            rows.append(
                {
                    "model": model,
                    "month": dt.date(2024, month + 1, 1),
                    "document_id": f"{month}-{document}",
                    "nll_nats": bits * np.log(2),
                    "num_bytes": num_bytes,
                }
            )
    return rows


def test_cutoffs_find_what_was_planted(settings: Settings, losses: Any, ask: Any) -> None:
    rng = np.random.default_rng(5)
    fresh = [f"fresh-{i}" for i in range(20)]
    stale = [f"stale-{i}" for i in range(20)]
    rows = [row for name in fresh for row in simulated(name, 0.0, rng)]
    rows += [row for name in stale for row in simulated(name, 0.15, rng)]
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(*rows), "simulated")
        warehouse.upsert_models([{"name": n, "cutoff": Month("2024-06")} for n in fresh + stale])
    cutoffs = {row["model"]: row for row in ask("from estimated_cutoff")}
    found = [cutoffs[name]["difference_months"] for name in stale]
    assert sum(months is not None and abs(months) <= 1 for months in found) >= 18
    assert sum(cutoffs[name]["estimated_cutoff"] is not None for name in fresh) <= 2


def test_intervals_hold_what_they_promise() -> None:
    """``make verify-statistics`` in small: what fails here is far off."""
    tallies = measure(range(40), num_documents=30)
    assert {figure for figure, _ in tallies} == set(FIGURES)
    assert {design for _, design in tallies} == {"fresh", "pages", "both"}
    for (figure, design), tally in tallies.items():
        assert len(tally.covered) == 40
        assert tally.keeps(figure.bounds), f"{figure.view}.{figure.column}, {design}"
    coverages = [tally.coverage for (figure, _), tally in tallies.items() if not figure.is_discrete]
    assert 0.92 <= np.mean(coverages) <= 0.98
