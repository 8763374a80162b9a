"""Connections to the database to write, and the lock of this database.

While one process writes a DuckDB file, no other process can open it. Landing therefore writes a
separate file in the scratch folder, under a lock (docs/adr/0005-publishing.md).
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import duckdb
from filelock import FileLock, Timeout

from core.errors import StorageError, WarehouseError
from core.settings import Settings
from core.storage.store import Store, explain_disk_errors, replace_durably
from warehouse.database import holder as holders
from warehouse.database.faults import explained_faults, read_all, require_known
from warehouse.database.lock import become_writer, is_writer, require_writer
from warehouse.database.materialised import compute_views
from warehouse.database.objects import create_objects
from warehouse.database.repair import advise_on_snapshot, advise_on_writer
from warehouse.database.schema import ESTIMATES, SNAPSHOT, WRITER, qualify
from warehouse.database.statements import OFFLINE, Config, explain_database_errors

# DuckDB 1.5 and later can open files of this storage version.
STORAGE_VERSION = "v1.5.0"
WAIT_S = 6 * 3600  # timeout of the lock; landing many million rows takes hours
_log = logging.getLogger(__name__)


def writer_path(settings: Settings) -> Path:
    """Return the path of the database file that landing writes."""
    return settings.scratch / WRITER


@contextlib.contextmanager
def locked(settings: Settings, ends_hung: bool = False) -> Iterator[None]:
    """Lock the warehouse against other writers; wait while another process holds the lock.

    With ``ends_hung``, a holder that hangs is killed.

    Raises:
        WarehouseError: another process hangs, or held the lock for six hours.
    """
    path = writer_path(settings)
    lock = FileLock(f"{path}.lock")
    with explain_disk_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=0)
    if not lock.is_locked:
        _wait(lock, path, ends_hung)
    try:
        with holders.named(path):
            yield
    finally:
        lock.release()


def _wait(lock: FileLock, path: Path, ends_hung: bool) -> None:
    """Take the lock when its holder releases it; see ``locked`` for the errors."""
    holder = holders.read_holder(path)
    who = holder or "not known"
    _log.warning("waiting for another process that is landing losses: %s (%s.lock)", who, path)
    watch = holders.Watch()
    deadline = time.monotonic() + WAIT_S
    while True:
        with contextlib.suppress(Timeout):
            lock.acquire(timeout=holders.LOOK_S)
            return
        holder = holders.read_holder(path)
        watch.look(holder)
        hangs = watch.idle_s >= holders.HUNG_S
        if holder and ends_hung and (hangs or holders.is_stopped(holder)):
            _log.warning("ended, as it hangs: %s", holder)
            holders.end(holder)
        elif hangs:
            state = "is stopped" if holders.is_stopped(holder) else "has used no processor time"
            raise WarehouseError(
                f"the lock {path}.lock is held by {holder}, which {state} for "
                f"{holders.HUNG_S:.0f} s now: let it go on, or run `tidemark take-over` on that "
                "machine, which ends it; then run the same command again"
            )
        elif time.monotonic() > deadline:
            raise WarehouseError(
                f"another process has held {path}.lock for {WAIT_S // 3600} hours "
                f"({holder or 'not known'}); end it, then run the same command again"
            )


@contextlib.contextmanager
def connected(settings: Settings) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection to the database to write, with all tables and views created.

    The caller must hold the lock of the warehouse.

    Raises:
        DamagedDatabase: the file is damaged, or is lost and the snapshot is damaged.
        NewerVersion: a later version wrote the file.
        WarehouseError: another scratch folder is the writer.
    """
    require_writer(settings)
    path = writer_path(settings)
    if not path.exists():
        _create(path, settings)
    with explained_writer(settings), contextlib.closing(connect_file(path, settings)) as connection:
        yield connection


@contextlib.contextmanager
def explained_writer(settings: Settings) -> Iterator[None]:
    """Convert errors that a fault of the writer's database causes; add advice."""
    with explained_faults(writer_path(settings), partial(advise_on_writer, settings)):
        yield


