"""The statements of ``read/sql``, and the landed cells that tidemark scored."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb

from core.cells.losses import Cell
from warehouse.database.schema import find_schema, read_sql
from warehouse.database.statements import Row, Statements, rows_of
from warehouse.land.landed import partition_at


def run_file(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    parameters: Mapping[str, object] | None = None,
    folder: str = "read/sql",
) -> list[Row]:
    """Run ``<folder>/<statement>.sql`` with bound parameters; return its rows by column name."""
    return rows_of(connection.execute(read_sql(folder, statement), parameters))


def scored_cells(connection: duckdb.DuckDBPyConnection) -> list[Cell]:
    """Return the landed cells that tidemark scored, sorted, without imported cells.

    The database may be a release with a former schema version.
    """
    schema = find_schema(connection, "landed_cells")
    cells = connection.table(f"{schema}.landed_cells")
    with Statements(connection).given(cells_to_list=cells):
        rows = run_file(connection, "list_scored_cells")
    return [
        Cell(partition=partition_at(row.pop("source"), row.pop("month")), **row) for row in rows
    ]
