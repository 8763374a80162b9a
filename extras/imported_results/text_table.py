"""Reading of small CSV and Parquet files as tables of text, within limits of size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from core.errors import MalformedInput, SchemaMismatch
from core.settings import MAX_NAME_BYTES
from core.storage.regular import require_regular

MAX_BYTES = 256 * 2**20
MAX_ROWS = 5_000_000
# A Parquet file of 1 KB may stand for gigabytes: it stores equal values once.
MAX_DECODED_BYTES = 2**30
# no file of figures packs as well
_FREE_BYTES = 2**25
_MOST_TIMES = 1000
_MAX_VALUES = 4 * MAX_ROWS  # per column; a list has several values
_PARQUET = b"PAR1"
# A row must fit into one block of the CSV reader.
_CSV = (
    pa_csv.ReadOptions(block_size=16 * 2**20),
    pa_csv.ParseOptions(newlines_in_values=True),
)


@dataclass(frozen=True)
class TextTable:
    """The rows of a file: column ``row_number``, and the requested columns as text.

    NULL stands for an empty cell and for a missing column. ``row_number`` starts at 1 and skips the
    header and empty lines.
    """

    path: Path
    rows: pa.Table
    ignored: tuple[str, ...]  # names of columns that were not requested


def read_text_table(
    path: Path, required: Sequence[str], optional: Sequence[str], lists: Sequence[str] = ()
) -> TextTable:
    """Read a CSV file with a header, or a Parquet file.

    Args:
        path: file of at most 256 MiB and five million rows, which is read into memory.
        required: names of columns that must exist, in any order.
        optional: names of columns that may exist.
        lists: names of columns that may hold lists, returned as texts joined with |.

    Raises:
        MalformedInput: the file is not UTF-8, not CSV, damaged, too large, or unreadable.
        SchemaMismatch: the file has no rows, or a column is missing or duplicate.
    """
    raw = _read(path)
    wanted = (*required, *optional)
    is_parquet = raw[:4] == _PARQUET
    table = _read_parquet(raw, path, wanted, lists) if is_parquet else _read_csv(raw, path)
    table = table.rename_columns([name.strip() for name in table.column_names])
    _check_columns(table, path, required, optional)
    columns = {"row_number": pa.array(range(1, table.num_rows + 1), pa.int64())}
    for name in wanted:
        columns[name] = pa.nulls(table.num_rows, pa.string())
        if name in table.column_names:  # an empty text becomes NULL
            columns[name] = pc.if_else(pc.equal(table[name], ""), columns[name], table[name])
            if name not in lists:
                _require_short(columns[name], name, path)
    ignored = [name for name in table.column_names if name not in columns]
    return TextTable(path, pa.table(columns), tuple(ignored))


def _read(path: Path) -> bytes:
    """Return a file's bytes; raise an error if it is larger than ``MAX_BYTES``."""
    require_regular(path)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)  # a device may have no size and no end
        size = max(len(raw), path.stat().st_size)
        if size > MAX_BYTES:
            raise MalformedInput(
                f"{path} has {size / 2**20:,.0f} MiB; expected at most {MAX_BYTES // 2**20}: one "
                "row a figure. Split it into several files"
            )
        return raw
    except OSError as error:
        raise MalformedInput(f"{path} cannot be read: {error.strerror}") from error


def _read_csv(raw: bytes, path: Path) -> pa.Table:
    """Parse CSV in UTF-8 into columns of text; only an empty cell is NULL."""
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
        raw += b"" if raw.endswith(b"\n") else b"\n"  # the reader requires a line end
        names = pa_csv.open_csv(pa.BufferReader(raw), *_CSV).schema.names
        # Only an empty cell is NULL: "NA" may be a model's name; the SQL checks refuse "nan".
        convert = pa_csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            strings_can_be_null=True,
            null_values=[""],
        )
        return pa_csv.read_csv(pa.BufferReader(raw), *_CSV, convert)
    except pa.ArrowInvalid as error:
        raise MalformedInput(f"{path} cannot be read as CSV: {error}") from error


