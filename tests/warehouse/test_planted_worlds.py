"""Whether the views of controls find what was planted in simulated worlds, and nothing else.

A world has one model and a compressor on two sources of documents of log-normal lengths.
Difficulty has a document's own part, a month's and a drift. A compressor is more sensitive to a
document's than a model is, and shares a month's, but only half of the drift.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from core.month import Month
from core.schemas import LOSSES
from core.settings import Settings
from warehouse.land import open_warehouse

Array = np.ndarray[Any, np.dtype[np.float64]]

FIRST = Month("2019-01")
SOURCES = ("news", "wikipedia_new")


@dataclass(frozen=True)
class Kind:
    """What a world has; in bits per byte, and bits per byte a month."""

    drift: float = 0.0
    jump: float = 0.0
    decay: float = 0.0


KINDS = {
    "none": Kind(),
    "drifting": Kind(drift=0.004),
    "stale": Kind(jump=0.1, decay=0.004),
    "both": Kind(drift=0.004, jump=0.1, decay=0.004),
}


@dataclass
class World:
    """One model on sources of its own; ``contaminated`` is the month half of which it has seen."""

    name: str
    kind: Kind
    rng: np.random.Generator
    is_contaminated: bool = False
    num_months: int = field(init=False)
    num_documents: int = field(init=False)
    cutoff: Month = field(init=False)
    contaminated: Month = field(init=False)

    def __post_init__(self) -> None:
        self.num_months = int(self.rng.integers(24, 49))
        self.num_documents = int(np.exp(self.rng.uniform(np.log(30), np.log(200))))
        before = int(self.rng.integers(self.num_months // 4, 3 * self.num_months // 4 + 1))
        self.cutoff = FIRST + (before - 1)
        self.contaminated = FIRST + int(self.rng.integers(before, self.num_months))

    def losses(self) -> list[pa.Table]:
        """Return the losses of the model and of control:zstd, schema LOSSES."""
        weather = self.rng.normal(0, 0.02, self.num_months)
        return [
            table
            for source in SOURCES
            for index in range(self.num_months)
            for table in self._month(f"{self.name}-{source}", index, weather[index])
        ]

    def _month(self, source: str, index: int, weather: float) -> list[pa.Table]:
        rng, size, month = self.rng, self.num_documents, FIRST + index
        num_bytes = (rng.lognormal(8, 1, size) + 20).astype(np.int64)
        ease, own, other = rng.normal(0, 1, (3, size))
        since = max(0, month.months_since(self.cutoff))
        drift = self.kind.drift * index
        stale = self.kind.jump * (since > 0) + self.kind.decay * since
        bits = 0.9 + drift + weather + stale + 0.16 * ease + 0.12 * own + rng.normal(0, 0.005)
        if self.is_contaminated and month == self.contaminated:
            bits = np.where(rng.permutation(size) < size // 2, 0.7, 1) * bits
        control = 3.2 + drift / 2 + weather + 0.24 * ease + 0.18 * other
        return [
            _table(model, source, month, num_bytes, np.maximum(rate, 0.05) * num_bytes)
            for model, rate in ((self.name, bits), ("control:zstd", control))
        ]


def worlds(kind: str, num_worlds: int = 50, is_contaminated: bool = False) -> list[World]:
    """Return worlds of a kind, the same ones each time."""
    return [
        World(f"{kind}-{number}", KINDS[kind], np.random.default_rng([7, number]), is_contaminated)
        for number in range(num_worlds)
    ]


def _table(model: str, source: str, month: Month, num_bytes: Any, bits: Any) -> pa.Table:
    size = len(num_bytes)
    day: dt.date = month.first_day
    columns = {
        "model": pa.repeat(model, size),
        "revision": pa.repeat("r1", size),
        "source": pa.repeat(source, size),
        "month": pa.repeat(pa.scalar(day, pa.date32()), size),
        "document_id": pa.array([f"{source}-{day}-{number}" for number in range(size)]),
        "chunk_index": pa.array(np.zeros(size, np.int32)),
        "protocol": pa.repeat("default", size),
        "nll_nats": pa.array(bits * np.log(2)),
        "num_tokens": pa.array(num_bytes),
        "num_chars": pa.array(num_bytes),
        "num_bytes": pa.array(num_bytes),
        "reason": pa.nulls(size, pa.string()),
    }
    return pa.table([columns[f.name] for f in LOSSES], schema=LOSSES)


def threshold(degrees_of_freedom: int) -> float:
    """As the view's header says."""
    return 15 + 30 / degrees_of_freedom + 260 / degrees_of_freedom**2


