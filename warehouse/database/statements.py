"""Execution of the statements in ``land/*.sql``, and conversion of DuckDB's errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from core.errors import DiskFull, WarehouseError
from warehouse.database.schema import qualify, read_statements

Row = dict[str, Any]  # a value by the name of its column
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
            return self.connection.execute(read_statements()[statement], parameters).fetchall()

    def rows(self, statement: str, parameters: Mapping[str, object] | None = None) -> list[Row]:
        """Run a statement and return its rows as mappings from column name to value."""
        with explain_database_errors(f"run {statement}"):
            return rows_of(self.connection.execute(read_statements()[statement], parameters))

    def first(self, statement: str, parameters: Mapping[str, object] | None = None) -> Row | None:
        """Run a statement and return its first row as a mapping, or None without rows."""
        return next(iter(self.rows(statement, parameters)), None)

    def count(self, table: str) -> int:
        """Return the number of rows of a table, of a temporary table or of given data."""
        [(num_rows,)] = self.connection.execute(f"select count(*) from {table}").fetchall()  # noqa: S608
        return int(num_rows)

    def replace(self, table: str, key: Mapping[str, object], rows: str) -> None:
        """Delete the rows of a table that have the values of ``key``, and insert ``rows`` instead.

        Args:
            table: name of the table; its columns that ``rows`` lacks become NULL.
            key: values by name of column; None is the value NULL. Empty: all rows.
            rows: name of a temporary table or of given data.

        Raises:
            WarehouseError: a statement failed.
        """
        delete = f"delete from {qualify(table)} where {_condition_of(key)}"  # noqa: S608 - names of ours
        self.execute(delete, f"replace rows of {table}", key)
        self.insert(table, rows)

    def insert(self, table: str, rows: str) -> int:
        """Insert rows by the names of their columns; return the number of rows."""
        statement = f"insert into {qualify(table)} by name from {rows}"
        return self.execute(statement, f"write rows of {table}")

    def has(self, table: str, values: Mapping[str, object]) -> bool:
        """Return True if a row of a table has the values, by name of column."""
        query = f"select 1 from {qualify(table)} where {_condition_of(values)} limit 1"  # noqa: S608 - names of ours
        return bool(self.connection.execute(query, values).fetchall())

    def delete_touched(self, table: str) -> None:
        """Delete the rows of a table that belong to the cells of temporary table ``touched``."""
        self.execute(
            f"delete from {qualify(table)} as landed using touched as t where "  # noqa: S608 - names of ours
            "landed.model = t.model and landed.source = t.source and "
            "landed.month is not distinct from t.month and landed.protocol = t.protocol",
            f"replace rows of {table}",
        )

    def add_names(self, dimension: str, table: str) -> None:
        """Add missing names of a table to the ``dimension`` models, sources or protocols.

        Views join the table with the dimension, and would drop rows with missing names.
        """
        column = dimension.removesuffix("s")
        self.execute(
            f"insert into {dimension} ({column}) select distinct {column} from {qualify(table)} "  # noqa: S608 - names of ours
            f"where {column} not in (select {column} from {dimension})",
            f"add names to {dimension}",
        )

    def execute(
        self, statement: str, what: str, parameters: Mapping[str, object] | None = None
    ) -> int:
        """Run a statement that changes rows; return their number. ``what`` is for messages."""
        with explain_database_errors(what):
            [(num_rows,)] = self.connection.execute(statement, parameters).fetchall()
        return int(num_rows)

    def upsert(self, table: str, rows: str, key: Sequence[str]) -> int:
        """Write rows to a table, in place of those with the same key.

        A row that equals the landed row is not written.

        Args:
            table: name of the table; its columns that ``rows`` lacks become NULL in new rows.
            rows: name of a temporary table or of given data, with one row per key.
            key: the names of the columns that identify a row of the table.

        Returns:
            Number of new and changed rows.

        Raises:
            WarehouseError: the statement failed.
        """
        columns = self.connection.table(rows).columns
        match = " and ".join(f"landed.{name} is not distinct from given.{name}" for name in key)
        values = ", ".join(f"given.{name}" for name in columns)
        others = [name for name in columns if name not in key]
        changed = ", ".join(f"{name} = given.{name}" for name in others)
        differs = " or ".join(f"landed.{name} is distinct from given.{name}" for name in others)
        statement = (
            f"merge into {qualify(table)} as landed using {rows} as given on {match} "  # noqa: S608
            f"when matched and ({differs}) then update set {changed} "
            f"when not matched then insert ({', '.join(columns)}) values ({values})"
        )
        return self.execute(statement, f"write rows of {table}")

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
            # After a fatal error, such as a damaged file, this fails as well.
            with contextlib.suppress(duckdb.Error):
                for name in data:
                    self.connection.unregister(name)


def _condition_of(key: Mapping[str, object]) -> str:
    """Return the SQL condition that columns equal bound parameters of the same names."""
    return " and ".join(f"{name} is not distinct from ${name}" for name in key) or "true"


def rows_of(result: duckdb.DuckDBPyConnection) -> list[Row]:
    """Return the rows of the last executed statement as mappings from column name to value."""
    names = [column[0] for column in result.description or []]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


def show(row: Mapping[str, object]) -> str:
    """Return a row as text (``name=value, …``) for messages."""
    return ", ".join(f"{name}={value}" for name, value in row.items())
