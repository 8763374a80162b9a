"""Benchmark outliers against statsmodels' definition, a planted outlier, and worlds without one."""

from collections.abc import Iterator

import duckdb
import numpy as np
import polars as pl
import pytest

from warehouse.database.schema import list_macros, read_sql, read_view

NUM_MODELS = 12


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("create schema internal; create schema papers")
        for macro in ("normal_tail", "hill_deviate", "t_p_value", "false_discovery_rate"):
            assert macro in list_macros()
            connection.execute(read_sql("macros", macro))
        yield connection


def outliers_of(
    database: duckdb.DuckDBPyConnection, figures: np.ndarray, scores: np.ndarray
) -> pl.DataFrame:
    """Return the view's rows for worlds, (worlds, models); a world is a benchmark."""
    worlds, models = scores.shape
    table = pl.DataFrame({
        "model": [f"m{m:02}" for m in range(models)] * worlds,
        "against": np.repeat([f"w{w:04}" for w in range(worlds)], models),
        "protocol": np.repeat([f"w{w:04}" for w in range(worlds)], models),
        "value": figures.ravel(),
        "score": scores.ravel(),
    })  # fmt: skip
    database.register("worlds", table)
    database.execute(
        "create or replace table internal.model_figures as "
        "select protocol, model, 'all' as scope, null as source, null as category, "
        "'bits_per_byte' as figure, null as milestone, value from worlds; "
        "create or replace table internal.model_scores as "
        "select model, 'benchmark' as against_kind, against, 'all' as model_kind, "
        "'all' as size_class, score from worlds;"
    )
    database.execute(read_view("benchmark_outliers"))
    return database.sql(
        "select * from papers.benchmark_outliers where protocol = benchmark "
        "order by benchmark, model"
    ).pl()


def worlds(num: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    draws = np.random.default_rng(seed)
    figures = draws.uniform(0.5, 1.2, (num, NUM_MODELS))
    return figures, 90 - 50 * figures + draws.normal(0, 2, figures.shape)


def test_figures_are_those_of_a_line_without_the_model(
    database: duckdb.DuckDBPyConnection,
) -> None:
    figures, scores = worlds(1)
    found = outliers_of(database, figures, scores)
    for place, row in enumerate(found.iter_rows(named=True)):
        x = np.delete(figures[0], place)
        y = np.delete(scores[0], place)
        slope, level = np.polyfit(x, y, 1)
        apart = y - level - slope * x
        variance = apart @ apart / (len(x) - 2)
        own = figures[0, place]
        spread = (x - x.mean()) @ (x - x.mean())
        error = np.sqrt(variance * (1 + 1 / len(x) + (own - x.mean()) ** 2 / spread))
        assert row["predicted_score"] == pytest.approx(level + slope * own, rel=1e-9)
        assert row["standard_error"] == pytest.approx(error, rel=1e-9)
        residual = scores[0, place] - level - slope * own
        assert row["t_statistic"] == pytest.approx(residual / error, rel=1e-9)


def test_a_planted_outlier_is_found_and_no_other(database: duckdb.DuckDBPyConnection) -> None:
    figures, scores = worlds(1, seed=3)
    scores[0, 4] += 15
    found = outliers_of(database, figures, scores)
    assert found.filter("is_outlier")["model"].to_list() == ["m04"]
    scores[0, 4] -= 30  # a low score is no sign of over-optimisation
    assert not outliers_of(database, figures, scores)["is_outlier"].any()


@pytest.mark.long
@pytest.mark.slow
def test_worlds_without_an_outlier_have_one_at_the_stated_rate(
    database: duckdb.DuckDBPyConnection,
) -> None:
    found = outliers_of(database, *worlds(1000, seed=1))
    wrong = found.group_by("benchmark").agg(pl.col("is_outlier").any())["is_outlier"].mean()
    assert wrong is not None and 0.03 <= float(wrong) <= 0.07  # of a seed; 0.05 is stated
    assert float(found["p_value"].mean()) == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("figures", "scores", "reason"),
    [
        ([0.5, 0.6, 0.7, 0.9], [40, 42, 39, 30], "few_models"),
        ([0.5] * 6, [40, 42, 39, 30, 41, 40], "no_spread"),
        ([0.5, 0.6, 0.7, 0.8, 0.9], [50, 40, 30, 20, 10], "no_spread"),
    ],
)
def test_figures_are_null_with_a_reason(
    database: duckdb.DuckDBPyConnection, figures: list[float], scores: list[float], reason: str
) -> None:
    found = outliers_of(database, np.array([figures]), np.array([scores], dtype=float))
    assert set(found["reason"]) == {reason}
    assert not found["is_outlier"].any()
    assert found.select(
        "residual", "standard_error", "t_statistic", "q_value"
    ).null_count().sum_horizontal()[0] == 4 * len(figures)


def test_one_model_alone_at_its_figure_is_not_judged(database: duckdb.DuckDBPyConnection) -> None:
    figures = np.array([[0.5] * 5 + [0.9]])
    scores = np.array([[40.0, 42, 39, 41, 40, 90]])
    reasons = dict(outliers_of(database, figures, scores).select("model", "reason").iter_rows())
    assert reasons["m05"] == "no_spread"  # the others have one figure
