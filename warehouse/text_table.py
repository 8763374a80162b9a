"""Small tables that users bring as CSV or Parquet, read as text; SQL checks what it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from core.errors import MalformedInput, SchemaMismatch

MAX_BYTES = 256 * 2**20
MAX_ROWS = 5_000_000
_PARQUET = b"PAR1"


@dataclass(frozen=True)
class TextTable:
    """A file's rows.

    Attributes:
        rows: the wanted columns as text (NULL where a cell is empty or the column is not there)
            after ``row_number``, which counts from 1, without the header and empty lines.
        ignored: other columns that the file has.
    """

    rows: pa.Table
    ignored: tuple[str, ...]


def read_text_table(
    path: Path, required: Sequence[str], optional: Sequence[str], lists: Sequence[str] = ()
) -> TextTable:
    """Read a CSV file with a header, or a Parquet file.

    Args:
        path: at most 256 MiB and five million rows, held in memory.
        required: columns that the file must have, in any order.
        optional: columns that it may have.
        lists: columns that may hold lists, which come as texts with | between the values.

    Raises:
        MalformedInput: not UTF-8, not CSV, a damaged Parquet file, too large, or unreadable.
        SchemaMismatch: no rows, or a column is missing or comes twice.
    """
    raw = _read(path)
    is_parquet = raw[:4] == _PARQUET
    table = _read_parquet(raw, path, lists) if is_parquet else _read_csv(raw, path)
    table = table.rename_columns([name.strip() for name in table.column_names])
    _check_columns(table, path, required, optional)
    columns = {"row_number": pa.array(range(1, table.num_rows + 1), pa.int64())}
    for name in (*required, *optional):
        has_it = name in table.column_names
        columns[name] = _filled(table[name]) if has_it else pa.nulls(table.num_rows, pa.string())
    ignored = [name for name in table.column_names if name not in columns]
    return TextTable(pa.table(columns), tuple(ignored))


def _filled(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """An empty text is nothing, in Parquet as in CSV."""
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)


def _read(path: Path) -> bytes:
    try:
        if (size := path.stat().st_size) > MAX_BYTES:
            raise MalformedInput(
                f"{path} has {size / 2**20:,.0f} MiB; expected at most {MAX_BYTES // 2**20}: one "
                "row a figure. Split it into several files"
            )
        return path.read_bytes()
    except OSError as error:
        raise MalformedInput(f"{path} cannot be read: {error.strerror}") from error


def _read_csv(raw: bytes, path: Path) -> pa.Table:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise MalformedInput(
            f"{path} is not UTF-8 (byte {error.start} is 0x{raw[error.start]:02x}); save it as "
            "CSV in UTF-8, or give Parquet"
        ) from error
    if not text.strip():
        raise SchemaMismatch(f"{path} is empty; expected a header line and rows")
    try:
        raw += b"" if raw.endswith(b"\n") else b"\n"  # a header alone would not be a line
        names = pa_csv.open_csv(pa.BufferReader(raw), *_csv_options([])[:2]).schema.names
        read, parse, convert = _csv_options(names)
        return pa_csv.read_csv(pa.BufferReader(raw), read, parse, convert)
    except pa.ArrowInvalid as error:
        raise MalformedInput(f"{path} cannot be read as CSV: {error}") from error


def _csv_options(
    names: Sequence[str],
) -> tuple[pa_csv.ReadOptions, pa_csv.ParseOptions, pa_csv.ConvertOptions]:
    return (
        # A row has to lie within a block.
        pa_csv.ReadOptions(block_size=16 * 2**20),
        pa_csv.ParseOptions(newlines_in_values=True),
        # Only an empty cell is missing: "NA" may be a model's name, and "nan" is refused by rule.
        pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            null_values=[""],
        ),
    )


def _read_parquet(raw: bytes, path: Path, lists: Sequence[str]) -> pa.Table:
    try:
        file = pq.ParquetFile(pa.BufferReader(raw))
        if file.metadata.num_rows > MAX_ROWS:
            raise MalformedInput(
                f"{path} has {file.metadata.num_rows:,} rows; expected at most {MAX_ROWS:,}: one a "
                "figure. Split it into several files"
            )
        table = file.read()
    except (pa.ArrowInvalid, OSError) as error:
        raise MalformedInput(f"{path} cannot be read as Parquet: {error}") from error
    columns = [
        _joined(column, name, path) if name in lists else _as_text(column, name, path)
        for name, column in _named_columns(table)
    ]
    return pa.table(columns, names=table.column_names)


def _named_columns(table: pa.Table) -> list[tuple[str, pa.ChunkedArray]]:
    return list(zip(table.column_names, table.columns, strict=True))


def _as_text(column: pa.ChunkedArray, name: str, path: Path) -> pa.ChunkedArray:
    try:
        if pa.types.is_timestamp(column.type):
            if column.type.tz is not None:  # months are in UTC
                column = column.cast(pa.timestamp(column.type.unit, "UTC"))
            column = column.cast(pa.date32(), safe=False)
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(
            f"{path}: column {name} is {column.type}; expected text, numbers or dates"
        ) from error


def _joined(column: pa.ChunkedArray, name: str, path: Path) -> pa.ChunkedArray:
    """Lists as a CSV file has them; what is no list, as any column."""
    if not pa.types.is_nested(column.type) or pa.types.is_struct(column.type):
        return _as_text(column, name, path)
    texts = [
        None
        if values is None
        else "|".join("null" if each is None else str(each) for each in values)
        for values in column.to_pylist()
    ]
    return pa.chunked_array([pa.array(texts, pa.string())])


def _check_columns(
    table: pa.Table, path: Path, required: Sequence[str], optional: Sequence[str]
) -> None:
    names = table.column_names
    if missing := [name for name in required if name not in names]:
        raise SchemaMismatch(
            f"{path} lacks {', '.join(missing)}; expected the columns {', '.join(required)} and "
            f"optionally {', '.join(optional)}, separated by commas; found {', '.join(names)}"
        )
    if twice := [name for name in (*required, *optional) if names.count(name) > 1]:
        raise SchemaMismatch(f"{path} has column {twice[0]} more than once; leave one of them")
    if not table.num_rows:
        raise SchemaMismatch(f"{path} has no rows under its header, so there is nothing to land")
