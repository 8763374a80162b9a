"""Views whose rows a published snapshot keeps, because they take long and other views read them.

The writer's database computes every view, since landing changes the rows that views read. The rows
of a snapshot do not change. There, a view with ``materialised: true`` in its ``.yml`` reads a
table of schema ``materialised``.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator

import duckdb

from warehouse.database.comments import comment_on, comments_of_view
from warehouse.database.schema import MATERIALISED, list_views, qualify, read_view


@functools.cache
def list_materialised() -> tuple[str, ...]:
    """Return the views whose rows a snapshot keeps, each after those that it reads."""
    # Search the text, since parsing the YAML of all views takes a quarter of a second.
    return tuple(
        view
        for view, file in list_views().items()
        if "\nmaterialised: true\n" in file.with_suffix(".yml").read_text(encoding="utf-8")
    )


def materialise(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute each materialised view once; then it reads the table with its sorted rows.

    Rows are sorted, and one thread computes them, so that two publications are equal.
    The caller must have begun a transaction.
    """
    compute_views(connection)
    connection.execute(f"create schema {MATERIALISED}")
    with one_thread(connection):
        for view in list_materialised():
            table = keep_rows(connection, view, "order by all")
            text = f"Rows of view {qualify(view)}, which has the comments of the columns."
            comments = [comment_on("table", table, text), *comments_of_view(view)]
            connection.execute("\n".join(comments))


@contextlib.contextmanager
def one_thread(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Use one thread, since sums of several threads differ in the last digit between runs."""
    [(former,)] = connection.execute("select current_setting('threads')").fetchall()
    connection.execute("set threads = 1")
    yield
    connection.execute(f"set threads = {former}")


def keep_rows(connection: duckdb.DuckDBPyConnection, view: str, clause: str) -> str:
    """Write a view's rows to a table, which the view reads from then on; return its name."""
    table = f"{MATERIALISED}.{view}"
    connection.execute(f"create table {table} as from {qualify(view)} {clause}")
    connection.execute(f"create or replace view {qualify(view)} as from {table}")
    return table


def compute_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Let each materialised view compute its rows again, as rows of tables are to be changed.

    The caller must have begun a transaction.
    """
    query = "select table_name from duckdb_tables() where schema_name = ?"
    kept = {name for (name,) in connection.execute(query, [MATERIALISED]).fetchall()}
    for view in list_materialised():
        if view in kept:
            connection.execute(read_view(view))
            connection.execute("\n".join(comments_of_view(view)))
    connection.execute(f"drop schema if exists {MATERIALISED} cascade")
