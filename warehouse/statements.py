"""Statements of ``landing/``, run with bound parameters."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb
import pyarrow as pa

from warehouse.database_errors import explain_database_errors
from warehouse.schema import read_sql


class Statements:
    """Runs ``landing/<statement>.sql`` on one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def run(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows.

        Raises:
            WarehouseError: the database refused it.
            DiskFull: no space left.
        """
        with explain_database_errors(f"run {statement}"):
            text = read_sql("landing", statement)
            return self.connection.execute(text, parameters or None).fetchall()

    def first(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> dict[str, object] | None:
        """Return the first row of a statement by column name, or None."""
        rows = self.run(statement, parameters)
        names = [column[0] for column in self.connection.description or []]
        return dict(zip(names, rows[0], strict=True)) if rows else None

    @contextlib.contextmanager
    def given(self, name: str, data: pa.Table | duckdb.DuckDBPyRelation) -> Iterator[None]:
        """Let SQL read a table, or a relation of this connection, under a name."""
        self.connection.register(name, data)
        try:
            yield
        finally:
            self.connection.unregister(name)


def show(row: Mapping[str, object]) -> str:
    """Return a row as text, for messages."""
    return ", ".join(f"{name}={value}" for name, value in row.items())
