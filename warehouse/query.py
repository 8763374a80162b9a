"""Reading the published snapshot, and nothing else: for ``tidemark sql`` and the report."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from core.errors import UsageError, WarehouseError
from core.settings import Settings
from core.storage import Store
from warehouse.publish import SNAPSHOT
from warehouse.reader import connect_to_read

_BATCH_ROWS = 122_880  # one of DuckDB's row groups
Parameters = Sequence[object] | Mapping[str, object]


def query(settings: Settings, sql: str, parameters: Parameters = ()) -> pa.Table:
    """Run one read-only statement on the published snapshot.

    Args:
        settings: say where the snapshot is.
        sql: one statement; ``?`` or ``$name`` for parameters.
        parameters: bound by position or by name, never formatted into the text.

    Raises:
        UsageError: nothing is published yet, or the statement is wrong or would change something.
    """
    with query_batches(settings, sql, parameters) as reader:
        return reader.read_all()


@contextlib.contextmanager
def query_batches(
    settings: Settings, sql: str, parameters: Parameters = ()
) -> Iterator[pa.RecordBatchReader]:
    """As ``query``, for results larger than memory; the reader is valid within the block."""
    with local_snapshot(settings) as path, opened(path) as connection:
        yield run_statement(connection, sql, parameters)


@contextlib.contextmanager
def opened(path: Path, **config: int) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to a snapshot that can do nothing but read it.

    Args:
        path: of the snapshot.
        config: more of DuckDB's settings, such as ``threads``.

    Raises:
        WarehouseError: the file is no database, or damaged.
    """
    connection = _open(path, config)
    try:
        yield connection
    finally:
        connection.close()


def _open(path: Path, config: Mapping[str, int]) -> duckdb.DuckDBPyConnection:
    try:
        return connect_to_read(path, **config)
    except duckdb.Error as error:
        raise WarehouseError(f"cannot open {path}: {error}; publish it again") from error


def run_statement(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Parameters = ()
) -> pa.RecordBatchReader:
    """Run one statement; its rows come as they are read.

    Raises:
        UsageError: it is wrong, or would change something; on a later row, from the reader.
    """
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1:
            raise UsageError(f"expected one SQL statement, got {len(statements)}")
        relation = connection.sql(sql, params=parameters or None)
    except duckdb.Error as error:
        raise UsageError(f"the warehouse refused the query: {error}") from error
    return read_rows(relation)


def read_rows(relation: duckdb.DuckDBPyRelation) -> pa.RecordBatchReader:
    """Run what was prepared; its rows come as they are read.

    Raises:
        UsageError: DuckDB cannot run it; on a later row, from the reader.
    """
    try:
        reader = relation.to_arrow_reader(_BATCH_ROWS)
    except duckdb.Error as error:
        raise UsageError(f"the warehouse refused the query: {error}") from error
    return pa.RecordBatchReader.from_batches(reader.schema, _explained(reader))


def _explained(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # met on a later row
            raise UsageError(f"the warehouse refused the query: {error}") from error
        yield batch


@contextlib.contextmanager
def local_snapshot(settings: Settings) -> Iterator[Path]:
    """Yield the snapshot's path on this machine; one in an object store is fetched.

    Raises:
        UsageError: nothing is published yet.
    """
    store = Store(settings.home)
    if not store.exists(SNAPSHOT):
        raise UsageError(
            f"nothing is published at {store.url(SNAPSHOT)} yet; "
            "run `tidemark demo`, `tidemark score` or `tidemark land` first"
        )
    if settings.is_local:
        yield Path(settings.home) / SNAPSHOT
        return
    settings.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="snapshot-", dir=settings.scratch) as folder:
        path = Path(folder) / SNAPSHOT
        store.fetch(SNAPSHOT, path)
        yield path
