"""Landing of what others have measured: published monthly rates, and scores on benchmarks.

Both come as small files of keyed rows. A file lands whole or not at all; what is landed just so is
passed over, and another value under a landed key is refused unless it shall replace it.
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
from warehouse.text_table import TextTable, read_text_table
from warehouse.writer import connected, locked, transaction

# Rows under it are published figures: no loss of one's own may be landed under this name.
PUBLISHED = "published"


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


def land_published(
    settings: Settings,
    path: Path,
    reference: str | None = None,
    is_percent: bool = False,
    replace: bool = False,
) -> LandedRows:
    """Land published monthly compression rates, all of a file or nothing.

    Args:
        settings: say where the warehouse is.
        path: CSV or Parquet with model, source, month (YYYY-MM or a date) and compression_rate,
            and optionally num_bytes, is_text and reference.
        reference: citation for rows that do not bring their own.
        is_percent: the rates are percentages; else fractions of the raw size.
        replace: the file's values take the place of landed ones that differ.

    Raises:
        MalformedInput, SchemaMismatch: says which row, what it holds, and what was expected.
        CellConflict: another value is landed for a model, source and month.
    """
    table = read_text_table(
        path,
        ["model", "source", "month", "compression_rate"],
        ["num_bytes", "is_text", "reference"],
    )
    given = {"reference": reference, "is_percent": is_percent}
    with _staged(settings, table, "published_rates", given) as connection:
        num_changed = _land(connection, path, "published_rates", replace)
    return _summary(table, num_changed)


def load_benchmarks(settings: Settings, path: Path, replace: bool = False) -> LandedRows:
    """Load scores of models on benchmarks, all of a file or nothing.

    Args:
        settings: say where the warehouse is.
        path: CSV or Parquet with model, benchmark and score, and optionally reference and as_of
            (YYYY-MM or a date).
        replace: the file's values take the place of loaded ones that differ.

    Raises:
        MalformedInput, SchemaMismatch: says which row, what it holds, and what was expected.
        CellConflict: another score is loaded for a model and benchmark.
    """
    table = read_text_table(path, ["model", "benchmark", "score"], ["reference", "as_of"])
    with _staged(settings, table, "benchmark_scores", {}) as connection:
        num_changed = _land(connection, path, "benchmark_scores", replace)
    return _summary(table, num_changed)


@contextmanager
def _staged(
    settings: Settings, table: TextTable, target: str, given: Mapping[str, object]
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield the writer's database with the file's rows staged."""
    with locked(settings), connected(settings) as connection:
        connection.register("rows_to_land", table.rows)
        _run(connection, f"stage_{target}", given)
        yield connection


def _land(connection: duckdb.DuckDBPyConnection, path: Path, target: str, replace: bool) -> int:
    """Check what is staged and put it into its table; return how many rows changed."""
    if bad := _first(connection, f"find_bad_{target}"):
        raise SchemaMismatch(
            f"{path}, row {bad['row_number']}: {bad['column_name']} is {_show(bad['given'])}; "
            f"expected {bad['expected']}. Nothing of the file was landed"
        )
    if not replace and (row := _first(connection, f"find_conflicting_{target}")):
        shown = ", ".join(f"{name}={_show(value)}" for name, value in row.items())
        raise CellConflict(
            f"{path}: disagrees with what is landed: {shown}. Nothing of it was landed; "
            "--replace takes the file's values"
        )
    with transaction(connection, f"land {path}"):
        _run(connection, f"change_{target}")
        _run(connection, f"delete_{target}")
        [(num_changed,)] = _run(connection, f"insert_{target}")
        if target == "published_rates":
            for dimension in ("models", "sources", "protocols"):
                _run(connection, f"name_published_{dimension}")
    return int(num_changed)


def _show(value: object) -> str:
    return "missing" if value is None else repr(value) if isinstance(value, str) else str(value)


def _summary(table: TextTable, num_changed: int) -> LandedRows:
    def names(column: str) -> tuple[str, ...]:
        if column not in table.rows.column_names:
            return ()
        return tuple(
            sorted({str(value).strip() for value in table.rows[column].unique().to_pylist()})
        )

    return LandedRows(
        table.rows.num_rows, num_changed, names("model"), names("source"), table.ignored
    )


def _run(
    connection: duckdb.DuckDBPyConnection,
    statement: str,
    parameters: Mapping[str, object] | None = None,
) -> list[tuple[Any, ...]]:
    with explain_database_errors(f"run {statement}"):
        text = read_sql("landing", statement)
        return connection.execute(text, parameters or None).fetchall()


def _first(connection: duckdb.DuckDBPyConnection, statement: str) -> dict[str, Any] | None:
    rows = _run(connection, statement)
    names = [column[0] for column in connection.description or []]
    return dict(zip(names, rows[0], strict=True)) if rows else None
