"""Landing of small files of keyed rows: what others have measured, or answered.

A file lands whole or not at all; what is landed just so is passed over, and another value under a
landed key is refused unless it shall replace it. The statements of a target are
``landing/{stage,find_bad,find_conflicting,change,delete,insert}_<target>.sql``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from core.errors import CellConflict, SchemaMismatch
from core.settings import Settings
from warehouse.database_errors import explain_database_errors
from warehouse.schema import read_sql
from warehouse.text_table import TextTable
from warehouse.writer import connected, locked


@dataclass(frozen=True)
class LandedRows:
    """What a file held, and what it changed.

    Attributes:
        num_rows: rows of the file.
        num_changed: rows that were not landed just so already.
        models: the models that they are of.
        sources: the sources that they are of; none for benchmarks.
        ignored: columns of the file that mean nothing here.
    """

    num_rows: int
    num_changed: int
    models: tuple[str, ...]
    sources: tuple[str, ...]
    ignored: tuple[str, ...]


@contextmanager
def staged(
    settings: Settings, table: TextTable, target: str, given: Mapping[str, object]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield the writer's database with the file's rows staged."""
    with locked(settings), connected(settings) as connection:
        connection.register("rows_to_land", table.rows)
        run(connection, f"stage_{target}", given)
        yield connection


def require_sound(connection: duckdb.DuckDBPyConnection, path: Path, target: str) -> None:
    """Check what is staged.

    Raises:
        SchemaMismatch: the first row that cannot be landed, what it holds, and what was expected.
    """
    refuse_first(connection, path, f"find_bad_{target}")


def refuse_first(connection: duckdb.DuckDBPyConnection, path: Path, statement: str) -> None:
    """Refuse the first row that a statement of ``landing/`` finds fault with, if there is one.

    Raises:
        SchemaMismatch: the row, the column, what it holds, and what was expected.
    """
    if bad := first_row(connection, statement):
        raise SchemaMismatch(
            f"{path}, row {bad['row_number']}: {bad['column_name']} is {_show(bad['given'])}; "
            f"expected {bad['expected']}. Nothing of the file was landed"
        )


def require_agreement(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    statement: str,
    remedy: str = "--replace takes the file's values",
) -> None:
    """Refuse the first row that a statement finds landed otherwise, if there is one.

    Of a pair of columns, ``<name>`` and ``landed_<name>`` (or ``loaded_<name>``), both are shown if
    they differ and neither is missing; columns without such a twin always.

    Raises:
        CellConflict: the row, what is landed of it, and the remedy.
    """
    if row := first_row(connection, statement):
        shown = ", ".join(f"{name}={_show(value)}" for name, value in _telling(row).items())
        raise CellConflict(
            f"{path}: disagrees with what is landed: {shown}. Nothing of it was landed; {remedy}"
        )


def put(connection: duckdb.DuckDBPyConnection, target: str) -> int:
    """Put what is staged into its table, in a transaction; return how many rows changed."""
    run(connection, f"change_{target}")
    run(connection, f"delete_{target}")
    [(num_changed,)] = run(connection, f"insert_{target}")
    return int(num_changed)


def summarise(table: TextTable, num_changed: int) -> LandedRows:
    """Return what a file held, for people and for the server's assets."""

    def names(column: str) -> tuple[str, ...]:
        if column not in table.rows.column_names:
            return ()
        values = table.rows[column].unique().to_pylist()
        return tuple(sorted({str(value).strip() for value in values if value is not None}))

    return LandedRows(
        table.rows.num_rows, num_changed, names("model"), names("source"), table.ignored
    )


def run(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    parameters: Mapping[str, object] | None = None,
) -> list[tuple[Any, ...]]:
    """Run a statement of ``landing/`` and return its rows."""
    with explain_database_errors(f"run {statement}"):
        text = read_sql("landing", statement)
        return connection.execute(text, parameters or None).fetchall()


def first_row(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    parameters: Mapping[str, object] | None = None,
) -> dict[str, Any] | None:
    """Run a statement of ``landing/`` and return its first row by column, or None."""
    rows = run(connection, statement, parameters)
    names = [column[0] for column in connection.description or []]
    return dict(zip(names, rows[0], strict=True)) if rows else None


def _telling(row: dict[str, Any]) -> dict[str, Any]:
    """Leave out pairs that agree, or of which one side leaves the matter open."""
    silent: set[str] = set()
    for name in row:
        for twin in (f"landed_{name}", f"loaded_{name}"):
            if twin in row and (None in (row[name], row[twin]) or row[name] == row[twin]):
                silent |= {name, twin}
    return {name: value for name, value in row.items() if name not in silent}


def _show(value: object) -> str:
    return "missing" if value is None else repr(value) if isinstance(value, str) else str(value)
