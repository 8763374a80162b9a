"""Queries of the published snapshot, for ``tidemark sql`` and the report."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import duckdb
import pyarrow as pa

from core.errors import NewerVersion, UsageError, WarehouseError
from core.settings import Settings
from core.storage.store import Store
from core.version import code_version
from warehouse.database.faults import explained_faults, require_known
from warehouse.database.repair import advise_on_snapshot
from warehouse.database.schema import SNAPSHOT, digest_definitions, read_version
from warehouse.database.statements import OFFLINE, Config

# Sandbox for untrusted SQL, which can read only the database file. SQL cannot write, read other
# files or Python variables, use the network, or change settings.
_LOCKED_DOWN: Config = {**OFFLINE, "python_enable_replacements": False}
# Every connection gets a DuckDB instance of its own. With ``duckdb.connect(path)``, connections of
# one process to one path share an instance. A second connection would then read the old snapshot
# after a replacement, and would fail with another configuration.
_ATTACH = """
    attach '{path}' as warehouse (read_only);
    use warehouse;
    detach memory;
"""
# Schema ``old`` has aliases for former names. Bare names are looked up there after ``main``.
# Snapshots of former versions have no such schema.
_FIND_FORMER_NAMES = (
    "from duckdb_schemas() where database_name = 'warehouse' and schema_name = 'old'"
)
_READ_FORMER_NAMES = "set search_path = 'warehouse.main,warehouse.old'"
_LOCK = """
    set enable_external_access = false;
    set lock_configuration = true
"""
_TRIES = 10


def connect_to_read(path: Path, **config: int | str) -> duckdb.DuckDBPyConnection:
    """Open a database file for reading; retry if the file is replaced during opening.

    DuckDB opens a file several times. Without the retry, DuckDB could read the header of one
    snapshot and the blocks of the next snapshot.

    Raises:
        duckdb.Error: the file is missing, not a database, or replaced at every attempt.
        NewerVersion: a later version of tidemark wrote it.
    """
    for _ in range(_TRIES):
        before = _identity(path)
        try:
            connection = _connect(path, {"temp_directory": f"{path}.tmp", **config})
        except duckdb.Error:
            if _identity(path) == before:
                raise
            continue
        if _identity(path) == before:
            return connection
        connection.close()
    raise duckdb.IOException(f"{path} was replaced {_TRIES} times while it was opened")


def _connect(path: Path, config: Mapping[str, int | str]) -> duckdb.DuckDBPyConnection:
    """Open a database read-only, without access to other files or settings."""
    connection = duckdb.connect(config={**_LOCKED_DOWN, **config})
    try:
        connection.execute(_ATTACH.format(path=str(path).replace("'", "''")))
        if connection.execute(_FIND_FORMER_NAMES).fetchall():
            connection.execute(_READ_FORMER_NAMES)
        connection.execute(_LOCK)
        require_known(connection, path)
    except (duckdb.Error, NewerVersion):
        connection.close()
        raise
    return connection


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Return device, inode and modification time (ns) of a file, or None if it is missing."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns


_BATCH_ROWS = 122_880  # number of rows in DuckDB's row groups
Parameters = Sequence[object] | Mapping[str, object]


def query(settings: Settings, sql: str, parameters: Parameters = ()) -> pa.Table:
    """Run one read-only statement on the published snapshot.

    Raises:
        UsageError: there is no snapshot yet; the statement is invalid or would change data.
    """
    with query_batches(settings, sql, parameters) as reader:
        return reader.read_all()


@contextlib.contextmanager
def query_batches(
    settings: Settings, sql: str, parameters: Parameters = ()
) -> Iterator[pa.RecordBatchReader]:
    """Run a query as ``query`` does, but yield a reader of batches for a ``with`` block."""
    with local_snapshot(settings) as path, opened(path) as connection:
        yield run_statement(connection, sql, parameters)


@contextlib.contextmanager
def opened(path: Path, **config: int | str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a read-only connection to a snapshot.

    Raises:
        WarehouseError: the file is no database, or damaged.
    """
    try:
        connection = connect_to_read(path, **config)
    except duckdb.Error as error:
        raise WarehouseError(f"cannot open {path}: {error}") from error
    with contextlib.closing(connection):
        yield connection


