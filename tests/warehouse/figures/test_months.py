"""Intervals about time: computed again by numpy, and in worlds where nothing changes but months."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import signal, stats

from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from tests.losses import loss_row
from tests.warehouse.relations import relations_of
from warehouse.database.materialised import materialise
from warehouse.database.schema import ESTIMATES
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse
from warehouse.read.query import run_statement

pytestmark = pytest.mark.long

Floats = NDArray[np.float64]
Rows = list[dict[str, Any]]
Ask = Callable[[str], Rows]

FIRST, NUM_MONTHS, NUM_WORLDS = Month("2021-01"), 24, 100
# How much of a shock stays for the next month, degrees of freedom of a shock, share of months.
DESIGNS = {
    "white": (0, 1e9, 1), "lasting": (0.3, 1e9, 1), "long": (0.5, 1e9, 1), "heavy": (0.5, 3, 1),
    "holes": (0.5, 1e9, 0.75),
}  # fmt: skip


def worlds() -> tuple[pa.Table, list[dict[str, Any]]]:
    """Return the losses of all worlds, and the facts of their models."""
    rng = np.random.default_rng(17)
    rows, models = [], []
    for design, (memory, tail, share) in DESIGNS.items():
        for number in range(NUM_WORLDS):
            name = f"{design}-{number}"
            cutoff = FIRST + int(rng.integers(5, 18))
            facts = {"cutoff": cutoff.first_day, "released": (cutoff + 1).first_day}
            models.append({"name": name, "cutoff_provenance": "planted", **facts})
            is_there = rng.random(NUM_MONTHS) < share
            shocks = rng.standard_t(tail, NUM_MONTHS + 30) * 0.02
            for month, shock in enumerate(signal.lfilter([1], [1, -memory], shocks)[30:]):
                each = {
                    "nll_nats": (1 + shock) * 1000 * np.log(2),
                    "num_bytes": 1000,
                    "reason": None,
                }
                rows += [
                    {**loss_row(name, name, (FIRST + month).first_day, f"{month}-{of}"), **each}
                    for of in range(2 * is_there[month])
                ]
    return pa.Table.from_pylist(rows, schema=LOSSES), models


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Ask views that are as in a snapshot; nothing here reads the estimates of a publication."""
    settings = Settings(home=str(tmp_path_factory.mktemp("months")))
    losses, models = worlds()
    with connected(settings) as connection:
        with open_warehouse(settings) as warehouse:
            warehouse.land_losses(losses, "worlds")
            warehouse.upsert_models(models)
        connection.begin()
        materialise(connection)

        def ask(sql: str) -> Rows:
            assert not relations_of(sql) & set(ESTIMATES), sql
            return run_statement(connection, sql).read_all().to_pylist()

        yield ask
        connection.rollback()


def month_errors(
    y: Floats, months: Floats, is_after: NDArray[np.bool_], fitted: Floats, figures: Any
) -> tuple[Floats, int]:
    """Return the standard errors of sums of coefficient times month, and degrees of freedom."""
    n, k = fitted.shape
    rest = np.eye(n) - fitted @ np.linalg.pinv(fitted)
    left = rest @ y
    apart = np.abs(months[:, None] - months)
    products = np.outer(left, left)[(apart == 1) & (is_after[:, None] == is_after)]
    found = products.mean() / np.mean(left**2) if len(products) else 0
    correlations = np.clip((found + k / n) / (1 - 4 * k / n), 0, 0.9) ** apart
    variance = left @ left / np.trace(rest @ correlations)
    degrees = sum(is_after) // 3 + sum(~is_after) // 3 - k
    return np.sqrt([variance * c @ correlations @ c for c in figures]), int(degrees)


