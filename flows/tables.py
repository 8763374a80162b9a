"""Write a query's result as a table for people, CSV, a JSON list of objects, or Parquet.

Results stream: of what is larger than memory, a batch at a time is held.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import polars as pl
import pyarrow as pa

from core.errors import StorageError, UsageError
from core.storage import explain_disk_errors, writing_file
from flows.console import out, print_table, visible
from reports.result_files import csv_parts, plain, write_parquet

MAX_SHOWN_ROWS = 200
_BATCH_ROWS = 4096


def write_table(reader: pa.RecordBatchReader, format: str, output: Path | None) -> None:
    """Print a result, or write it to a file, which takes its place when it is whole.

    Of columns with the same name, the later ones are numbered (``a``, ``a_1``). JSON has numbers
    as exact as its readers take them, and null for NaN and infinities; bytes are written as hex.
    On a terminal, control characters are spelled out.

    Args:
        reader: a query's result; consumed.
        format: table (``output`` is then written as CSV), csv, json or parquet.
        output: file to write; None prints.

    Raises:
        UsageError: Parquet, which is binary, to a terminal; a column that the format cannot hold.
        StorageError: the file cannot be written.
    """
    if format == "parquet" and output is None and sys.stdout.isatty():
        raise UsageError("parquet is binary: add --output FILE, or pipe it into one")
    schema = _with_unique_names(reader.schema)
    batches = (batch.rename_columns(schema.names) for batch in reader)
    try:
        if format == "table" and output is None:
            _show(schema, batches)
        elif format == "parquet":
            _write_parquet(schema, batches, output)
        else:
            _write(_FORMATS[format](schema, batches), output)
    except (pa.ArrowException, pl.exceptions.PolarsError, ValueError, OverflowError) as error:
        types = ", ".join(f"{field.name} {field.type}" for field in schema)
        raise UsageError(
            f"this result cannot be written as {format} ({error}); its columns are: {types}. "
            "Cast what is unusual in the query, such as column::varchar"
        ) from error


def _with_unique_names(schema: pa.Schema) -> pa.Schema:
    names = _unique(schema.names)
    return pa.schema([field.with_name(n) for field, n in zip(schema, names, strict=True)])


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


def _show(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> None:
    rows: list[dict[str, object]] = []
    num_rows = 0
    for batch in batches:
        rows += batch.slice(0, MAX_SHOWN_ROWS - len(rows)).to_pylist()
        num_rows += batch.num_rows
    names = [visible(name) for name in schema.names]
    print_table("", names, ([_cell(cell) for cell in row.values()] for row in rows))
    if num_rows > len(rows):
        out.print(f"… {num_rows - len(rows)} more rows; --format csv shows all")


def _cell(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def _write(parts: Iterable[str], output: Path | None) -> None:
    if output is None:
        show: Callable[[str], str] = visible if sys.stdout.isatty() else str
        with _standard_output() as stream:
            for part in parts:
                stream.write(show(part).encode())
        return
    with writing_file(output) as staged, staged.open("wb") as file:
        for part in parts:
            file.write(part.encode())


def _write_parquet(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], output: Path | None
) -> None:
    if output is not None:
        with writing_file(output) as staged:
            write_parquet(schema, batches, staged)
        return
    # Readers of Parquet begin at its end: nothing is gained by piping half of it.
    with tempfile.TemporaryDirectory(prefix="tidemark-") as folder:
        path = Path(folder) / "result.parquet"
        with explain_disk_errors(str(path)):
            write_parquet(schema, batches, path)
        with _standard_output() as stream, path.open("rb") as file:
            shutil.copyfileobj(file, stream)


@contextmanager
def _standard_output() -> Iterator[IO[bytes]]:
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        # Python would try once more, and complain, when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise StorageError(f"cannot write to standard output: {error}") from error


def _json(_: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    before = "["
    for row in _rows(batches):
        yield f"{before}\n{json.dumps(plain(row), ensure_ascii=False)}"
        before = ","
    yield "\n]\n" if before == "," else "[\n]\n"


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, object]]:
    for batch in batches:
        for start in range(0, batch.num_rows, _BATCH_ROWS):
            yield from batch.slice(start, _BATCH_ROWS).to_pylist()


_FORMATS = {"table": csv_parts, "csv": csv_parts, "json": _json}
