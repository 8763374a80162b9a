"""CSV and Parquet of a query's result, a batch at a time, and what JSON has for a value."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

_GROUP_ROWS = 122_880  # as DuckDB's own


def csv_parts(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Yield CSV: a line of names, then the rows; NULL is an empty field, an empty text is ``""``.

    Raises:
        pa.ArrowException: CSV has no form for a value.
    """
    yield pl.DataFrame(schema=schema.names).write_csv()
    for batch in batches:
        columns = [
            column if any(is_one(column.type) for is_one in _PLAIN_TYPES) else _texts(column)
            for column in batch.columns
        ]
        table = pa.table(columns, names=schema.names)
        yield pl.DataFrame(pl.from_arrow(table)).write_csv(include_header=False)


def _texts(column: pa.Array) -> pa.Array:
    """What CSV has no form for, as text: times as SQL writes them, the others as JSON."""
    if pa.types.is_temporal(column.type) and not pa.types.is_interval(column.type):
        return column.cast(pa.string())
    return pa.array([_text(value) for value in column.to_pylist()], pa.large_string())


def _text(value: object) -> str | None:
    simple = plain(value)
    return simple if simple is None or isinstance(simple, str) else json.dumps(simple)


def plain(value: object) -> object:
    """Return what JSON has for a value: null for NaN and infinities, hex for bytes."""
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
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


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """Write batches; whole numbers of 128 bits become 64 where all of a column fit.

    DuckDB sums integers to 128 bits, which Arrow has as decimals: readers are better off without.

    Raises:
        pa.ArrowException: Parquet has no form for a column's type.
    """
    wide = {f.name for f in schema if pa.types.is_decimal(f.type) and f.type.scale == 0}
    if not wide:
        _write(schema, batches, path)
        return
    draft = path.with_name(f"{path.name}.draft")
    try:
        _write(schema, _noting_large(batches, wide), draft)
        if not wide:  # by now: those of which every value fits
            draft.replace(path)
            return
        narrow = pa.schema(
            [f.with_type(pa.int64()) if f.name in wide else f for f in schema], schema.metadata
        )
        read = pq.ParquetFile(draft).iter_batches(batch_size=_GROUP_ROWS)
        _write(narrow, (batch.cast(narrow) for batch in read), path)
    finally:
        draft.unlink(missing_ok=True)


def _noting_large(batches: Iterable[pa.RecordBatch], wide: set[str]) -> Iterator[pa.RecordBatch]:
    """Pass batches on; take the columns that have a value beyond 64 bits out of ``wide``."""
    for batch in batches:
        for name in sorted(wide):
            try:
                batch[name].cast(pa.int64())
            except pa.ArrowInvalid:
                wide.discard(name)
        yield batch


def _write(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path) -> None:
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=_GROUP_ROWS)
