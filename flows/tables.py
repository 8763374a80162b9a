"""Write a query's result as a table for people, CSV, a JSON list of objects, or Parquet."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import UsageError
from core.storage import explain_disk_errors
from flows.console import out, print_table

MAX_SHOWN_ROWS = 200
_BATCH_ROWS = 4096


def write_table(table: pa.Table, format: str, output: Path | None) -> None:
    """Print a table, or write it to a file.

    Of columns with the same name, the later ones are numbered (``a``, ``a_1``). JSON has numbers
    as exact as its readers take them, and null for NaN and infinities; bytes are written as hex.

    Args:
        table: a query's result.
        format: table (``output`` is then written as CSV), csv, json or parquet.
        output: file to write; None prints.

    Raises:
        UsageError: Parquet, which is binary, to a terminal; a column that the format cannot hold.
        StorageError: the file cannot be written.
    """
    if format == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("parquet is binary: add --output FILE, or pipe it into one")
    table = table.rename_columns(_unique(table.column_names))
    try:
        if format == "table" and output is None:
            _show(table)
            return
        data = _FORMATS[format](table)
    except (pa.ArrowException, pl.exceptions.PolarsError, ValueError, OverflowError) as error:
        types = ", ".join(f"{field.name} {field.type}" for field in table.schema)
        raise UsageError(
            f"this result cannot be written as {format} ({error}); its columns are: {types}. "
            "Cast what is unusual in the query, such as column::varchar"
        ) from error
    if output is None:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    with explain_disk_errors(str(output)):
        output.write_bytes(data)


def _unique(names: list[str]) -> list[str]:
    """Number names that come again, as DuckDB does in subqueries; it does not tell case apart."""
    unique: list[str] = []
    taken = {name.lower() for name in names}
    for name in names:
        number = 0
        chosen = name
        while chosen.lower() in {earlier.lower() for earlier in unique}:
            number += 1
            if (numbered := f"{name}_{number}").lower() not in taken:
                chosen = numbered
        unique.append(chosen)
    return unique


def _show(table: pa.Table) -> None:
    rows = table.slice(0, MAX_SHOWN_ROWS).to_pylist()
    print_table("", table.column_names, ([_cell(cell) for cell in row.values()] for row in rows))
    if table.num_rows > MAX_SHOWN_ROWS:
        out.print(f"… {table.num_rows - MAX_SHOWN_ROWS} more rows; --format csv shows all")


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def _parquet(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(_with_whole_numbers(table), sink, compression="zstd")
    return sink.getvalue()


def _with_whole_numbers(table: pa.Table) -> pa.Table:
    """DuckDB sums integers to 128 bits; where they fit into 64, readers are better off."""
    for index, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type) and field.type.scale == 0:
            try:
                column = table[index].cast(pa.int64())
            except pa.ArrowInvalid:  # too large
                continue
            table = table.set_column(index, field.name, column)
    return table


def _json(table: pa.Table) -> bytes:
    rows = (f"\n{json.dumps(_plain(row), ensure_ascii=False)}" for row in _rows(table))
    return f"[{','.join(rows)}\n]\n".encode()


def _csv(table: pa.Table) -> bytes:
    for index, field in enumerate(table.schema):
        if not any(is_one(field.type) for is_one in _PLAIN_TYPES):
            table = table.set_column(index, field.name, _texts(table[index]))
    return pl.DataFrame(pl.from_arrow(table)).write_csv().encode()


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """What CSV has no form for, as text: times as SQL writes them, the others as JSON."""
    if pa.types.is_temporal(column.type) and not pa.types.is_interval(column.type):
        return column.cast(pa.string())
    return pa.array([_text(value) for value in column.to_pylist()], pa.large_string())


def _rows(table: pa.Table) -> Iterator[dict[str, object]]:
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        yield from batch.to_pylist()


def _text(value: object) -> str | None:
    plain = _plain(value)
    return plain if plain is None or isinstance(plain, str) else json.dumps(plain)


def _plain(value: object) -> object:
    """What JSON has for a value."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if isinstance(value, dt.date | dt.time) else str(value)


_PLAIN_TYPES = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_null,
)
_FORMATS = {"table": _csv, "csv": _csv, "json": _json, "parquet": _parquet}
