"""Landing of small CSV and Parquet files whose rows have keys: figures and answers.

A file is read as text, and SQL statements check the values. All rows of a file land, or none. A row
that equals the landed row with the same key is skipped. A row that differs from it is refused,
unless the caller asks for replacement. The statements of a target table are
``land/sql/{stage,judge,find_conflicting,change,delete,insert}_<target>.sql``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from core.errors import CellConflict, MalformedInput, SchemaMismatch
from core.settings import Settings
from warehouse.database.statements import Statements
from warehouse.database.writer import connected, locked

MAX_BYTES = 256 * 2**20
MAX_ROWS = 5_000_000
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
    is_parquet = raw[:4] == _PARQUET
    table = _read_parquet(raw, path, lists) if is_parquet else _read_csv(raw, path)
    table = table.rename_columns([name.strip() for name in table.column_names])
    _check_columns(table, path, required, optional)
    columns = {"row_number": pa.array(range(1, table.num_rows + 1), pa.int64())}
    for name in (*required, *optional):
        columns[name] = pa.nulls(table.num_rows, pa.string())
        if name in table.column_names:  # an empty text becomes NULL
            columns[name] = pc.if_else(pc.equal(table[name], ""), columns[name], table[name])
    ignored = [name for name in table.column_names if name not in columns]
    return TextTable(path, pa.table(columns), tuple(ignored))


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
        for name, column in zip(table.column_names, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.column_names)


def _as_text(column: pa.ChunkedArray, name: str, path: Path) -> pa.ChunkedArray:
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


@dataclass(frozen=True)
class LandedRows:
    """The numbers of rows of a landed file, and the names in the file."""

    num_rows: int
    num_changed: int  # number of new and replaced rows
    models: tuple[str, ...]  # names of models in the file
    sources: tuple[str, ...]  # names of sources in the file, if any
    ignored: tuple[str, ...]  # names of the file's unknown columns


class StagedRows:
    """The rows of a file, staged in the writer's database; create it with ``staged``."""

    def __init__(self, statements: Statements, path: Path) -> None:
        self.statements = statements
        self._path = path

    def refuse_first(self, statement: str) -> None:
        """Refuse the file if a statement of ``land/sql/`` returns a faulty row.

        Raises:
            SchemaMismatch: states row, column, content, and expected content.
        """
        if bad := self.statements.first(statement):
            raise SchemaMismatch(
                f"{self._path}, row {bad['row_number']}: {bad['column_name']} is "
                f"{_show(bad['given'])}; expected {bad['expected']}. Nothing of the file was landed"
            )

    def require_sound(self, target: str) -> None:
        """Refuse the file (see ``refuse_first``) if statement ``judge_<target>`` returns a row."""
        self.statements.run(f"judge_{target}")
        self.refuse_first("find_problem")

    def require_agreement(
        self, statement: str, remedy: str = "--replace takes the file's values"
    ) -> None:
        """Refuse the file if a statement returns a row, which contradicts a landed row.

        The message shows pairs of columns ``<name>`` and ``landed_<name>`` (or ``loaded_<name>``)
        whose values differ, and all columns that are not paired.

        Raises:
            CellConflict: names the row, the landed values, and the remedy.
        """
        if row := self.statements.first(statement):
            shown = ", ".join(f"{name}={_show(value)}" for name, value in _telling(row).items())
            raise CellConflict(
                f"{self._path}: disagrees with what is landed: {shown}. Nothing of it was landed; "
                f"{remedy}"
            )

    def put(self, target: str) -> int:
        """Write the staged rows to table ``target``; return the number of new and changed rows."""
        self.statements.run(f"change_{target}")
        self.statements.run(f"delete_{target}")
        [(num_changed,)] = self.statements.run(f"insert_{target}")
        return int(num_changed)


@contextmanager
def staged(
    settings: Settings, table: TextTable, target: str, given: Mapping[str, object]
) -> Iterator[StagedRows]:
    """Stage a file's rows in the writer's database, check them, and yield them.

    Raises:
        SchemaMismatch: a row is invalid; the message states its content and what is expected.
    """
    with locked(settings), connected(settings) as connection:
        rows = StagedRows(Statements(connection), table.path)
        with rows.statements.given(rows_to_land=table.rows):
            rows.statements.run(f"stage_{target}", given)
            rows.require_sound(target)
            yield rows


def summarise(table: TextTable, num_changed: int) -> LandedRows:
    """Return the numbers of rows of a landed file, and the names in the file, for messages."""

    def names(column: str) -> tuple[str, ...]:
        if column not in table.rows.column_names:
            return ()
        values = table.rows[column].unique().to_pylist()
        return tuple(sorted({str(value).strip() for value in values if value is not None}))

    return LandedRows(
        table.rows.num_rows, num_changed, names("model"), names("source"), table.ignored
    )


def _telling(row: dict[str, Any]) -> dict[str, Any]:
    """Remove pairs of columns (file's value, landed value) that are equal or contain NULL."""
    silent: set[str] = set()
    for name in row:
        for twin in (f"landed_{name}", f"loaded_{name}"):
            if twin in row and (None in (row[name], row[twin]) or row[name] == row[twin]):
                silent |= {name, twin}
    return {name: value for name, value in row.items() if name not in silent}


def _show(value: object) -> str:
    return "missing" if value is None else repr(value) if isinstance(value, str) else str(value)
