"""Write a query's result as a table for people, CSV, a JSON list of objects, or Parquet."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import UsageError
from core.storage import explain_disk_errors
from flows.console import out, print_table

MAX_SHOWN_ROWS = 200


def write_table(table: pa.Table, format: str, output: Path | None) -> None:
    """Print a table, or write it to a file.

    Args:
        table: a query's result.
        format: table (``output`` is then written as CSV), csv, json or parquet.
        output: file to write; None prints.

    Raises:
        UsageError: Parquet, which is binary, to a terminal.
    """
    if format == "table" and output is None:
        _show(table)
        return
    if format == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("parquet is binary: add --output FILE, or pipe it into one")
    if output is None:
        _write(table, format, sys.stdout.buffer)
        sys.stdout.buffer.flush()
        return
    with explain_disk_errors(str(output)), output.open("wb") as file:
        _write(table, format, file)


def _show(table: pa.Table) -> None:
    shown = table.slice(0, MAX_SHOWN_ROWS).to_pylist()
    rows = ([_cell(value) for value in row.values()] for row in shown)
    print_table("", table.column_names, rows)
    if table.num_rows > MAX_SHOWN_ROWS:
        out.print(f"… {table.num_rows - MAX_SHOWN_ROWS} more rows; --format csv shows all")


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def _write(table: pa.Table, format: str, file: IO[bytes]) -> None:
    if format == "parquet":
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd")
        file.write(sink.getvalue())
        return
    frame = pl.DataFrame(pl.from_arrow(table))
    # DuckDB sums integers to 128 bits, which polars would write as text.
    frame = frame.with_columns(
        pl.col(name).cast(pl.Float64 if type_.scale else pl.Int64)
        for name, type_ in frame.schema.items()
        if isinstance(type_, pl.Decimal)
    )
    if format == "json":
        file.write(frame.write_json().encode())
    else:
        _flat(frame).write_csv(file)


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Lists and structs as JSON text: CSV has no nesting."""
    return frame.with_columns(
        pl.Series(name, [json.dumps(value, default=str) for value in frame[name].to_list()])
        for name, type_ in frame.schema.items()
        if type_.is_nested()
    )
