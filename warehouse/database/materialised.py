"""Views whose rows a published snapshot keeps, because they take long and other views read them.

The writer's database computes every view, since landing changes the rows that views read. The rows
of a snapshot do not change. There, a view with ``materialised: true`` in its ``.yml`` reads a
table of schema ``materialised``.
"""

from __future__ import annotations

import duckdb

from warehouse.database.objects import comment_on, comments_of_columns, comments_of_view
from warehouse.database.schema import (
    MATERIALISED,
    describe_view,
    list_views,
    qualify,
    read_sql,
)


def list_materialised() -> list[str]:
    """Return the views whose rows a snapshot keeps, each after those that it reads."""
    return [view for view, file in list_views().items() if describe_view(file).is_materialised]


def materialise(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute each materialised view once; then it reads the table with its sorted rows.

    Threads finish in any order. Sorting makes the rows of two releases equal.
    The caller must have begun a transaction.
    """
    compute_views(connection)
    connection.execute(f"create schema {MATERIALISED}")
    for view in list_materialised():
        table = f"{MATERIALISED}.{view}"
        connection.execute(f"create table {table} as from {qualify(view)} order by all")
        connection.execute(f"create or replace view {qualify(view)} as from {table}")
        columns = describe_view(list_views()[view]).columns
        comments = [
            comment_on("table", table, text=f"Rows of view {qualify(view)}."),
            *comments_of_columns(table, columns),
            *comments_of_view(view),
        ]
        connection.execute("\n".join(comments))


def compute_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Let each materialised view compute its rows again, as rows of tables are to be changed.

    The caller must have begun a transaction.
    """
    if not _has_rows_of_views(connection):
        return
    for view in list_materialised():
        connection.execute(read_sql("views", view))
        connection.execute("\n".join(comments_of_view(view)))
    connection.execute(f"drop schema {MATERIALISED} cascade")


def _has_rows_of_views(connection: duckdb.DuckDBPyConnection) -> bool:
    query = "select schema_name from duckdb_schemas() where schema_name = ?"
    return connection.execute(query, [MATERIALISED]).fetchone() is not None
