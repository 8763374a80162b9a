from collections.abc import Iterator
from typing import Any

import duckdb
import pytest

from core.errors import WarehouseError
from core.settings import Settings
from warehouse.database.comments import comment_on
from warehouse.database.schema import (
    SCHEMA_VERSION,
    describe_columns,
    describe_view,
    list_tables,
    list_views,
    qualify,
)
from warehouse.database.writer import connected, writer_path
from warehouse.land.losses import open_warehouse

CONTRACT = [
    "model", "revision", "source", "month", "document_id", "chunk_index", "protocol",
    "nll_nats", "num_tokens", "num_chars", "num_bytes",
]  # fmt: skip


def test_the_contract_of_chunk_losses(land: Any, ask: Any) -> None:
    land({})
    columns = [row["column_name"] for row in ask("describe chunk_losses")]
    assert columns[: len(CONTRACT)] == CONTRACT


def test_a_later_schema_is_refused(settings: Settings) -> None:
    with open_warehouse(settings), connected(settings) as connection:
        connection.execute("update internal.schema_version set version = version + 1")
    says = f"newer than this one.*has schema version {SCHEMA_VERSION + 1}"
    with pytest.raises(WarehouseError, match=says), open_warehouse(settings):
        pass


def test_a_damaged_file_is_explained(settings: Settings) -> None:
    writer_path(settings).parent.mkdir(parents=True)
    writer_path(settings).write_bytes(b"torn" * 5000)
    says = r"writer\.duckdb is no database of DuckDB"
    with pytest.raises(WarehouseError, match=says), open_warehouse(settings):
        pass


# Schema old has aliases, without comments.
BARE = """
select table_name || '.' || column_name as name from duckdb_columns()
where not internal and schema_name <> 'old' and coalesce(comment, '') = ''
union all
select table_name from duckdb_tables()
where not internal and schema_name <> 'old' and coalesce(comment, '') = ''
union all
select view_name from duckdb_views()
where not internal and schema_name <> 'old' and coalesce(comment, '') = ''
union all
select function_name from duckdb_functions()
where not internal and schema_name <> 'old' and coalesce(comment, '') = ''
"""
# As in the guide for analysts: what is there, and what it means.
COLUMNS = """
select table_name, column_name, comment from duckdb_columns()
where not internal and table_name in ('chunk_losses', 'monthly_loss')
"""
LOSS = "summed negative log-likelihood; NULL if not measured [nats]"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    with connected(Settings(home=str(tmp_path_factory.mktemp("home")))) as connection:
        yield connection


@pytest.mark.long
def test_all_has_comments_and_described_columns(database: duckdb.DuckDBPyConnection) -> None:
    assert database.execute(BARE).fetchall() == []
    described = {table: list(columns) for table, columns in describe_columns().items()}
    assert described == {table: database.table(qualify(table)).columns for table in list_tables()}


@pytest.mark.long
def test_a_comment_says_what_the_file_says(database: duckdb.DuckDBPyConnection) -> None:
    description = describe_view(list_views()["monthly_loss"]).description
    for kind, name, says in (
        ("view", "monthly_loss", f"{description} One row per model, source, protocol, month."),
        ("function", "train_test_gap_at", "Bits per byte before and after a date"),
        ("table", "schema_version", "The schema version of this database, for migrations."),
    ):
        sql = f"select comment from duckdb_{kind}s() where {kind}_name = ?"
        [(comment,)] = database.execute(sql, [name]).fetchall()
        assert comment.startswith(says)
    comments = {(t, c): text for t, c, text in database.execute(COLUMNS).fetchall()}
    assert comments["chunk_losses", "nll_nats"] == LOSS
    assert comments["monthly_loss", "bits_per_byte"].endswith(" [bits per byte]")


def test_names_and_texts_of_any_characters_are_quoted() -> None:
    name, text = 'x"; drop table kept; --', "it's; drop table kept; -- \n\\ ü"
    with duckdb.connect() as connection:
        connection.execute("create table kept (a integer)")
        quoted = '"' + name.replace('"', '""') + '"'
        connection.execute(f"create table {quoted} ({quoted} integer)")
        connection.execute(comment_on("table", name, text=text))
        connection.execute(comment_on("column", f"{name}.{name}", text=text))
        found = connection.execute(
            "select t.comment, c.comment from duckdb_tables() as t "
            "inner join duckdb_columns() as c using (table_name) where table_name = ?",
            [name],
        ).fetchall()
        assert found == [(text, text)]
        assert connection.table("kept").fetchall() == []