def run_statement(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Parameters = ()
) -> pa.RecordBatchReader:
    """Run one statement; return a reader that computes rows as they are read.

    Raises:
        UsageError: the statement is invalid or would change data; also raised while reading.
    """
    try:
        statements = connection.extract_statements(sql)
        if len(statements) != 1:
            raise UsageError(f"expected one SQL statement, got {len(statements)}")
        relation = connection.sql(sql, params=parameters or None)
    except duckdb.Error as error:
        raise UsageError(f"the warehouse refused the query: {error}") from error
    return read_rows(relation)


def read_whole(connection: duckdb.DuckDBPyConnection, sql: str) -> pa.Table:
    """Run one trusted statement and return all its rows, for a small result.

    This binds the statement once, and copies the rows. ``run_statement`` copies no rows, but binds
    the statement twice. Binding takes longer than copying the few rows of a figure.

    Raises:
        UsageError: DuckDB cannot run the statement.
    """
    try:
        result = connection.execute(sql)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Arrow output on a DB-API result")
            return result.to_arrow_table()
    except duckdb.Error as error:
        raise UsageError(f"the warehouse refused the query: {error}") from error


def read_rows(relation: duckdb.DuckDBPyRelation) -> pa.RecordBatchReader:
    """Run a relation; return a reader that computes rows as they are read.

    Raises:
        UsageError: DuckDB cannot run the query; also raised while reading.
    """
    try:
        reader = relation.to_arrow_reader(_BATCH_ROWS)
    except duckdb.Error as error:
        raise UsageError(f"the warehouse refused the query: {error}") from error
    return pa.RecordBatchReader.from_batches(reader.schema, _explained(reader))


def _explained(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a reader; convert errors of a later row to UsageError."""
    try:
        yield from reader
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise UsageError(f"the warehouse refused the query: {error}") from error


@contextlib.contextmanager
def local_snapshot(settings: Settings) -> Iterator[Path]:
    """Yield the local path of the snapshot, after a download if it is in an object store.

    Raises:
        UsageError: nothing is published yet, or the query in the ``with`` block names an unknown
            view or column. The message states if another version published the snapshot.
        DamagedDatabase: the ``with`` block failed because the snapshot cannot be read.
        NewerVersion: it failed because a later version wrote the snapshot.
    """
    advise = partial(advise_on_snapshot, settings)
    if settings.is_local:
        # Without a Store, whose library takes a tenth of the time of `tidemark sql`.
        path = Path(settings.home) / SNAPSHOT
        if not os.access(path, os.F_OK):
            raise _nothing_published(str(path.resolve()))
        with explained_faults(path, advise), _explained_views(path):
            yield path
        return
    store = Store(settings.home)
    if not store.exists(SNAPSHOT):
        raise _nothing_published(store.url(SNAPSHOT))
    settings.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="snapshot-", dir=settings.scratch) as folder:
        path = Path(folder) / SNAPSHOT
        store.fetch(SNAPSHOT, path)
        with explained_faults(path, advise, store.url(SNAPSHOT)), _explained_views(path):
            yield path


def _nothing_published(place: str) -> UsageError:
    return UsageError(
        f"nothing is published at {place} yet; run `tidemark demo` (extra `reference_models`), "
        "`tidemark score` or `tidemark land losses` first"
    )


@contextlib.contextmanager
def _explained_views(path: Path) -> Iterator[None]:
    """Add to the error of a query which version published a snapshot, if it is another one."""
    try:
        yield
    except UsageError as error:
        is_unbound = isinstance(error.__cause__, (duckdb.BinderException, duckdb.CatalogException))
        other = _other_views(path) if is_unbound else None  # unbound: an unknown name
        if other is None:
            raise
        raise UsageError(f"{error}\n{other}") from error


def _other_views(path: Path) -> str | None:
    """Return a message if another version published the snapshot, else None."""
    with opened(path) as connection:
        found = read_version(connection)
    if found.definitions == digest_definitions():
        return None
    maker = f"tidemark {found.tidemark}" if found.tidemark else "another version"
    return (
        f"The snapshot was published by {maker}, whose views differ from those of this one "
        f"({code_version()}): run `tidemark publish`"
    )
