"""Rows of published data files: Parquet, JSON lines, JSON lists, CSV and TSV, plain or packed.

A row that cannot be read is a drop that names its place, and reading goes on with the next row.
Rows are read one by one, so the use of memory does not depend on a file's size.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from crawlers.contract import Drop
from crawlers.imports.streams import open_stream
from crawlers.text.cleaning import too_long

TEXT = "text"  # column of a list of strings
_PARQUET_ROWS = 32  # rows read at a time; few, since a row may be large
_CHUNK = 2**20
_OPENING, _COMMA = re.compile(r"\s*\[\s*"), re.compile(r"\s*,\s*")
_END, _EMPTY = re.compile(r"\s*\]\s*"), re.compile(r"\s*\[\s*\]\s*")
_MAX_CSV_LINES = 100_000  # of a row; more are an unclosed quotation mark


@dataclass(frozen=True)
class Row:
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

    def damaged(self, number: object, why: str) -> Drop:
        """Return the drop of a row that cannot be read."""
        return Drop(f"{self.name}:{number}", "damaged", f"{self.name}: {why}")


Rows = Iterator[Row | Drop]


def read_parquet(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the rows with the given columns; a damaged row group loses its unread rows only."""
    try:
        with pq.ParquetFile(file.path, buffer_size=_CHUNK, pre_buffer=False) as table:
            known = [name for name in columns if name in table.schema_arrow.names]
            first = 0
            for group in range(table.num_row_groups):
                size = table.metadata.row_group(group).num_rows
                yield from _read_group(file, table, group, range(first, first + size), known)
                first += size
    except (pa.ArrowException, OSError) as error:
        why = f"not Parquet, or cut, since its index is at its end: {error}"
        yield file.damaged("file", why)


def _read_group(
    file: DataFile, table: pq.ParquetFile, group: int, numbers: range, columns: list[str]
) -> Rows:
    number = numbers.start
    try:
        for batch in table.iter_batches(_PARQUET_ROWS, [group], columns):
            for values in _values(_in_microseconds(batch)):
                if isinstance(values, UnicodeDecodeError):
                    yield file.damaged(number, f"row {number}: {values}")
                else:
                    yield Row(f"{file.name}:{number}", values)
                number += 1
    except (pa.ArrowException, OSError) as error:
        for lost in range(number, numbers.stop):
            yield file.damaged(lost, f"row {lost} of row group {group}: {error}")


