"""Rows of data files: what a row is, and the readers of Parquet, CSV and TSV.

A row that cannot be read is a drop that names its place, and reading goes on with the next row.
Rows are read one by one, so the use of memory does not depend on a file's size.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from crawlers.contract import Drop
from crawlers.imports.streams import FREE_BYTES, MOST_TIMES, open_stream
from crawlers.text.cleaning import too_long
from crawlers.text.pages import ARTICLE

_PARQUET_ROWS = 32  # rows read at a time; few, since a row may be large
CHUNK = 2**20
_MAX_CSV_LINES = 1_000_000  # of a row


class Row(NamedTuple):
    """A row of a file: its values by column."""

    place: str  # ``<file>:<number>``, unique in an import
    values: Mapping[str, Any]
    # Values of tables are by column, others by field. Pages of the web are for local use.
    origin: Literal["table", "web", "book"] = "table"


@dataclass(frozen=True)
class DataFile:
    """A file to read."""

    path: Path
    name: str  # the path below the folder that was named, for ids and messages
    max_bytes: int  # longer texts are dropped, unread if possible
    denied_hosts: Collection[str] = ()  # left out of web archives, with their subdomains
    elements: str = ARTICLE  # XPath of the elements of a page that have its text
    is_strict: bool = False  # the values NaN and Infinity, which JSON does not have, are damage

    @cached_property
    def most_bytes(self) -> int:
        """The most bytes that the rows of the file may have, since its size may be far less."""
        return FREE_BYTES + MOST_TIMES * self.path.stat().st_size

    def damaged(self, number: object, why: str) -> Drop:
        """Return the drop of a row that cannot be read."""
        return Drop(f"{self.name}:{number}", "damaged", f"{self.name}: {why}")


Rows = Iterator[Row | Drop]


def kind_of(value: object) -> str:
    """Return the kind of a JSON value in words."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


def not_utf8(error: UnicodeDecodeError, offset: int = 0) -> str:
    """Say which byte is not UTF-8; ``offset`` is the place of what was decoded."""
    found = error.object[error.start]
    return f"byte {offset + error.start} (0x{found:02x}) is not UTF-8; convert it, as by iconv"


@contextmanager
def opened(file: DataFile) -> Iterator[tuple[io.BufferedReader, list[str]]]:
    """Open a file for reading; the list has the damage that is met."""
    faults: list[str] = []
    with open_stream(file.path, faults) as stream:
        yield stream, faults


def damage_of(file: DataFile, faults: list[str]) -> Rows:
    """Yield the damage of a file as drops."""
    for why in faults:
        yield file.damaged("file", why)


def longest(file: DataFile) -> int:
    """Return the most bytes of a row."""
    # JSON escapes make a text at most six times longer; the rest is for other fields.
    return 6 * file.max_bytes + 16 * CHUNK


