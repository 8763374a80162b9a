"""Views of controls find exactly what was planted; for coverage see ``test_intervals.py``."""

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.statistics.worlds import FIRST, NUM_BEFORE, NUM_MONTHS, catalogue, simulate
from core.settings import Settings
from warehouse.land.losses import open_warehouse

pytestmark = pytest.mark.long

Array = np.ndarray[Any, np.dtype[np.float64]]


def threshold(degrees_of_freedom: int) -> float:
    return 15 + 30 / degrees_of_freedom + 260 / degrees_of_freedom**2


def largest_f(curves: Array, control: Array | None) -> tuple[Array, int]:
    """Fit step and slope changes to (n_curves, n_months); return the largest F and its freedom."""
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
    [(6, False, 0.010), (7, True, 0.016), (8, False, 0.010), (10, True, 0.0115),
     (16, True, 0.0115), (24, False, 0.0115), (48, True, 0.0115), (120, False, 0.0115)],
)  # fmt: skip
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
    sizes = {"nll_nats": rate * np.log(2) * 1000, "num_bytes": 1000, "num_chars": 1000}
    day = dt.date(2020 + month // 12, month % 12 + 1, 1)
    return {"model": model, "source": source, "month": day, **sizes}


@pytest.mark.slow
def test_contamination_of_fifty_worlds(settings: Settings, ask: Any) -> None:
    """Half of a month's documents were seen, in both sources: each costs 30 % fewer bits."""
    rng = np.random.default_rng(7)
    worlds, losses = simulate(range(50), 100)
    truth = {
        world.name("gap"): (FIRST + int(rng.integers(NUM_BEFORE, NUM_MONTHS))).first_day
        for world in worlds
    }
    cells = zip(losses["model"].to_pylist(), losses["month"].to_pylist(), strict=True)
    was_seen = [truth.get(model) == month and rng.random() < 0.5 for model, month in cells]
    nats = pa.array(losses["nll_nats"].to_numpy() * np.where(was_seen, 0.7, 1))
    column = losses.column_names.index("nll_nats")
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses.set_column(column, "nll_nats", nats), "worlds")
        warehouse.upsert_models(catalogue(worlds))
    for source, column in (("is null", "is_suspected"), ("is not null", "p")):
        rows = ask(
            "select model, month, is_suspected, p_value <= 0.05 as p "
            f"from suspected_contamination where source {source}"
        )
        seen = [r[column] for r in rows if truth.get(r["model"]) == r["month"]]
        clean = [r[column] for r in rows if truth.get(r["model"]) != r["month"]]
        assert len(seen) >= 50
        assert np.mean(seen) >= 0.9
        assert np.mean(clean) <= 0.05
