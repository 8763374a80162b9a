from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import duckdb
import pytest

from core.settings import Settings
from warehouse.comments import comment_on
from warehouse.objects import create_objects
from warehouse.publish import publish
from warehouse.schema import describe_columns, describe_view, list_tables, list_views

BARE = """
select table_name || '.' || column_name as name from duckdb_columns()
where not internal and coalesce(comment, '') = ''
union all
select table_name from duckdb_tables() where not internal and coalesce(comment, '') = ''
union all
select view_name from duckdb_views() where not internal and coalesce(comment, '') = ''
union all
select function_name from duckdb_functions() where not internal and coalesce(comment, '') = ''
"""
# As in the guide for analysts: what is there, and what it means.
COLUMNS = """
select table_name, column_name, comment from duckdb_columns()
where not internal and table_name in ('chunk_losses', 'monthly_loss')
"""
LOSS = "summed negative log-likelihood; NULL = not measured [nats]"


@pytest.fixture
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    create_objects(connection)
    return connection


def test_nothing_is_without_a_comment(database: duckdb.DuckDBPyConnection) -> None:
    assert database.execute(BARE).fetchall() == []


def test_tables_and_their_descriptions_have_the_same_columns(
    database: duckdb.DuckDBPyConnection,
) -> None:
    described = {table: list(columns) for table, columns in describe_columns().items()}
    assert described == {table: database.table(table).columns for table in list_tables()}


def test_a_comment_says_what_the_file_says(database: duckdb.DuckDBPyConnection) -> None:
    sql = "select comment from duckdb_views() where view_name = 'monthly_loss'"
    [(comment,)] = database.execute(sql).fetchall()
    description = describe_view(list_views()["monthly_loss"]).description
    assert comment == f"{description} One row per model, source, protocol, month."
    [(comment,)] = database.execute(
        "select comment from duckdb_functions() where function_name = 'train_test_gap_at'"
    ).fetchall()
    assert comment.startswith("Bits per byte before and after a date")
    sql = "select comment from duckdb_tables() where table_name = 'schema_version'"
    [(comment,)] = database.execute(sql).fetchall()
    assert comment == "The version of the tables in this file; migrations go by it."
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
        connection.execute(comment_on("column", name, name, text=text))
        found = connection.execute(
            "select t.comment, c.comment from duckdb_tables() as t "
            "inner join duckdb_columns() as c using (table_name) where table_name = ?",
            [name],
        ).fetchall()
        assert found == [(text, text)]
        assert connection.table("kept").fetchall() == []


@pytest.mark.slow
def test_the_plain_client_shows_the_comments(land: Any, settings: Settings, client: Path) -> None:
    land({})
    snapshot = publish(settings)

    def ask(sql: str) -> list[dict[str, str]]:
        command = [client, "-readonly", "-json", "-init", "/dev/null", snapshot, "-c", sql]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows: list[dict[str, str]] = json.loads(done.stdout or "[]")
        return rows

    assert [row for row in ask(BARE) if row] == []
    comments = {(row["table_name"], row["column_name"]): row["comment"] for row in ask(COLUMNS)}
    assert comments["chunk_losses", "nll_nats"] == LOSS
