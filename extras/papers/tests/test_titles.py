"""Titles of charts in worlds with and without an effect."""

import math
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from extras.papers.pages import benchmarks_finding
from warehouse.database.schema import list_macros, read_sql

NUM_WORLDS = 500
# Of 500 worlds without an effect, 5 % may be called wrong; three standard errors more by chance.
MOST_WRONG = NUM_WORLDS * 0.05 + 3 * math.sqrt(NUM_WORLDS * 0.05 * 0.95)
QUERY = Path(__file__).parents[1] / "queries" / "papers_benchmarks.sql"


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in list_macros():
        connection.execute(read_sql("macros", name))
    connection.execute("create schema papers")
    return connection


def test_a_benchmark_seldom_correlates_where_none_does(
    database: duckdb.DuckDBPyConnection,
) -> None:
    def claims(shared: float) -> int:
        dice = np.random.default_rng(0)
        rows = []
        for world in range(NUM_WORLDS):
            level = dice.standard_normal(8)
            for name in "abc":
                score = dice.standard_normal(8) - shared * level
                pearson = float(np.corrcoef(level, score)[0, 1])
                rows.append({"against": f"{world}/{name}", "pearson": pearson})
        planted = pl.DataFrame(rows).with_columns(
            protocol=pl.lit("default"), scope=pl.lit("all"), figure=pl.lit("headline"),
            against_kind=pl.lit("benchmark"), model_kind=pl.lit("all"), size_class=pl.lit("all"),
            spearman=0.0, num_models=8,
        )  # fmt: skip
        database.register("planted", planted)
        database.execute("create or replace table papers.benchmark_correlation as from planted")
        rows = database.sql(QUERY.read_text()).pl()
        worlds = rows.with_columns(world=pl.col("against").str.split("/").list.first())
        titles = [benchmarks_finding(each.to_dicts()) for each in worlds.partition_by("world")]
        return sum("benchmarks correlate" in title for title in titles)

    assert claims(0.0) <= MOST_WRONG
    assert claims(5.0) > 0.95 * NUM_WORLDS