def largest_f(curves: Array, control: Array | None) -> tuple[Array, int]:
    """Fit every change to curves (n_curves, n_months); return the largest F and its freedom.

    The projections are numpy's, the change a step, a steeper slope or both.
    """
    months = curves.shape[1]
    x = np.arange(months, dtype=float)
    columns = [np.ones(months), x] + ([] if control is None else [control])
    basis, _ = np.linalg.qr(np.column_stack(columns))
    left = curves - (curves @ basis) @ basis.T
    gains = []
    for before in range(3, months - 2):
        step = (x >= before).astype(float)
        hinge = np.maximum(x - before, 0)
        step, hinge = (v - basis @ (basis.T @ v) for v in (step, hinge))
        both = np.column_stack([step, hinge])
        sizes = left @ both @ np.linalg.inv(both.T @ both)
        alone = [np.maximum(left @ v, 0) ** 2 / (v @ v) for v in (step, hinge)]
        gain = ((left @ both) * sizes).sum(axis=1)
        gains.append(np.where((sizes >= 0).all(axis=1), gain, np.maximum(*alone)))
    best = np.max(gains, axis=0)
    freedom = months - 2 - len(columns)
    return freedom * best / ((left**2).sum(axis=1) - best), freedom


@pytest.mark.parametrize(
    ("months", "with_control", "share"),
    [
        (6, False, 0.010),
        (7, True, 0.016),
        (8, False, 0.010),
        (10, True, 0.0115),
        (16, True, 0.0115),
        (24, False, 0.0115),
        (48, True, 0.0115),
        (120, False, 0.0115),
    ],
)
def test_the_threshold_of_estimated_cutoff(months: int, with_control: bool, share: float) -> None:
    rng = np.random.default_rng(months)
    above = []
    for _ in range(10):
        control = rng.standard_normal(months) if with_control else None
        f, freedom = largest_f(rng.standard_normal((2_000, months)), control)
        above.append(f > threshold(freedom))
    assert float(np.mean(above)) <= share + 0.002  # three standard errors of 20,000 curves


def test_f_statistic_is_that_of_least_squares(land: Any, ask: Any) -> None:
    rng = np.random.default_rng(3)
    expected = {}
    for number, months in enumerate((6, 7, 12, 20, 40)):
        curve, control = 2 + 0.1 * rng.random((2, months))
        curve[months // 2 :] += 0.1 * number
        for name, rates in (("alone", [curve]), ("held", [curve, control])):
            model = f"{name}-{months}"
            for scorer, rate in zip((model, "control:zstd"), rates, strict=False):
                land(*(figure(scorer, model, month, rate[month]) for month in range(months)))
            expected[model] = largest_f(curve[None, :], control if len(rates) == 2 else None)
    found = {r["model"]: r for r in ask("from estimated_cutoff")}
    for model, (f, freedom) in expected.items():
        got = found[model]
        if freedom < 2:
            assert got["f_statistic"] is None
            continue
        assert got["f_statistic"] == pytest.approx(f[0], rel=1e-6)
        assert got["f_threshold"] == pytest.approx(threshold(freedom))
        assert (got["estimated_cutoff"] is None) == (f[0] < threshold(freedom))


def figure(model: str, source: str, month: int, rate: float) -> dict[str, Any]:
    return {
        "model": model,
        "source": source,
        "month": dt.date(2020 + month // 12, month % 12 + 1, 1),
        "nll_nats": rate * np.log(2) * 1000,
        "num_bytes": 1000,
        "num_chars": 1000,
    }


def landed(settings: Settings, kind: str, is_contaminated: bool = False) -> list[World]:
    planted = worlds(kind, is_contaminated=is_contaminated)
    tables = [table for world in planted for table in world.losses()]
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(pa.concat_tables(tables), "worlds")
        warehouse.upsert_models([{"name": w.name, "cutoff": w.cutoff} for w in planted])
    return planted


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_cutoffs_of_fifty_worlds(kind: str, settings: Settings, ask: Any) -> None:
    planted = landed(settings, kind)
    found = {row["model"]: row for row in ask("from estimated_cutoff")}
    estimates = [(world, found[world.name]) for world in planted]
    known = [(w, e) for w, e in estimates if e["estimated_cutoff"] is not None]
    assert all(e["control"] == "control:zstd" for _, e in estimates)
    if not KINDS[kind].jump:
        assert len(known) <= 5
        return
    inside = [
        e["estimated_cutoff_low"] <= w.cutoff.first_day <= e["estimated_cutoff_high"]
        for w, e in known
    ]
    assert sum(inside) >= 45
    widths = [
        (e["estimated_cutoff_high"] - e["estimated_cutoff_low"]).days / 30.4 for _, e in known
    ]
    assert np.median(widths) <= 6
    changed = {r["model"] for r in ask("from partial_change_points where source is null")}
    assert len(changed) >= 45


@pytest.mark.slow
def test_contamination_of_fifty_worlds(settings: Settings, ask: Any) -> None:
    """Half of one month's documents were seen, of both sources: each costs 30 % fewer bits."""
    truth = {world.name: world.contaminated.first_day for world in landed(settings, "both", True)}
    for source, found_share, column in (
        ("is null", 0.9, "is_suspected"),
        ("is not null", 0.9, "p"),
    ):
        rows = ask(
            "select model, month, is_suspected, p_value <= 0.05 as p "
            f"from suspected_contamination where source {source}"
        )
        seen = [r[column] for r in rows if truth[r["model"]] == r["month"]]
        clean = [r[column] for r in rows if truth[r["model"]] != r["month"]]
        assert np.mean(seen) >= found_share
        assert np.mean(clean) <= 0.05
