import datetime as dt
import math
import random
from typing import Any

import duckdb
import pytest

from core.month import Month
from core.settings import Settings
from tests.losses import publish_rows
from tests.reports.curves import crowd, losses
from warehouse.database.materialised import list_materialised, materialise
from warehouse.database.schema import MATERIALISED, SNAPSHOT, qualify
from warehouse.database.writer import connected, take_over, transaction
from warehouse.read.publish import publish
from warehouse.read.query import query

pytestmark = pytest.mark.long


def two_models(land: Any, month: int = 1) -> None:
    models = [{"model": model, "month": dt.date(2024, month, 1)} for model in ("one", "other")]
    land(*({**model, "document_id": f"d{number}"} for model in models for number in range(30)))


def is_kept(connection: duckdb.DuckDBPyConnection) -> bool:
    sql = "select schema_name from duckdb_schemas() where not internal"
    return (MATERIALISED,) in connection.sql(sql).fetchall()


def test_each_snapshot_keeps_rows_that_the_writer_computes(land: Any, settings: Settings) -> None:
    two_models(land)
    with connected(settings) as connection:
        rows = {view: connection.sql(f"from {qualify(view)}") for view in list_materialised()}
        computed = {view: sorted(map(repr, each.fetchall())) for view, each in rows.items()}
        assert not is_kept(connection)
    publish(settings)
    with duckdb.connect(f"{settings.home}/{SNAPSHOT}", read_only=True) as connection:
        assert is_kept(connection)
        for view, expected in computed.items():
            sql = f"select sql from duckdb_views() where view_name = '{view}'"
            assert f"{MATERIALISED}.{view}" in connection.sql(sql).fetchall()[0][0]
            found = connection.sql(f"from {qualify(view)}").fetchall()
            assert sorted(map(repr, found)) == expected
    assert computed["model_difference"]
    before = query(settings, "from internal.slope_cells").num_rows
    two_models(land, 2)
    publish(settings)
    assert query(settings, "from internal.slope_cells").num_rows > before


def test_kept_rows_are_sorted_so_that_releases_are_equal(land: Any, settings: Settings) -> None:
    models = [f"model{number}" for number in range(40)]
    land(*({"model": model, "document_id": f"d{n}"} for model in models for n in range(2)))
    publish(settings)
    with duckdb.connect(f"{settings.home}/{SNAPSHOT}", read_only=True) as connection:
        for view in list_materialised():
            stored = connection.sql(f"from {MATERIALISED}.{view}").fetchall()
            by_value = connection.sql(f"from {MATERIALISED}.{view} order by all").fetchall()
            assert repr(stored) == repr(by_value), view


def test_publications_of_the_same_losses_are_equal_to_the_last_digit(
    settings: Settings,
) -> None:
    figures, cutoffs = crowd(4, random.Random(0))
    rows = losses(figures).to_pylist()
    for number, row in enumerate(rows):
        row["nll_nats"] *= 1 + math.sin(number) / 10
    known = {"kind": "reference", "cutoff_provenance": "planted", "cutoff_precision": "month"}
    models = [{"name": name, "cutoff": Month(cutoffs[name]), **known} for name in cutoffs]
    publish_rows(settings, rows, *models)
    first = kept_rows(settings)
    for _ in range(2):
        publish(settings)
        assert kept_rows(settings) == first


def kept_rows(settings: Settings) -> dict[str, str]:
    with duckdb.connect(f"{settings.home}/{SNAPSHOT}", read_only=True) as connection:
        tables = {view: connection.table(f"{MATERIALISED}.{view}") for view in list_materialised()}
        return {view: repr(table.fetchall()) for view, table in tables.items()}


def test_kept_rows_are_computed_again_after_a_change(land: Any, settings: Settings) -> None:
    two_models(land)
    view = "internal.slope_cells"
    with connected(settings) as connection:
        with transaction(connection, "keep rows"):
            materialise(connection)
        assert connection.table(view).fetchall()
        with transaction(connection, "keep rows again"):
            connection.execute("delete from internal.landed_cells")
            materialise(connection)
        assert is_kept(connection)
        assert not connection.table(view).fetchall()


def test_a_writer_made_from_a_snapshot_computes(
    land: Any, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> None:
    two_models(land)
    publish(settings)
    there = settings.model_copy(update={"work_dir": tmp_path_factory.mktemp("there")})
    assert take_over(there)
    with connected(there) as connection:
        assert not is_kept(connection)
        assert connection.table("internal.slope_cells").fetchall()
        connection.execute("delete from internal.landed_cells")
        assert not connection.table("internal.slope_cells").fetchall()