def test_numpy_has_the_same_errors(ask: Ask) -> None:
    sql = "from internal.split_cells_at(cast(null as date)) order by model, month"
    curves: dict[str, Rows] = defaultdict(list)
    for cell in ask(sql):
        curves[cell["model"]].append(cell)
    tables = {
        name: {row["model"]: row for row in ask(f"from {name}")}
        for name in ("internal.gap_month_errors_at(cast(null as date))",
                     "internal.slope_month_errors", "tbi_likelihood where scope = 'source'",
                     "train_test_gap where scope = 'source'",
                     "detectable_gap_at(4) where num_months_each_side = 12")
    }  # fmt: skip
    gaps, slopes, lines, public, detectable = tables.values()
    for model, cells in curves.items():
        y = np.array([cell["bits_per_byte"] for cell in cells])
        months = np.array([Month.of(c["month"]).months_since(FIRST) for c in cells], float)
        after = np.array([cell["is_after"] for cell in cells])
        sides = np.column_stack([~after, after]).astype(float)
        before, later = sides.T / sides.sum(axis=0)[:, None]
        figures = (before, later, later - before, 2 * later - before)
        errors, degrees = month_errors(y, months, after, sides, figures)
        assert (model in gaps) == (degrees >= 2)
        if model in gaps and min(sum(after), sum(~after)) >= 3:
            row, t = gaps[model], stats.t.ppf(0.975, degrees)
            assert row["degrees_of_freedom"] == degrees
            assert row["gap_standard_error"] == pytest.approx(errors[2], rel=1e-9)
            found = [row[f"{name}_error"] for name in ("before", "after", "gap", "next")]
            assert found == pytest.approx(t * errors, rel=3e-7)  # t_975 is right to 1e-7
            wanted = 2 * stats.t.sf(abs(public[model]["bits_per_byte_gap"]) / errors[2], degrees)
            assert public[model]["p_value"] == pytest.approx(wanted, abs=1e-3)
            assert_detectable(detectable[model], row["shock"], row["memory"])
        x = months - months.mean()
        line = np.column_stack([np.ones(len(x)), x])
        [error], _ = month_errors(y, months, after & False, line, [x / (x @ x)])
        assert slopes[model]["standard_error"] == pytest.approx(error, rel=1e-9)
        half = lines[model]["tbi_per_month_high"] - lines[model]["tbi_per_month"]
        assert half == pytest.approx(stats.t.ppf(0.975, len(x) // 3 - 2) * error, rel=3e-7)


def assert_detectable(row: dict[str, Any], shock: float, memory: float) -> None:
    """A plan of 12 months on each side; 2 documents a month are equal, 4 more change nothing."""
    assert row["num_documents"] == 6
    assert row["standard_error"] == pytest.approx(0, abs=1e-12)
    months, signs = np.arange(24), np.repeat([-1, 1], 12) / 12
    variance = shock**2 * (signs @ memory ** np.abs(months[:, None] - months) @ signs)
    size = (stats.t.ppf(0.975, 6) + stats.norm.ppf(0.8)) * np.sqrt(variance)
    assert row["detectable_gap"] == pytest.approx(size, rel=3e-7)
    assert row["detectable_gap_documents"] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("view", "column"),
    [
        ("train_test_gap where scope = 'source'", "bits_per_byte_gap"),
        ("train_test_gap where scope = 'all'", "bits_per_byte_gap"),
        ("tbi_likelihood where scope = 'source'", "tbi_per_month"),
        ("decay_by_horizon where horizon = 3", "decay_mean_pct"),
    ],
)
def test_where_nothing_changes_little_is_found(ask: Ask, view: str, column: str) -> None:
    rows = [row for row in ask(f"from {view}") if row["p_value"] is not None]
    found = defaultdict(list)
    for row in rows:
        is_apart = not row[f"{column}_low"] <= 0 <= row[f"{column}_high"]
        assert is_apart == (row["p_value"] < 0.05)
        assert row["q_value"] >= row["p_value"]
        found[row["model"].split("-")[0]].append(is_apart)
    in_order = sorted(rows, key=lambda row: -row["p_value"])
    shares = [row["p_value"] * len(rows) / (len(rows) - n) for n, row in enumerate(in_order)]
    q_values = np.minimum(1, np.minimum.accumulate(shares))
    assert [row["q_value"] for row in in_order] == pytest.approx(q_values)
    assert len(rows) >= 350
    assert np.mean(sum(found.values(), [])) <= 0.06
    assert all(np.mean(each) <= 0.12 for each in found.values())  # 0.06 + three standard errors
