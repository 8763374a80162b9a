"""Execution of the statements in ``land/*.sql``, and conversion of DuckDB's errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from core.errors import DiskFull, WarehouseError
from warehouse.database.schema import qualify, read_statement

Config = dict[str, str | bool | int | float | list[str]]
# By default, DuckDB downloads an extension that a statement needs.
OFFLINE: Config = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}


@contextlib.contextmanager
def explain_database_errors(what: str) -> Iterator[None]:
    """Convert DuckDB's errors to WarehouseError or DiskFull; ``what`` names the failed action."""
    try:
        yield
    except duckdb.Error as error:
        if "No space left" in str(error):
            raise DiskFull(
                f"no space left: cannot {what}; nothing was changed. Free some, or move the data "
                "root (TIDEMARK_HOME), then run the same command again"
            ) from error
        raise WarehouseError(f"cannot {what}: {error}") from error


def quoted(text: str) -> str:
    """Return a text as a quoted SQL literal, for statements that accept no parameters."""
    return "'" + text.replace("'", "''") + "'"


class Statements:
    """Methods that run the statements of ``land/*.sql``, by name, on one connection."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection

    def run(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> list[tuple[Any, ...]]:
        """Run a statement with bound parameters and return its rows.

        Raises:
            WarehouseError: the statement failed.
            DiskFull: no space is left on the disk.
        """
        with explain_database_errors(f"run {statement}"):
            return self.connection.execute(read_statement(statement), parameters).fetchall()

    def rows(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> list[dict[str, Any]]:
        """Run a statement and return its rows as mappings from column name to value."""
        with explain_database_errors(f"run {statement}"):
            return rows_of(self.connection.execute(read_statement(statement), parameters))

    def first(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> dict[str, Any] | None:
        """Run a statement and return its first row as a mapping, or None without rows."""
        return next(iter(self.rows(statement, parameters)), None)

    def upsert(self, table: str, rows: str, key: Sequence[str]) -> int:
        """Write rows to a table, in place of those with the same key; return their number.

        Args:
            table: name of the table; its columns that ``rows`` lacks become NULL in new rows.
            rows: name of a temporary table or of given data, with one row per key.
            key: the names of the columns that tell rows of the table from each other.

        Raises:
            WarehouseError: the statement failed.
        """
        columns = self.connection.table(rows).columns
        match = " and ".join(f"landed.{name} = given.{name}" for name in key)
        changed = ", ".join(f"{name} = given.{name}" for name in columns if name not in key)
        values = ", ".join(f"given.{name}" for name in columns)
        statement = (
            f"merge into {qualify(table)} as landed using {rows} as given on {match} "  # noqa: S608
            f"when matched then update set {changed} "
            f"when not matched then insert ({', '.join(columns)}) values ({values})"
        )
        with explain_database_errors(f"write rows of {table}"):
            [(num_rows,)] = self.connection.execute(statement).fetchall()
        return int(num_rows)

    def columns(self, table: str) -> pa.Schema:
        """Return the names and Arrow types of a table's columns."""
        return self.connection.table(qualify(table)).limit(0).to_arrow_table().schema

    @contextlib.contextmanager
    def given(self, **data: object) -> Iterator[None]:
        """Make Arrow data or relations readable as tables by argument name in a ``with`` block."""
        for name, table in data.items():
            self.connection.register(name, table)
        try:
            yield
        finally:
            # After a fatal error, such as of a damaged file, the connection refuses this, too.
            with contextlib.suppress(duckdb.Error):
                for name in data:
                    self.connection.unregister(name)


def rows_of(result: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return the rows of the last executed statement as mappings from column name to value."""
    names = [column[0] for column in result.description or []]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def show(row: Mapping[str, object]) -> str:
    """Return a row as text (``name=value, …``) for messages."""
    return ", ".join(f"{name}={value}" for name, value in row.items())
