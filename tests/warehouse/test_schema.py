from __future__ import annotations

from typing import Any

import pytest

from core.errors import WarehouseError
from core.settings import Settings
from warehouse.land import open_warehouse
from warehouse.schema import SCHEMA_VERSION, list_macros, list_tables, list_views
from warehouse.writer import connected, writer_path

CONTRACT = [
    "model", "revision", "source", "month", "document_id", "chunk_index", "protocol",
    "nll_nats", "num_tokens", "num_chars", "num_bytes",
]  # fmt: skip


def test_the_contract_of_chunk_losses(land: Any, ask: Any) -> None:
    land({})
    columns = [row["column_name"] for row in ask("describe chunk_losses")]
    assert columns[: len(CONTRACT)] == CONTRACT


def test_every_file_makes_the_object_of_its_name(settings: Settings, ask: Any) -> None:
    with open_warehouse(settings):
        pass
    names = {row["name"] for row in ask("from duckdb_tables() select table_name as name")}
    views = {
        row["name"]
        for row in ask("from duckdb_views() select view_name as name where not internal")
    }
    macros = {
        row["name"]
        for row in ask("from duckdb_functions() select function_name as name where not internal")
    }
    assert names == set(list_tables())
    assert views | macros == set(list_views()) | set(list_macros())


def test_a_view_comes_after_what_it_reads() -> None:
    order = list(list_views())
    assert order.index("monthly_loss") < order.index("replicate_monthly_loss")
    assert order.index("train_test_gap_at") < order.index("train_test_gap")


def test_a_later_schema_is_refused(settings: Settings) -> None:
    with connected_once(settings) as connection:
        connection.execute("update schema_version set version = version + 1")
    with (
        pytest.raises(WarehouseError, match=f"version {SCHEMA_VERSION + 1}.*newer tidemark"),
        open_warehouse(settings),
    ):
        pass


def test_a_damaged_file_is_explained(settings: Settings) -> None:
    writer_path(settings).parent.mkdir(parents=True)
    writer_path(settings).write_bytes(b"torn" * 5000)
    with (
        pytest.raises(WarehouseError, match=r"cannot open .*writer\.duckdb"),
        open_warehouse(settings),
    ):
        pass


def connected_once(settings: Settings) -> Any:
    with open_warehouse(settings):
        pass  # makes the folder
    return connected(settings)