def read_parquet(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the rows with the given columns; a damaged row group loses its unread rows only.

    The first column is that of the text. A file without it, or with one of no strings, is a drop.
    """
    try:
        # In nanoseconds, the default of old timestamps, the year 9999 would be 1816.
        with pq.ParquetFile(
            file.path, buffer_size=CHUNK, pre_buffer=False, coerce_int96_timestamp_unit="us"
        ) as table:
            fault = _fault_of(table.schema_arrow, *columns)
            if fault:
                yield Drop(f"{file.name}:file", "parse_error", f"{file.name}: {fault}")
                return
            known = [name for name in columns if name in table.schema_arrow.names]
            first = 0
            for group in range(table.num_row_groups):
                size = table.metadata.row_group(group).num_rows
                if _num_bytes(table, group, known) > file.most_bytes:
                    yield file.damaged(first, f"row group {group} is far larger than the file")
                    return
                yield from _read_group(file, table, group, range(first, first + size), known)
                first += size
    except (pa.ArrowException, OSError, ValueError) as error:  # a name may be no UTF-8
        why = f"not Parquet, or cut, since its index is at its end: {error}"
        yield file.damaged("file", why)


def _num_bytes(table: pq.ParquetFile, group: int, names: list[str]) -> int:
    """Return the unpacked size of some columns of a row group, in bytes."""
    part = table.metadata.row_group(group)
    chunks = map(part.column, range(part.num_columns))
    return sum(each.total_uncompressed_size for each in chunks if each.path_in_schema in names)


def _fault_of(schema: pa.Schema, text: str, *others: str) -> str | None:
    """Return why a Parquet file cannot be read: its text column is missing, doubled or no text."""
    if text not in schema.names:
        return no_text_column(text, schema.names)
    doubled = [name for name in (text, *others) if schema.names.count(name) > 1]
    if doubled:
        return f"two columns are called `{doubled[0]}`"
    kind = schema.field(text).type
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    strings = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    is_text = any(is_string(kind) for is_string in (*strings, pa.types.is_null))
    return None if is_text else f"column `{text}` is {kind}; expected strings"


def no_text_column(text: str, names: Iterable[object]) -> str:
    """Say that there is no column of texts, and which columns there are."""
    known = ", ".join(map(str, names)) or "none"
    return f"no column `{text}` (say --column text=…); its columns are: {known}"[:500]


def _read_group(
    file: DataFile, table: pq.ParquetFile, group: int, numbers: range, columns: list[str]
) -> Rows:
    """Yield the rows of a row group; ``numbers`` are their numbers in the file."""
    number = numbers.start
    try:
        for batch in table.iter_batches(_PARQUET_ROWS, [group], columns):
            for values in _values(_with_plain_times(batch)):
                if isinstance(values, UnicodeDecodeError):
                    yield file.damaged(number, f"row {number}: {not_utf8(values)}")
                elif isinstance(values, Exception):
                    yield file.damaged(number, f"row {number}: {values}")
                else:
                    yield Row(f"{file.name}:{number}", values)
                number += 1
    except (pa.ArrowException, OSError) as error:
        for lost in range(number, numbers.stop):
            yield file.damaged(lost, f"row {lost} of row group {group}: {error}")


def _with_plain_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cast times to microseconds in UTC: Python may know neither nanoseconds nor the time zone."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and (field.type.unit == "ns" or field.type.tz):
            unit = "us" if field.type.unit == "ns" else field.type.unit
            plain = pa.timestamp(unit, field.type.tz and "UTC")
            batch = batch.set_column(index, field.name, batch.column(index).cast(plain, safe=False))
    return batch


def _values(batch: pa.RecordBatch) -> Iterator[Mapping[str, Any] | ValueError]:
    """Yield the rows, or an error for a text that is not UTF-8."""
    try:
        yield from batch.to_pylist()
    except (ValueError, OverflowError):
        for index in range(batch.num_rows):
            try:
                yield {name: _value(batch[name][index]) for name in batch.schema.names}
            except ValueError as error:
                yield error


def _value(scalar: pa.Scalar) -> Any:
    """Return a value; a time that Python cannot hold is a text, which is no date."""
    try:
        return scalar.as_py()
    except (ValueError, OverflowError):
        if pa.types.is_temporal(scalar.type):
            return "a time out of range"
        raise


class _TooLongError(csv.Error):
    """A row has too many lines or characters."""


class _Lines:
    """Lines of a stream that a CSV reader takes; lines of a bad row can be given back.

    ``taken`` are the lines of the present row.
    """

    def __init__(self, stream: io.BufferedReader, file: DataFile) -> None:
        self._stream = stream
        self._limit = longest(file)
        self._max_chars = file.max_bytes
        self._waiting: deque[str] = deque()
        self.taken: list[str] = []
        self.size = 0  # characters of ``taken``
        self.number = 0  # of the last line that was read to its end

    def give_back(self, lines: list[str]) -> None:
        self._waiting.extendleft(reversed(lines))
        self.number -= sum(line.endswith("\n") for line in lines)

    def skip_row(self) -> None:
        """Skip the rest of a row that is too long: its line, and lines within quotation marks."""
        # A later line with complete quotations ends the row: an earlier quotation was not closed.
        line = self.taken[-1]
        is_open = sum(each.count('"') for each in self.taken) % 2
        while line and (is_open or not line.endswith("\n")):
            is_begin = line.endswith("\n")
            line = self._read()
            marks = line.replace('""', "").count('"')
            if is_begin and marks and marks % 2 == 0:
                self.give_back([line])
                return
            is_open ^= marks % 2

    def _read(self) -> str:
        line = self._waiting.popleft() if self._waiting else ""
        line = line or self._stream.readline(self._limit).decode("utf-8", "surrogateescape")
        self.number += line.endswith("\n")
        return line

    def begin_row(self) -> None:
        self.taken = []
        self.size = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if self.size > self._max_chars or len(self.taken) == _MAX_CSV_LINES:
            raise _TooLongError
        line = self._read()
        if not line:
            raise StopIteration
        self.taken.append(line)
        self.size += len(line)
        if not line.endswith("\n") and self._stream.peek(1):
            raise _TooLongError
        return line


def read_csv(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the rows of a CSV or TSV file with a header; after a bad line, the next one is read."""
    csv.field_size_limit(max(csv.field_size_limit(), longest(file)))
    delimiter = "\t" if ".tsv" in file.path.suffixes else ","
    header: list[str] | None = None
    with opened(file) as (stream, faults):
        lines = _Lines(stream, file)
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        for number in itertools.count():
            first = lines.number + 1
            lines.begin_row()
            try:
                values = next(reader, None)
            except _TooLongError:
                reader = csv.reader(lines, delimiter=delimiter, strict=True)
                lines.skip_row()
                where = f"{file.name}: lines {first} to {lines.number}"
                why = f"{too_long(lines.size, file.max_bytes)}; or a quotation mark is not closed"
                yield Drop(f"{file.name}:{number}", "too_long", f"{where}: {why}")
                continue
            except csv.Error as error:
                reader = csv.reader(lines, delimiter=delimiter, strict=True)
                lines.give_back(lines.taken[1:])
                yield file.damaged(number, f"line {first}: {error}")
                continue
            if values is None:
                break
            if header is None:
                header = [values[0].removeprefix("\ufeff"), *values[1:]] if values else None
            elif len(values) == len(header):
                yield Row(f"{file.name}:{number}", dict(zip(header, values, strict=True)))
            elif values:
                lines.give_back(lines.taken[1:])
                why = f"line {first}: {len(values)} fields, the header has {len(header)}"
                if len(header) == 1 and ";" in header[0]:
                    why += "; its columns are parted by semicolons: write them with commas"
                yield file.damaged(number, why)
        yield from damage_of(file, faults)
