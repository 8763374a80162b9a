"""The statistics of the views, by simulation."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pytest

from core.month import Month
from core.settings import Settings
from warehouse.land import open_warehouse


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


def test_intervals_find_what_was_planted(settings: Settings, losses: Any, ask: Any) -> None:
    rng = np.random.default_rng(5)
    fresh = [f"fresh-{i}" for i in range(20)]
    stale = [f"stale-{i}" for i in range(20)]
    rows = [row for name in fresh for row in simulated(name, 0.0, rng)]
    rows += [row for name in stale for row in simulated(name, 0.15, rng)]
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(*rows), "simulated")
        warehouse.upsert_models([{"name": n, "cutoff": Month("2024-06")} for n in fresh + stale])
    gaps = ask("from train_test_gap")
    covered = [
        row["bits_per_byte_gap_low"]
        <= (0.15 if row["model"].startswith("stale") else 0)
        <= row["bits_per_byte_gap_high"]
        for row in gaps
    ]
    assert sum(covered) >= 35  # of 40 at a nominal 95 %
    overall = {row["model"]: row for row in ask("from train_test_gap_overall")}
    for row in gaps:  # with one source the two views are the same figure
        assert overall[row["model"]]["bits_per_byte_gap"] == pytest.approx(row["bits_per_byte_gap"])
