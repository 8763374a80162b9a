"""Reading the published snapshot, and nothing else: for ``tidemark sql`` and the report."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from core.errors import UsageError, WarehouseError
from core.settings import Settings
from core.storage import Store
from warehouse.publish import SNAPSHOT

# A query can read the snapshot, not write it, nor reach files, the network, our variables or its
# own settings: SQL may come from anywhere.
_LOCKED_DOWN: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "lock_configuration": True,
}
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
        try:
            return reader.read_all()
        except (pa.ArrowException, OSError) as error:  # DuckDB's, met on a later row
            raise UsageError(f"the warehouse refused the query: {error}") from error


@contextlib.contextmanager
def query_batches(
    settings: Settings, sql: str, parameters: Parameters = ()
) -> Iterator[pa.RecordBatchReader]:
    """As ``query``, for results larger than memory; the reader is valid within the block."""
    with local_snapshot(settings) as path:
        connection = _open(path)
        try:
            yield _execute(connection, sql, parameters)
        finally:
            connection.close()


def _open(path: Path) -> duckdb.DuckDBPyConnection:
    try:
        return duckdb.connect(str(path), read_only=True, config=_LOCKED_DOWN)
    except duckdb.Error as error:
        raise WarehouseError(f"cannot open {path}: {error}; publish it again") from error


def _execute(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Parameters
) -> pa.RecordBatchReader:
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1:
            raise UsageError(f"expected one SQL statement, got {len(statements)}")
        return connection.sql(sql, params=parameters or None).to_arrow_reader()
    except duckdb.Error as error:
        raise UsageError(f"the warehouse refused the query: {error}") from error


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
        with store.open(SNAPSHOT) as remote, path.open("wb") as local:
            shutil.copyfileobj(remote, local)
        yield path
