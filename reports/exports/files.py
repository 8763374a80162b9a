"""Functions that write exports: CSV and Parquet files in a folder with a manifest."""

from __future__ import annotations

import datetime as dt
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from core.errors import UsageError
from core.storage.store import explain_disk_errors, sha256_of_file
from core.storage.temporary import prefix_of, prefix_of_mine, sweep

_GROUP_ROWS = 122_880  # number of rows per row group, as in DuckDB


def csv_parts(schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Iterator[str]:
    """Yield CSV text: a header line, then rows. NULL becomes an empty field, an empty text ``""``.

    Raises:
        pa.ArrowException, ValueError: a value cannot be written as CSV.
    """
    import polars as pl

    yield pl.DataFrame(schema=schema.names).write_csv()
    for batch in batches:
        columns = []
        for column in batch.columns:
            is_plain = any(is_one(column.type) for is_one in _PLAIN_TYPES)
            columns.append(column if is_plain else _texts(column))
        table = pa.table(columns, names=schema.names)
        try:
            yield pl.DataFrame(pl.from_arrow(table)).write_csv(include_header=False)
        except pl.exceptions.PolarsError as error:
            raise ValueError(str(error)) from error


def _texts(column: pa.Array) -> pa.Array:
    """Return a column as text for CSV: times in SQL notation, nested values as JSON."""
    if pa.types.is_temporal(column.type) and not pa.types.is_interval(column.type):
        return column.cast(pa.string())
    return pa.array([_text(value) for value in column.to_pylist()], pa.large_string())


def _text(value: object) -> str | None:
    simple = plain(value)
    return simple if simple is None or isinstance(simple, str) else json.dumps(simple)


def plain(value: object) -> object:
    """Return a value that JSON can represent: None for NaN and infinity, hex text for bytes."""
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
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal,
    pa.types.is_string, pa.types.is_large_string, pa.types.is_null,
)  # fmt: skip


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """Write batches to a Parquet file; cast integer columns of 128 bits to 64 bits if possible.

    DuckDB's sums of integers have 128 bits, which Arrow represents as decimals.

    Raises:
        pa.ArrowException: Parquet cannot store a column's type.
    """
    import pyarrow.parquet as pq

    wide = {f.name for f in schema if pa.types.is_decimal(f.type) and f.type.scale == 0}
    if not wide:
        _write(schema, batches, path)
        return
    draft = path.with_name(f"{path.name}.draft")
    try:
        _write(schema, _noting_large(batches, wide), draft)
        if not wide:  # no column fits into 64 bits
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
    """Yield the batches; remove from ``wide`` the columns with a value beyond 64 bits."""
    for batch in batches:
        for name in sorted(wide):
            try:
                batch[name].cast(pa.int64())
            except pa.ArrowInvalid:
                wide.discard(name)
        yield batch


def _write(schema: pa.Schema, batches: Iterable[pa.RecordBatch], path: Path) -> None:
    """Write batches to a Parquet file, with row groups as large as DuckDB's."""
    import pyarrow.parquet as pq

    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(batch, row_group_size=_GROUP_ROWS)


MANIFEST = "manifest.json"


@contextmanager
def exporting(output: Path, kind: str) -> Iterator[Path]:
    """Yield an empty folder, which is renamed to ``output`` if the ``with`` block succeeds.

    An earlier export of the same kind at ``output`` is replaced.

    Raises:
        UsageError: ``output`` exists and is not an export, or contains other files.
        StorageError: writing failed; the earlier export is kept.
    """
    with explain_disk_errors(str(output)):
        try:
            final = output.resolve()
        except RuntimeError as error:  # a link that leads to itself
            raise UsageError(f"{output} is no folder: {error}; give another --output") from error
        _require_export(final, kind)
        final.parent.mkdir(parents=True, exist_ok=True)
        sweep(final.parent, prefix_of("export"))
        prefix = prefix_of_mine("export")
        with tempfile.TemporaryDirectory(prefix=prefix, dir=final.parent) as room:
            new = Path(room) / "new"
            old = Path(room) / "old"
            new.mkdir()
            yield new
            if final.exists():
                final.rename(old)
            try:
                new.rename(final)
            except OSError:
                if old.exists():
                    old.rename(final)
                raise


def write_manifest(folder: Path, kind: str, facts: Mapping[str, object]) -> None:
    """Write the manifest: ``facts``, and the length in bytes and checksum of every file."""
    files = {
        path.name: {"num_bytes": path.stat().st_size, "sha256": sha256_of_file(path)}
        for path in sorted(folder.iterdir())
    }
    text = json.dumps({"export": kind, **facts, "files": files}, indent=2)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8")
    for name in (*files, MANIFEST):
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())


def _require_export(folder: Path, kind: str) -> None:
    """Raise UsageError if a folder exists and has other files than an earlier export."""
    if not folder.exists() and not folder.is_symlink():
        return
    if folder.is_dir():
        present = {path.name for path in folder.iterdir()}
        if present <= _files_of(folder, kind):
            return
    raise UsageError(
        f"{folder} exists and holds more than an earlier export of {kind}; "
        "give another --output, or move the other files"
    )


def _files_of(folder: Path, kind: str) -> set[str]:
    """Return the names of an earlier export's files; none if the folder has no such export."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        return {MANIFEST, *manifest["files"]} if manifest["export"] == kind else set()
    except (OSError, ValueError, KeyError, TypeError):
        return set()