def _in_microseconds(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Cast times in nanoseconds, which Python has no type for."""
    for index, field in enumerate(batch.schema):
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns":
            unit = pa.timestamp("us", field.type.tz)
            batch = batch.set_column(index, field.name, batch.column(index).cast(unit, safe=False))
    return batch


def _values(batch: pa.RecordBatch) -> Iterator[dict[str, Any] | UnicodeDecodeError]:
    try:
        yield from batch.to_pylist()
    except UnicodeDecodeError:
        for index in range(batch.num_rows):
            try:
                yield batch.slice(index, 1).to_pylist()[0]
            except UnicodeDecodeError as error:
                yield error


def read_json_lines(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the objects (or strings) of the lines; blank lines are ignored."""
    limit, offset = _longest(file), 0
    with _opened(file) as (stream, faults):
        for number in itertools.count(1):
            line = stream.readline(limit)
            if not line:
                break
            start, offset = offset, offset + len(line)
            if len(line) == limit and not line.endswith(b"\n"):
                offset += _skip_line(stream)
                detail = f"line {number}: {too_long(offset - start, file.max_bytes)}"
                yield Drop(f"{file.name}:{number}", "too_long", detail)
                continue
            if number == 1:
                line = line.removeprefix(codecs.BOM_UTF8)
            if line.strip():
                yield _json_row(file, line, number, start)
        yield from _of_file(file, faults)


def _skip_line(stream: IO[bytes]) -> int:
    size = 0
    while block := stream.readline(_CHUNK):
        size += len(block)
        if block.endswith(b"\n"):
            break
    return size


def _json_row(file: DataFile, line: bytes, number: int, start: int) -> Row | Drop:
    where = f"line {number} (byte {start})"
    try:
        return _row(file, json.loads(line.decode()), number, where)
    except UnicodeDecodeError as error:
        why = f"{where}: byte {start + error.start} is not UTF-8"
        return file.damaged(number, why)
    except (ValueError, RecursionError) as error:
        return file.damaged(number, f"{where} is not JSON: {error}")


def _row(file: DataFile, value: object, number: int, where: str) -> Row | Drop:
    if isinstance(value, str):
        value = {TEXT: value}
    if not isinstance(value, dict):
        return file.damaged(number, f"{where} is neither an object nor a string")
    return Row(f"{file.name}:{number}", value)


def read_json_list(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the strings or objects of a JSON list; nothing can be read after a damaged entry."""
    decode, limit = json.JSONDecoder().raw_decode, _longest(file)
    with _opened(file) as (stream, faults):
        reader = io.TextIOWrapper(stream, "utf-8-sig", errors="surrogateescape", newline="")
        text, number, mark, is_end = "", 0, _OPENING, False
        while not is_end and len(text) < limit:
            block = reader.read(max(_CHUNK, len(text)))  # doubles for an entry that is longer
            text, position, is_end = text + block, 0, not block
            while start := _start_of_entry(text, position, mark):
                try:
                    value, end = decode(text, start)
                except (ValueError, RecursionError):
                    break
                if end == len(text) and not is_end:
                    break  # a number may go on
                yield _row(file, value, number, f"record {number}")
                position, number, mark = end, number + 1, _COMMA
            text = text[position:]
        if not (_END if number else _EMPTY).fullmatch(text):
            why = f"record {number} and later cannot be read: {text[:40]!r}"
            yield file.damaged(number, why)
        yield from _of_file(file, faults)


def _start_of_entry(text: str, position: int, mark: re.Pattern[str]) -> int | None:
    found = mark.match(text, position)
    start = found.end() if found else len(text)
    return start if start < len(text) and text[start] != "]" else None


def read_json(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the rows of a JSON list, or of JSON lines, by the first character."""
    with _opened(file) as (stream, _):
        start = stream.peek(_CHUNK).removeprefix(codecs.BOM_UTF8).lstrip()
    yield from (read_json_list if start[:1] == b"[" else read_json_lines)(file, columns)


class _Lines:
    """Lines of a stream, which can be given back; ``taken`` are those since ``begin``."""

    def __init__(self, stream: IO[bytes], limit: int) -> None:
        self._stream, self._limit = stream, limit
        self._waiting: deque[str] = deque()
        self.taken: list[str] = []
        self.number = 0  # of the last line that was taken

    def begin(self) -> None:
        self.taken = []

    def give_back_all_but_one(self) -> None:
        self._waiting.extendleft(reversed(self.taken[1:]))
        self.number -= len(self.taken) - 1

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if len(self.taken) >= _MAX_CSV_LINES:
            raise csv.Error(f"{_MAX_CSV_LINES} lines: a quotation mark is not closed")
        if self._waiting:
            line = self._waiting.popleft()
        elif not (line := self._stream.readline(self._limit).decode("utf-8", "surrogateescape")):
            raise StopIteration
        self.taken.append(line)
        self.number += 1
        return line


def read_csv(file: DataFile, columns: Collection[str]) -> Rows:
    """Yield the rows of a CSV or TSV file with a header; after a bad line, the next one is read."""
    csv.field_size_limit(max(csv.field_size_limit(), file.max_bytes + 1))
    delimiter = "\t" if ".tsv" in file.path.suffixes else ","
    header: list[str] | None = None
    with _opened(file) as (stream, faults):
        lines = _Lines(stream, _longest(file))
        for number in itertools.count():
            lines.begin()
            first = lines.number + 1
            try:
                values = next(csv.reader(lines, delimiter=delimiter, strict=True), None)
            except csv.Error as error:
                lines.give_back_all_but_one()
                yield file.damaged(number, f"line {first}: {error}")
                continue
            if values is None:
                break
            if header is None:
                header = [values[0].removeprefix("\ufeff"), *values[1:]] if values else None
            elif len(values) == len(header):
                yield Row(f"{file.name}:{number}", dict(zip(header, values, strict=True)))
            elif values:
                lines.give_back_all_but_one()
                why = f"line {first}: {len(values)} fields, the header has {len(header)}"
                yield file.damaged(number, why)
        yield from _of_file(file, faults)


@contextmanager
def _opened(file: DataFile) -> Iterator[tuple[io.BufferedReader, list[str]]]:
    faults: list[str] = []
    with open_stream(file.path, faults) as stream:
        yield stream, faults


def _of_file(file: DataFile, faults: list[str]) -> Rows:
    for why in faults:
        yield file.damaged("file", why)


def _longest(file: DataFile) -> int:
    # JSON escapes make a text at most six times longer; the rest is for other fields.
    return 6 * file.max_bytes + 16 * _CHUNK


READERS: dict[str, Callable[[DataFile, Collection[str]], Rows]] = {
    ".parquet": read_parquet,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".json": read_json,
    ".csv": read_csv,
    ".tsv": read_csv,
}
