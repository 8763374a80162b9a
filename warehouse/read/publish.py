"""Publishing: atomically replace the snapshot with a checked copy of the warehouse.

Analysts may open ``<home>/warehouse.duckdb`` read-only at any time. Publishing replaces the file by
renaming a new file. A reader that has the old file open continues to read the old file.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import duckdb

from core.errors import CheckFailed
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.faults import read_all
from warehouse.database.materialised import materialise
from warehouse.database.repair import require_known_databases
from warehouse.database.schema import SNAPSHOT
from warehouse.database.statements import explain_database_errors
from warehouse.database.writer import (
    connect_file,
    connected,
    explained_writer,
    locked,
    transaction,
    write_journal,
    writer_path,
)
from warehouse.estimates.estimate import estimate
from warehouse.read.check import check_database
from warehouse.read.shrinking import require_no_shrinking


def publish(settings: Settings, may_shrink: bool = False) -> str:
    """Publish the landed rows and return the snapshot's URL or path.

    With ``may_shrink``, the new snapshot may lack more than half of the former one.

    Raises:
        CheckFailed: a check fails on the new snapshot, or it lacks more than half of the losses,
            models or months of the former snapshot; the former snapshot stays.
        DamagedDatabase: the writer's database cannot be read in full; the former snapshot stays.
        DiskFull: there is no space for a second copy; the former snapshot stays.
        NewerVersion: a later version wrote the database or the former snapshot.
    """
    store = Store(settings.home, settings.scratch)
    with locked(settings):
        require_known_databases(settings)
        store.clear_leftovers(SNAPSHOT)
        with store.writing(SNAPSHOT) as staged, explained_writer(settings):
            _copy_file(settings, staged.path)
            with contextlib.closing(connect_file(staged.path, settings)) as connection:
                if not may_shrink:
                    require_no_shrinking(settings, connection)
                write_estimates(connection)
            check_snapshot(staged.path)
    return store.url(SNAPSHOT)


def is_current(settings: Settings) -> bool:
    """Return True if nothing was written to the warehouse since the snapshot was published.

    Return False for a remote data root, because clocks may differ.
    """
    snapshot = Store(settings.home).list_stamped(SNAPSHOT).get(SNAPSHOT)
    writer = writer_path(settings)
    if not settings.is_local or not snapshot or not writer.exists():
        return False
    return writer.stat().st_mtime < snapshot.modified_at  # equal: clocks of files may be coarse


def _copy_file(settings: Settings, target: Path) -> None:
    with connected(settings) as connection:
        write_journal(connection)
    # Copy after the connection is closed: reading the file earlier would release DuckDB's lock.
    shutil.copyfile(writer_path(settings), target)


def write_estimates(connection: duckdb.DuckDBPyConnection) -> None:
    """Fit the estimates of a database that is to be published, and keep the rows of views.

    All rows are read first: a damaged file must not be published.
    """
    with explain_database_errors("read the database to publish"):
        read_all(connection)
    with transaction(connection, "estimate from the snapshot"):
        estimate(connection)
        materialise(connection)
    write_journal(connection)


def check_snapshot(path: Path) -> None:
    """Run the quick integrity checks on a database file, and read every view.

    Raises:
        CheckFailed: names the check or the view, and the first faulty row.
    """
    for finding in check_database(path):
        raise CheckFailed(
            f"not published: check {finding.check} found {finding.first}; the former snapshot "
            f"stays. {finding.meaning} {finding.remedy}"
        )
