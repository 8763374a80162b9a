"""The writer's database: a file for one process at a time, or a lake for several.

DuckDB lets one process write a file and shuts all others out meanwhile, so landing happens on a
file of its own in the scratch folder, under a lock; see docs/adr/0005-publishing.md. In a lake,
writers take turns where they would meet; see docs/adr/0017-ducklake.md.
"""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import duckdb
from filelock import FileLock, Timeout

from core.errors import UsageError, WarehouseError
from core.settings import Settings
from core.storage import Store, explain_disk_errors, replace_durably
from warehouse.database_errors import explain_database_errors
from warehouse.lake import connect_lake, is_lake, server_address
from warehouse.objects import create_objects
from warehouse.one_writer import become_writer, is_writer, require_writer
from warehouse.turns import OBJECTS, WAIT_S, WAREHOUSE, Turns

# Files of this storage version open in every DuckDB from 1.5 on.
STORAGE_VERSION = "v1.5.0"
SNAPSHOT = "warehouse.duckdb"
MAX_ATTEMPTS = 10
_T = TypeVar("_T")
_log = logging.getLogger(__name__)


def writer_path(settings: Settings) -> Path:
    """Where the writer's database is."""
    return settings.scratch / "writer.duckdb"


@contextlib.contextmanager
def locked(settings: Settings) -> Iterator[None]:
    """Have the warehouse alone; wait for processes that are writing it.

    Raises:
        WarehouseError: another process held it for six hours.
    """
    if settings.warehouse is not None:
        with turns_of(settings) as turns, turns.take(alone=[WAREHOUSE]):
            yield
        return
    with _file_locked(settings):
        yield


@contextlib.contextmanager
def turns_of(settings: Settings) -> Iterator[Turns]:
    """Yield the turns that writers of the lake take; those of the embedded file wait for nobody."""
    turns = Turns(server_address(settings))
    try:
        yield turns
    finally:
        turns.close()


@contextlib.contextmanager
def _file_locked(settings: Settings) -> Iterator[None]:
    path = writer_path(settings)
    with explain_disk_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        _log.warning("waiting for another process that is landing losses (%s.lock)", path)
        try:
            lock.acquire(timeout=WAIT_S)
        except Timeout as error:
            raise WarehouseError(
                f"another process has held {path}.lock for {WAIT_S // 3600} hours; "
                "end it, then run the same command again"
            ) from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def connected(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to the writer's database, all objects made.

    Call it with the warehouse locked, or, where that is a lake, take turns for what is written.

    Raises:
        WarehouseError: the file is damaged; the lake cannot be reached; either is of a later
            version.
    """
    connection = (
        _connect_embedded(settings) if settings.warehouse is None else _connect_lake(settings)
    )
    try:
        yield connection
    finally:
        connection.close()


def _connect_embedded(settings: Settings) -> duckdb.DuckDBPyConnection:
    require_writer(settings)
    path = writer_path(settings)
    if not path.exists() and not _bring_back(path, settings):
        _create(path, settings)
    return connect_file(path, settings)


def take_over(settings: Settings) -> bool:
    """Write this data root's warehouse from here from now on, beginning with what is published.

    For when the scratch folder is lost that it was written from; that one is refused afterwards.

    Returns:
        False where it is written from here already, and nothing has changed.

    Raises:
        UsageError: the warehouse is a lake, which has many writers.
        WarehouseError: what is published cannot be opened.
    """
    if settings.warehouse is not None:
        raise UsageError("the warehouse is a lake (TIDEMARK_WAREHOUSE): all may write it")
    with locked(settings):
        if is_writer(settings):
            return False
        if Store(settings.home).exists(SNAPSHOT):
            _remove_database(writer_path(settings))  # of a former time, or of another data root
        become_writer(settings)
        _connect_embedded(settings).close()
    return True


def _bring_back(path: Path, settings: Settings) -> bool:
    """Make the file from the published snapshot, which is a copy of it; False if there is none."""
    store = Store(settings.home)
    if not store.exists(SNAPSHOT):
        return False
    new = path.with_name(f"{path.name}.new")
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove_database(path)
    _remove_database(new)
    try:
        store.fetch(SNAPSHOT, new)
        connect_file(new, settings).close()
        with explain_disk_errors(str(path)):
            replace_durably(new, path)
    except WarehouseError as error:
        raise WarehouseError(
            f"{path} is lost and cannot be made from {store.url(SNAPSHOT)}: {error}; bring that "
            "back from a backup, or delete it, score again and land again what came from elsewhere"
        ) from error
    finally:
        _remove_database(new)
    return True


def _connect_lake(settings: Settings) -> duckdb.DuckDBPyConnection:
    # Two that make the same lake, or bring it forward, at once would fail.
    with turns_of(settings) as turns, turns.take(alone=[OBJECTS]):
        connection = connect_lake(settings)
        try:
            _prepare(connection, "the lake")
        except BaseException:
            connection.close()
            raise
        return connection


def _create(path: Path, settings: Settings) -> None:
    """Make the file under another name: what a kill or a full disk leaves half-made is none."""
    new = path.with_name(f"{path.name}.new")
    _remove_database(path)  # the journal of a database that somebody has deleted
    _remove_database(new)
    try:
        connect_file(new, settings).close()
        with explain_disk_errors(str(path)):
            replace_durably(new, path)
    finally:
        _remove_database(new)


def _remove_database(path: Path) -> None:
    for name in (path.name, f"{path.name}.wal"):
        path.with_name(name).unlink(missing_ok=True)


def connect_file(path: Path, settings: Settings) -> duckdb.DuckDBPyConnection:
    """Open a database file and make the objects that it lacks."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "storage_compatibility_version": STORAGE_VERSION,
        "temp_directory": str(settings.scratch / "duckdb-temporary"),
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    with explain_database_errors(f"open {path}"):
        connection = duckdb.connect(str(path), config=config)
    try:
        _prepare(connection, str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: duckdb.DuckDBPyConnection, where: str) -> None:
    with transaction(connection, f"prepare {where}"):
        create_objects(connection)


def commit(connection: duckdb.DuckDBPyConnection, what: str, work: Callable[[], _T]) -> _T:
    """Do work in a transaction; where it meets another writer's of the lake, do it again.

    Args:
        connection: to the warehouse.
        what: is being done, for messages.
        work: may be done several times, and reads anew what others may have written.

    Raises:
        WarehouseError: the database refused it, or others were always faster.
    """
    for attempt in range(1, MAX_ATTEMPTS + 1):
        try:
            with transaction(connection, what):
                return work()
        except WarehouseError as error:
            if attempt == MAX_ATTEMPTS or not is_conflict(error):
                raise
            _log.info("%s: met another writer, attempt %d: %s", what, attempt, error)
            time.sleep(random.uniform(0, min(2, 0.05 * 2**attempt)))  # noqa: S311 - to part them
    raise AssertionError("unreachable")


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


def write_journal(connection: duckdb.DuckDBPyConnection) -> None:
    """Write the journal of a database file into it; a lake has none."""
    if not is_lake(connection):
        with explain_database_errors("write the warehouse's journal into its file"):
            connection.execute("checkpoint")


def is_conflict(error: WarehouseError) -> bool:
    """Whether a transaction failed because another writer of the lake was faster."""
    text = str(error).lower()
    return "transaction conflict" in text or "could not serialize" in text
