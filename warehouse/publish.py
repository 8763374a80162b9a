"""Publishing: a checked snapshot of the writer's database takes the former one's place at once.

Analysts open ``<home>/warehouse.duckdb`` read-only whenever they like. The file under that name is
never written to: a new one is renamed over it, and who has the old one open keeps reading that.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

from core.errors import CheckFailed
from core.settings import Settings
from core.storage import Store
from warehouse.check import check_database
from warehouse.database_errors import explain_database_errors
from warehouse.extensions import quoted
from warehouse.lake import LAKE
from warehouse.schema import list_tables
from warehouse.turns import PUBLICATION
from warehouse.writer import SNAPSHOT as SNAPSHOT
from warehouse.writer import (
    connect_file,
    connected,
    locked,
    transaction,
    turns_of,
    write_journal,
    writer_path,
)


def publish(settings: Settings) -> str:
    """Publish what has landed and return the snapshot's address.

    Raises:
        CheckFailed: the snapshot is not sound; the former one stays.
        DiskFull: no space for a second copy; the former one stays.
    """
    store = Store(settings.home, settings.scratch)
    with _taking_turns(settings):
        store.clear_leftovers(SNAPSHOT)
        with store.writing(SNAPSHOT) as staged:
            if settings.warehouse is None:
                _copy_file(settings, staged.path)
            else:
                _copy_lake(settings, staged.path)
            check_snapshot(staged.path)
    return store.url(SNAPSHOT)


@contextlib.contextmanager
def _taking_turns(settings: Settings) -> Iterator[None]:
    """Keep other publications out, and those who write the same file; not those of a lake."""
    if settings.warehouse is None:
        with locked(settings):
            yield
        return
    with turns_of(settings) as turns, turns.take([PUBLICATION]):
        yield


def _copy_file(settings: Settings, target: Path) -> None:
    with connected(settings) as connection:
        write_journal(connection)
    # Closed: DuckDB's lock on the file would not survive our opening it in this process.
    shutil.copyfile(writer_path(settings), target)


def _copy_lake(settings: Settings, target: Path) -> None:
    """Copy one version of the lake into a database file, whatever is landing meanwhile."""
    target.unlink()
    connect_file(target, settings).close()
    with connected(settings) as connection:
        with explain_database_errors(f"open {target}"):
            connection.execute(f"attach {quoted(str(target))} as snapshot")
        with transaction(connection, "copy the lake into a snapshot"):
            for table in list_tables():
                connection.execute(f"delete from snapshot.{table}")  # noqa: S608 - our own name
                rows = connection.table(f"{LAKE}.main.{table}")
                rows.insert_into(f"snapshot.main.{table}")
        with explain_database_errors(f"write {target}"):
            connection.execute("detach snapshot")


def check_snapshot(path: Path) -> None:
    """Run the quick integrity checks on a database file, and see that every view can be read.

    Raises:
        CheckFailed: names the check or the view, and the first offending row.
    """
    for finding in check_database(path):
        raise CheckFailed(
            f"not published: check {finding.check} found {finding.first}; the former snapshot "
            f"stays. {finding.meaning} {finding.remedy}"
        )