def _read_parquet(raw: bytes, path: Path, wanted: Sequence[str], lists: Sequence[str]) -> pa.Table:
    """Return the columns of a Parquet file as text; columns that are not wanted are empty."""
    try:
        # In nanoseconds, the default of old timestamps, the year 9999 would be 1816.
        file = pq.ParquetFile(pa.BufferReader(raw), coerce_int96_timestamp_unit="us")
        read = [name for name in file.schema_arrow.names if name.strip() in wanted]
        most = min(MAX_DECODED_BYTES, _FREE_BYTES + _MOST_TIMES * len(raw))
        texts = _require_small(file, read, path, most)
        _require_bytes(_num_text_bytes(raw, texts, file.num_row_groups), path, most)
        table = file.read(read)
        table.validate(full=True)  # texts may be no UTF-8
    except (pa.ArrowException, OSError, ValueError) as error:  # a name may be no UTF-8
        raise MalformedInput(f"{path} cannot be read as Parquet: {error}") from error
    columns = [
        _joined(column, name, path) if name.strip() in lists else _as_text(column, name, path)
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    others = [name for name in file.schema_arrow.names if name not in read]
    empty = [pa.nulls(table.num_rows, pa.string())] * len(others)
    return pa.table([*columns, *empty], names=[*table.column_names, *others])


def _require_small(file: pq.ParquetFile, names: Sequence[str], path: Path, most: int) -> list[str]:
    """Raise MalformedInput if columns are too large by metadata; return the paths of texts."""
    meta = file.metadata
    texts = []
    num_bytes = 0
    leaves = [file.schema.column(place) for place in range(meta.num_columns)]
    for place, leaf in enumerate(leaves):
        if not any(f"{leaf.path}.".startswith(f"{name}.") for name in names):
            continue
        chunks = [meta.row_group(group).column(place) for group in range(meta.num_row_groups)]
        num_values = max(meta.num_rows, sum(chunk.num_values for chunk in chunks))
        if meta.num_rows > MAX_ROWS or num_values > _MAX_VALUES:
            raise MalformedInput(
                f"{path} has {meta.num_rows:,} rows, and {num_values:,} values in {leaf.path}; "
                f"expected at most {MAX_ROWS:,} rows, one a figure, and {_MAX_VALUES:,} values. "
                "Split it into several files"
            )
        stored = sum(chunk.total_uncompressed_size for chunk in chunks)
        num_bytes += max(stored, num_values * max(8, leaf.length))
        if leaf.physical_type == "BYTE_ARRAY":
            texts.append(leaf.path)
    _require_bytes(num_bytes, path, most)
    return texts


def _require_bytes(num_bytes: int, path: Path, most: int) -> None:
    """Raise an error if decoded texts are longer than ``most`` bytes."""
    if num_bytes > most:
        raise MalformedInput(
            f"{path} has {num_bytes / 2**20:,.0f} MiB when decoded; expected at most "
            f"{most // 2**20} of its size. Shorten its texts, or split it into several files"
        )


def _num_text_bytes(raw: bytes, paths: Sequence[str], num_groups: int) -> int:
    """Return the number of bytes of columns of texts when decoded, without decoding them."""
    file = pq.ParquetFile(pa.BufferReader(raw), read_dictionary=paths)
    num_bytes = 0
    for group in range(num_groups):  # Arrow cannot join dictionaries in lists of two groups
        for batch in file.iter_batches(row_groups=[group], columns=paths):
            for column in batch.columns:
                while pa.types.is_nested(column.type) and not pa.types.is_struct(column.type):
                    column = pc.list_flatten(column)
                if pa.types.is_dictionary(column.type):
                    lengths = pc.binary_length(column.dictionary).cast(pa.int64())
                    num_bytes += pc.sum(pc.take(lengths, column.indices)).as_py() or 0
    return num_bytes


def _as_text(column: pa.ChunkedArray, name: str, path: Path) -> pa.ChunkedArray:
    """Return a column as text; times become days in UTC."""
    try:
        if pa.types.is_timestamp(column.type):
            if column.type.tz is not None:  # convert times to UTC
                column = column.cast(pa.timestamp(column.type.unit, "UTC"))
            column = column.cast(pa.date32(), safe=False)
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise SchemaMismatch(
            f"{path}: column {name} is {column.type}; expected text, numbers or dates"
        ) from error


def _joined(column: pa.ChunkedArray, name: str, path: Path) -> pa.ChunkedArray:
    """Return a column as text; the items of a list are joined with |."""
    if not pa.types.is_nested(column.type) or pa.types.is_struct(column.type):
        return _as_text(column, name, path)
    texts: list[str | None] = []
    for values in column.to_pylist():
        if values is None:
            texts.append(None)
        else:
            texts.append("|".join("null" if each is None else str(each) for each in values))
    return pa.chunked_array([pa.array(texts, pa.string())])


def _require_short(column: pa.ChunkedArray, name: str, path: Path) -> None:
    """Raise an error if a value is longer than a name may be."""
    longest = pc.max(pc.binary_length(column)).as_py() or 0
    if longest > MAX_NAME_BYTES:
        raise MalformedInput(
            f"{path}: {name} has a value of {longest:,} bytes; expected at most "
            f"{MAX_NAME_BYTES:,}. Shorten it"
        )


def _check_columns(
    table: pa.Table, path: Path, required: Sequence[str], optional: Sequence[str]
) -> None:
    """Raise an error if columns are missing or there twice, or if there are no rows."""
    names = table.column_names
    missing = [name for name in required if name not in names]
    if missing:
        raise SchemaMismatch(
            f"{path} lacks {', '.join(missing)}; expected the columns {', '.join(required)} and "
            f"optionally {', '.join(optional)}, separated by commas; found {', '.join(names)}"
        )
    twice = [name for name in (*required, *optional) if names.count(name) > 1]
    if twice:
        raise SchemaMismatch(f"{path} has column {twice[0]} more than once; leave one of them")
    if not table.num_rows:
        raise SchemaMismatch(f"{path} has no rows under its header, so there is nothing to land")