def take_over(settings: Settings) -> bool:
    """Make this scratch folder the writer, starting from the published snapshot.

    Use this if the former writer's scratch folder is lost. That folder may not write afterwards.
    If the record of the writer is damaged, this folder's own database is kept. A process that holds
    the lock of this folder's database and hangs is killed.

    Returns:
        True if the writer changed; False if this scratch folder already was the writer.

    Raises:
        DamagedDatabase: the published snapshot cannot be read; nothing has changed.
    """
    with locked(settings, ends_hung=True):
        is_recorded = True
        try:
            if is_writer(settings):
                return False
        except StorageError:  # the record is damaged; its message says to take over here
            is_recorded = not writer_path(settings).exists()
        if is_recorded and Store(settings.home).exists(SNAPSHOT):
            _create(writer_path(settings), settings)  # the database here may be outdated
        become_writer(settings)
        with connected(settings):  # creates the database
            pass
    return True


def _create(path: Path, settings: Settings) -> None:
    """Create the database file as a copy of the published snapshot, or empty without snapshot.

    The file is written under another name, read in full and then renamed. So a kill leaves no
    partial file, and an existing file is replaced by a sound one only.
    """
    store = Store(settings.home)
    is_copy = store.exists(SNAPSHOT)
    new = path.with_name(f"{path.name}.new")
    with explain_disk_errors(str(new)):
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_database(new)
    try:
        if is_copy:
            store.fetch(SNAPSHOT, new)
        snapshot = f"{path} cannot be made from the published snapshot: {store.url(SNAPSHOT)}"
        with (
            explained_faults(new, partial(advise_on_snapshot, settings), snapshot),
            contextlib.closing(connect_file(new, settings)) as connection,
        ):
            if is_copy:
                _forget_estimates(connection, path, new)
        with explain_disk_errors(str(path)):
            path.with_name(f"{path.name}.wal").unlink(missing_ok=True)  # of the former file
            replace_durably(new, path)
    finally:
        # If the folder is read-only, the error is raised already; the next call removes the file.
        with contextlib.suppress(OSError):
            _remove_database(new)


def _forget_estimates(connection: duckdb.DuckDBPyConnection, path: Path, new: Path) -> None:
    """Read a copy of the snapshot in full; empty the tables that only snapshots fill."""
    with explain_database_errors(f"read {new}"):
        read_all(connection)
    with transaction(connection, f"make {path} from the snapshot"):
        compute_views(connection)
        for table in map(qualify, ESTIMATES):
            connection.execute(f"delete from {table}")  # noqa: S608 - a constant name


def _remove_database(path: Path) -> None:
    for name in (path.name, f"{path.name}.wal"):
        path.with_name(name).unlink(missing_ok=True)


def connect_file(path: Path, settings: Settings) -> duckdb.DuckDBPyConnection:
    """Open a database file and create missing tables and views."""
    config: Config = {
        **OFFLINE,
        "storage_compatibility_version": STORAGE_VERSION,
        "temp_directory": str(settings.scratch / "duckdb-temporary"),
    }
    with explain_database_errors(f"open {path}"):
        connection = duckdb.connect(str(path), config=config)
    try:
        require_known(connection, path)
        with transaction(connection, f"prepare {path}"):
            create_objects(connection)
    except BaseException:
        connection.close()
        raise
    return connection


@contextlib.contextmanager
def transaction(connection: duckdb.DuckDBPyConnection, what: str) -> Iterator[None]:
    """Run the ``with`` block in a transaction: commit at the end, roll back on an error."""
    with explain_database_errors(what):
        connection.begin()
        try:
            yield
            connection.commit()
        except BaseException:
            # A failed commit or a full disk may have ended the transaction already.
            with contextlib.suppress(duckdb.Error):
                connection.rollback()
            raise


def write_journal(connection: duckdb.DuckDBPyConnection) -> None:
    """Move the write-ahead log into the database file (checkpoint)."""
    with explain_database_errors("write the warehouse's journal into its file"):
        connection.execute("checkpoint")
