from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import stats

from benchmarks.statistics.worlds import NUM_BEFORE, NUM_MONTHS, SOURCES, catalogue, simulate
from core.settings import Settings
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import opened, run_statement

pytestmark = pytest.mark.long

Floats = NDArray[np.float64]
Ask = Callable[..., pa.Table]


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Ask a published world; its snapshot is opened once."""
    settings = Settings(home=str(tmp_path_factory.mktemp("world")))
    worlds, losses = simulate([0], 12)
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses, "world")
        warehouse.upsert_models(catalogue(worlds))
    with opened(Path(publish(settings))) as connection:
        yield lambda sql, *values: run_statement(connection, sql, values).read_all()


class Curves:
    def __init__(self, ask: Ask, sources: tuple[str, ...]) -> None:
        where = "where model like 'world-%-gap' and source like '%' || ? order by month"
        cells = [
            ask(f"from internal.monthly_loss_details {where}", each).to_pydict() for each in sources
        ]
        self.figures = np.concatenate([cell["bits_per_byte"] for cell in cells])
        self.errors = np.concatenate([cell["standard_error"] for cell in cells])
        dof = np.concatenate([cell["degrees_of_freedom"] for cell in cells])
        clusters = np.concatenate([cell["num_clusters"] for cell in cells])
        self.degrees = np.minimum(3 * dof, clusters - 1)
        sums = [
            ask(f"from internal.cell_replicates {where}, replicate", source).to_pydict()
            for source in sources
        ]
        shape = (len(self.figures), 200)
        nats = np.concatenate([each["nll_nats"] for each in sums]).reshape(shape)
        weights = np.concatenate([each["num_bytes"] for each in sums]).reshape(shape)
        num_bytes = np.concatenate([cell["num_bytes"] for cell in cells])
        self.deviations = nats / np.log(2) / weights - self.figures[:, None]
        self.deviations *= self.errors[:, None] / root_mean_square(self.deviations)
        self.weights = weights / num_bytes[:, None] - 1
        self.weights /= root_mean_square(self.weights)

    def half_interval(self, coefficients: Floats) -> float:
        variance = np.mean((coefficients @ self.deviations) ** 2)
        parts = (coefficients * self.errors) ** 2
        overlap = np.mean((coefficients**2 @ self.weights) ** 2) / np.sum(coefficients**4)
        degrees = parts.sum() ** 2 / np.sum(parts**2 / self.degrees) / max(1, overlap)
        return float(np.sqrt(variance) * stats.t.ppf(0.975, max(1, degrees)))


def root_mean_square(replicates: Floats) -> Floats:
    return np.asarray(np.sqrt(np.mean(replicates**2, axis=1, keepdims=True)))


def of_months(before: float, after: float) -> Floats:
    return np.repeat([before / NUM_BEFORE, after / NUM_BEFORE], NUM_BEFORE)


def only(ask: Ask, view: str, source: str | None = None) -> dict[str, Any]:
    sql = f"from {view} where model like 'world-%-gap'"
    sql += " and source like '%' || ?" if source else " and scope = 'all'"
    table = ask(sql, source) if source else ask(sql)
    [row] = table.to_pylist()
    return dict(row)


def half(row: dict[str, Any], column: str) -> float:
    low, high = row[f"{column}_low_documents"], row[f"{column}_high_documents"]
    assert row[f"{column}_low"] <= low + 1e-9
    assert row[f"{column}_high"] >= high - 1e-9
    assert (low + high) / 2 == pytest.approx(row[column], rel=1e-9)
    return float((high - low) / 2)


@pytest.mark.parametrize("source", [*SOURCES, None])
def test_gap(ask: Ask, source: str | None) -> None:
    row = only(ask, "train_test_gap", source)
    # The macro has all intervals.
    split_date = only(ask, "train_test_gap_at(null)", source)["split_date"]
    at_split = only(ask, f"train_test_gap_at(date '{split_date}')", source)
    for name in row.keys() - {"q_value"}:  # over all models that a date splits
        assert at_split[name] == pytest.approx(row[name]) or at_split[name] == row[name]
    curves = Curves(ask, (source,) if source else SOURCES)
    for column, before, after in (
        ("bits_per_byte_before", 1, 0),
        ("bits_per_byte_after", 0, 1),
        ("bits_per_byte_gap", -1, 1),
        ("expected_next", -1, 2),
    ):
        coefficients = of_months(before, after)
        if source is None:
            coefficients = np.tile(coefficients, 2) / 2
        assert at_split[column] == pytest.approx(coefficients @ curves.figures)
        assert half(at_split, column) == pytest.approx(curves.half_interval(coefficients), rel=1e-6)


@pytest.mark.parametrize("source", [*SOURCES, None])
def test_slope(ask: Ask, source: str | None) -> None:
    row = only(ask, "tbi_likelihood", source)
    curves = Curves(ask, (source,) if source else SOURCES)
    months = np.arange(NUM_MONTHS)
    y = curves.figures.reshape(-1, NUM_MONTHS).mean(axis=0)
    slope = float(np.polyfit(months, y, 1)[0])
    assert row["tbi_per_month"] == pytest.approx(slope)
    x = months - months.mean()
    coefficients = np.tile(x / (x @ x), len(curves.figures) // NUM_MONTHS)
    by_documents = curves.half_interval(coefficients * NUM_MONTHS / len(curves.figures))
    assert half(row, "tbi_per_month") == pytest.approx(by_documents, rel=1e-6)


@pytest.mark.parametrize("source", SOURCES)
def test_decay(ask: Ask, source: str) -> None:
    row = only(ask, "internal.decay_figures", source)
    curves = Curves(ask, (source,))
    base = np.zeros(NUM_MONTHS)
    base[NUM_BEFORE - 6 : NUM_BEFORE] = 1 / 6
    level = base @ curves.figures
    gradients = {}
    for horizon in (3, 6, 9, 12):
        period = np.zeros(NUM_MONTHS)
        period[NUM_BEFORE + horizon - 3 : NUM_BEFORE + horizon] = 1 / 3
        mean = period @ curves.figures
        assert row[f"decay_{horizon}_pct"] == pytest.approx(100 * (mean / level - 1))
        gradients[str(horizon)] = 100 * (period / level - base * mean / level**2)
    gradients["mean"] = sum(gradients.values(), np.zeros(NUM_MONTHS)) / 4
    for name, gradient in gradients.items():
        expected = curves.half_interval(gradient)
        assert half(row, f"decay_{name}_pct") == pytest.approx(expected, rel=1e-6)
