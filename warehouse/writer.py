"""The writer's database file: one process at a time, under a lock.

DuckDB lets one process write a file and shuts all others out meanwhile, so landing happens on a
file of its own in the scratch folder; see docs/adr/0005-publishing.md.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from pathlib import Path

import duckdb
from filelock import FileLock, Timeout

from core.errors import DiskFull, WarehouseError
from core.settings import Settings
from core.storage import explain_disk_errors, replace_durably
from warehouse.objects import create_objects

# Files of this storage version open in every DuckDB from 1.5 on.
STORAGE_VERSION = "v1.5.0"
_WAIT_S = 6 * 3600  # another process may be landing tens of millions of rows
_log = logging.getLogger(__name__)


def writer_path(settings: Settings) -> Path:
    """Where the writer's database is."""
    return settings.scratch / "writer.duckdb"


@contextlib.contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """Hold the warehouse's lock; wait for a process that holds it.

    Raises:
        WarehouseError: another process held it for six hours.
    """
    path = writer_path(settings)
    with explain_disk_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        _log.warning("waiting for another process that is landing losses (%s.lock)", path)
        try:
            lock.acquire(timeout=_WAIT_S)
        except Timeout as error:
            raise WarehouseError(
                f"another process has held {path}.lock for {_WAIT_S // 3600} hours; "
                "end it, then run the same command again"
            ) from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def connected(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to the writer's database, all objects made; call with the lock held.

    Raises:
        WarehouseError: the file is damaged, or of a later version.
    """
    path = writer_path(settings)
    if not path.exists():
        _create(path, settings)
    connection = _connect(path, settings)
    try:
        yield connection
    finally:
        connection.close()


def _create(path: Path, settings: Settings) -> None:
    """Make the file under another name: what a kill or a full disk leaves half-made is none."""
    new = path.with_name(f"{path.name}.new")
    _remove_database(path)  # the journal of a database that somebody has deleted
    _remove_database(new)
    try:
        _connect(new, settings).close()
        with explain_disk_errors(str(path)):
            replace_durably(new, path)
    finally:
        _remove_database(new)


def _remove_database(path: Path) -> None:
    for name in (path.name, f"{path.name}.wal"):
        path.with_name(name).unlink(missing_ok=True)


def _connect(path: Path, settings: Settings) -> duckdb.DuckDBPyConnection:
    """Open a writer's database and make the objects that it lacks."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "storage_compatibility_version": STORAGE_VERSION,
        "temp_directory": str(settings.scratch / "duckdb-temporary"),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    with explain_database_errors(f"open {path}"):
        connection = duckdb.connect(str(path), config=config)
    try:
        with transaction(connection, f"prepare {path}"):
            create_objects(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def transaction(connection: duckdb.DuckDBPyConnection, what: str) -> Iterator[None]:
    """Commit what the block did, or undo it all where it raised."""
    with explain_database_errors(what):
        connection.begin()
        try:
            yield
            connection.commit()
        except BaseException:
            # After a failed commit, or on a full disk, there is nothing left to roll back.
            with contextlib.suppress(duckdb.Error):
                connection.rollback()
            raise


@contextlib.contextmanager
def explain_database_errors(what: str) -> Iterator[None]:
    """Turn DuckDB's errors into ours, which say what was being done."""
    try:
        yield
    except duckdb.Error as error:
        if "No space left" in str(error):
            raise DiskFull(
                f"no space left: cannot {what}; nothing was changed. Free some, or move the data "
                "root (TIDEMARK_HOME), then run the same command again"
            ) from error
        raise WarehouseError(f"cannot {what}: {error}") from error
