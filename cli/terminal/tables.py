"""Output of query results as a printed table, CSV, JSON or Parquet, one batch at a time."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyarrow as pa

from cli.terminal.console import out, print_fitting, visible
from core.errors import StorageError, UsageError
from core.storage.store import explain_disk_errors, writing_file
from reports.exports.files import csv_parts, plain, write_parquet

MAX_SHOWN_ROWS = 200
_BATCH_ROWS = 4096  # number of rows that are converted to JSON at a time


def write_table(reader: pa.RecordBatchReader, format: str, output: Path | None) -> int:
    """Print a query result, or write it to a file, which appears when it is complete.

    Return the number of rows. Repeated column names are numbered (``a``, ``a_1``). JSON contains
    null for NaN and infinities, and bytes as hex. On a terminal, control characters are escaped. If
    a table is wider than the terminal, or in a pipe than 200 columns, each row is printed as a
    block of lines. Format ``table`` in a file is CSV.

    Raises:
        UsageError: the format cannot store a column, or Parquet would be written to a terminal.
        StorageError: the file cannot be written.
    """
    if format == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("parquet is binary: add --output FILE, or pipe it into one")
    schema = _with_unique_names(reader.schema)
    counted = _Counted()
    batches = (counted.add(batch.rename_columns(schema.names)) for batch in reader)
    try:
        if format == "table" and output is None:
            _show(schema, batches)
        elif format == "parquet":
            _write_parquet(schema, batches, output)
        else:
            _write(_FORMATS[format](schema, batches), output)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        types = ", ".join(f"{field.name} {field.type}" for field in schema)
        raise UsageError(
            f"this result cannot be written as {format} ({error}); its columns are: {types}. "
            "Cast what is unusual in the query, such as column::varchar"
        ) from error
    return counted.num_rows


class _Counted:
    """The number of rows of the batches that were read."""

    num_rows = 0

    def add(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        self.num_rows += batch.num_rows
        return batch


def _with_unique_names(schema: pa.Schema) -> pa.Schema:
    """Number repeated column names as DuckDB does in subqueries; ``A`` repeats ``a``."""
    all_names = {name.lower() for name in schema.names}
    seen: set[str] = set()
    fields = []
    for field in schema:
        name = field.name
        if name.lower() in seen:
            numbered = (f"{field.name}_{number}" for number in itertools.count(1))
            name = next(each for each in numbered if each.lower() not in all_names | seen)
        seen.add(name.lower())
        fields.append(field.with_name(name))
    return pa.schema(fields)


def _show(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    """Print the first rows as a table of the terminal's width."""
    rows: list[dict[str, object]] = []
    num_rows = 0
    for batch in batches:
        rows += batch.slice(0, MAX_SHOWN_ROWS - len(rows)).to_pylist()
        num_rows += batch.num_rows
    names = [visible(name) for name in schema.names]
    cells = [[_shown(cell) for cell in row.values()] for row in rows]
    print_fitting("", names, cells)
    if num_rows > len(rows):
        out.print(f"… {num_rows - len(rows)} more rows; --format csv shows all")


def _shown(value: object) -> str:
    if value is None:
        return "–"
    return visible(f"{value:.6g}" if isinstance(value, float) else str(value))


def _write(parts: Iterable[str], output: Path | None) -> None:
    """Write text to a file, or to standard output, escaped if that is a terminal."""
    if output is None:
        escape: Callable[[str], str] = visible if sys.stdout.isatty() else str
        with _standard_output() as stream:
            for part in parts:
                stream.write(escape(part).encode())
        return
    with writing_file(output) as staged, staged.open("wb") as file:
        for part in parts:
            file.write(part.encode())


def _write_parquet(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Path | None
) -> None:
    """Write Parquet to a file, or to standard output."""
    if output is not None:
        with writing_file(output) as staged:
            write_parquet(schema, batches, staged)
        return
    # A Parquet file is readable only if complete, so write a temporary file before piping it.
    with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
        path = Path(folder) / "result.parquet"
        with explain_disk_errors(str(path)):
            write_parquet(schema, batches, path)
        with _standard_output() as stream, path.open("rb") as file:
            shutil.copyfileobj(file, stream)


@contextmanager
def _standard_output() -> Iterator[IO[bytes]]:
    """Yield standard output, and flush it; convert write errors to StorageError."""
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # Redirect stdout, or Python would flush it at exit and report the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise StorageError(f"cannot write to standard output: {error}") from error


def _json(_: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Yield the parts of a JSON array with one object per row."""
    before = "["
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            for row in batch.slice(start, _BATCH_ROWS).to_pylist():
                yield f"{before}\n{json.dumps(plain(row), ensure_ascii=False)}"
                before = ","
    yield "\n]\n" if before == "," else "[\n]\n"


_FORMATS = {"table": csv_parts, "csv": csv_parts, "json": _json}
