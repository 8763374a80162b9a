"""Intervals and fits of the views against numpy and scipy, on simulated worlds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from benchmarks.simulated_worlds import NUM_BEFORE, NUM_MONTHS, SOURCES, catalogue, simulate
from core.month import Month
from core.settings import Settings
from warehouse.land import open_warehouse
from warehouse.publish import publish
from warehouse.query import query

Floats = NDArray[np.float64]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A published warehouse of one world with a dozen documents a month."""
    settings = Settings(home=str(tmp_path_factory.mktemp("world")))
    worlds, losses = simulate([0], 12)
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses, "world")
        warehouse.upsert_models(catalogue(worlds))
    publish(settings)
    return settings


class Curves:
    """Monthly figures of the model with a gap, and their replicates; sources one after another."""

    def __init__(self, settings: Settings, sources: tuple[str, ...]) -> None:
        where = "where model like 'world-%-gap' and source like '%' || ? order by month"
        cells = [
            query(settings, f"from monthly_loss {where}", [each]).to_pydict() for each in sources
        ]
        self.figures = np.concatenate([cell["bits_per_byte"] for cell in cells])
        self.errors = np.concatenate([cell["standard_error"] for cell in cells])
        dof = np.concatenate([cell["degrees_of_freedom"] for cell in cells])
        clusters = np.concatenate([cell["num_clusters"] for cell in cells])
        self.degrees = np.minimum(3 * dof, clusters - 1)
        sums = [
            query(settings, f"from cell_replicates {where}, replicate", [source]).to_pydict()
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
        """Return half of the interval of a sum of coefficient times figure."""
        variance = np.mean((coefficients @ self.deviations) ** 2)
        parts = (coefficients * self.errors) ** 2
        overlap = np.mean((coefficients**2 @ self.weights) ** 2) / np.sum(coefficients**4)
        degrees = parts.sum() ** 2 / np.sum(parts**2 / self.degrees) / max(1, overlap)
        return float(np.sqrt(variance) * stats.t.ppf(0.975, max(1, degrees)))


def root_mean_square(replicates: Floats) -> Floats:
    return np.asarray(np.sqrt(np.mean(replicates**2, axis=1, keepdims=True)))


def of_months(before: float, after: float) -> Floats:
    """Coefficients of all months before the cutoff, and of all after it."""
    return np.repeat([before / NUM_BEFORE, after / NUM_BEFORE], NUM_BEFORE)


def only(settings: Settings, view: str, source: str | None = None) -> dict[str, Any]:
    """Return the row of the model with a gap."""
    sql = f"from {view} where model like 'world-%-gap'"
    sql += " and source like '%' || ?" if source else ""
    table = query(settings, sql, [source] if source else [])
    [row] = table.to_pylist()
    return dict(row)


def half(row: dict[str, Any], column: str) -> float:
    low, high = row[f"{column}_low"], row[f"{column}_high"]
    assert (low + high) / 2 == pytest.approx(row[column], rel=1e-9)
    return float((high - low) / 2)


@pytest.mark.parametrize("source", [*SOURCES, None])
def test_gap(home: Settings, source: str | None) -> None:
    row = only(home, "train_test_gap" if source else "train_test_gap_overall", source)
    curves = Curves(home, (source,) if source else SOURCES)
    for column, before, after in (
        ("bits_per_byte_before", 1, 0),
        ("bits_per_byte_after", 0, 1),
        ("bits_per_byte_gap", -1, 1),
        ("expected_next", -1, 2),
    ):
        coefficients = of_months(before, after)
        if source is None:
            coefficients = np.tile(coefficients, 2) / 2
        assert row[column] == pytest.approx(coefficients @ curves.figures)
        assert half(row, column) == pytest.approx(curves.half_interval(coefficients), rel=1e-6)


def leave_out(months: NDArray[np.int64], y: Floats) -> Iterator[float]:
    """Yield the slope without each of five blocks of months."""
    for block in range(5):
        stays = months * 5 // NUM_MONTHS != block
        yield float(np.polyfit(months[stays], y[stays], 1)[0])


@pytest.mark.parametrize("source", [*SOURCES, None])
def test_slope(home: Settings, source: str | None) -> None:
    row = only(home, "tbi_likelihood" if source else "tbi_likelihood_overall", source)
    curves = Curves(home, (source,) if source else SOURCES)
    months = np.arange(NUM_MONTHS)
    y = curves.figures.reshape(-1, NUM_MONTHS).mean(axis=0)
    slope = float(np.polyfit(months, y, 1)[0])
    assert row["tbi_per_month"] == pytest.approx(slope)
    squares = sum((left - slope) ** 2 for left in leave_out(months, y))
    by_months = np.sqrt(squares * 4 / 5) * stats.t.ppf(0.975, 4)
    x = months - months.mean()
    coefficients = np.tile(x / (x @ x), len(curves.figures) // NUM_MONTHS)
    by_documents = curves.half_interval(coefficients * NUM_MONTHS / len(curves.figures))
    assert half(row, "tbi_per_month") == pytest.approx(max(by_months, by_documents), rel=1e-6)
    assert half(row, "tbi_per_year") == pytest.approx(12 * half(row, "tbi_per_month"))


@pytest.mark.parametrize("source", SOURCES)
def test_decay(home: Settings, source: str) -> None:
    row = only(home, "decay_after_release", source)
    curves = Curves(home, (source,))
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


FITS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], Callable[[Any], Any]]] = {
    "linear": (np.asarray, np.asarray, np.asarray),
    "exponential": (np.asarray, np.log, np.exp),
    "power": (np.log, np.log, np.exp),
    "logarithmic": (np.log, np.asarray, np.asarray),
}


@pytest.mark.parametrize("source", SOURCES)
def test_decay_fit(home: Settings, source: str) -> None:
    cutoff = Month("2023-01") + (NUM_BEFORE - 1)
    sql = "where model like 'world-%-gap' and source like '%' || ?"
    y = np.array(
        query(
            home,
            f"select bits_per_byte from monthly_loss {sql} and month > ? order by month",
            [source, cutoff.first_day],
        )["bits_per_byte"]
    )
    t = np.arange(1, len(y) + 1)
    rows = {row["fit"]: row for row in query(home, f"from decay_fit {sql}", [source]).to_pylist()}
    assert rows.keys() == FITS.keys()
    variances, errors = {}, {}
    for name, (of_t, of_y, back) in FITS.items():
        rate, level = np.polyfit(of_t(t), of_y(y), 1)
        variances[name] = np.var(y - back(level + rate * of_t(t)))
        left_out = []
        for i in range(len(y)):
            stays = t != t[i]
            line = np.polyfit(of_t(t)[stays], of_y(y)[stays], 1)
            left_out.append(y[i] - back(np.polyval(line, of_t(t)[i])))
        errors[name] = np.mean(np.square(left_out))
        row = rows[name]
        assert (row["fit_basis"], row["num_months"]) == ("planted", NUM_MONTHS - NUM_BEFORE)
        assert row["rate"] == pytest.approx(rate)
        assert row["level"] == pytest.approx(back(level))
        assert row["residual_variance"] == pytest.approx(variances[name])
        assert row["leave_one_out_error"] == pytest.approx(errors[name])
    best = {name for name, row in rows.items() if row["best_by_variance"]}
    assert best == {min(variances, key=variances.__getitem__)}
    best = {name for name, row in rows.items() if row["best_by_leave_one_out"]}
    assert best == {min(errors, key=errors.__getitem__)}
