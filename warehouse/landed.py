"""What has landed, as the vocabulary of ``core``: read from a snapshot or from a release."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any

import duckdb

from core.cells import Cell
from core.corpus import Partition
from core.month import Month
from warehouse.schema import read_sql


def own_cells(connection: duckdb.DuckDBPyConnection) -> list[Cell]:
    """Return the cells that tidemark has scored itself, in order."""
    rows = read_rows(connection, "list_own_cells")
    return [
        Cell(
            model=row["model"],
            revision=row["revision"],
            partition=partition_at(row["source"], row["month"]),
            partition_digest=row["partition_digest"],
            protocol=row["protocol"],
            scoring=row["scoring"],
            partition_version=row["partition_version"],
        )
        for row in rows
    ]


def read_rows(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    parameters: Mapping[str, object] | None = None,
) -> list[dict[str, Any]]:
    """Run ``cells/<statement>.sql`` with bound parameters and return its rows by column name."""
    rows = connection.execute(read_sql("cells", statement), parameters or None).fetchall()
    names = [column[0] for column in connection.description or []]
    return [dict(zip(names, row, strict=True)) for row in rows]


def partition_at(source: str, month: dt.date | None) -> Partition:
    """Return the partition of a source and a month's first day."""
    return Partition(source, Month.of(month) if month else None)
