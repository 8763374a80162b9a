"""Publishing: a checked snapshot of the writer's database takes the former one's place at once.

Analysts open ``<home>/warehouse.duckdb`` read-only whenever they like. The file under that name is
never written to: a new one is renamed over it, and who has the old one open keeps reading that.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from core.errors import CheckFailed
from core.settings import Settings
from core.storage import Store
from warehouse.check import check_database
from warehouse.writer import connected, explain_database_errors, locked, writer_path

SNAPSHOT = "warehouse.duckdb"


def publish(settings: Settings) -> str:
    """Publish what has landed and return the snapshot's address.

    Raises:
        CheckFailed: the snapshot is not sound; the former one stays.
        DiskFull: no space for a second copy; the former one stays.
    """
    store = Store(settings.home)
    with locked(settings):
        with (
            connected(settings) as connection,
            explain_database_errors("write the warehouse's journal into its file"),
        ):
            connection.execute("checkpoint")
        for leftover in store.list(f".tmp-{SNAPSHOT}-*"):  # of a publication that was killed
            store.delete(leftover)
        # Closed: DuckDB's lock on the file would not survive our opening it in this process.
        with store.writing(SNAPSHOT) as staged:
            shutil.copyfile(writer_path(settings), staged.path)
            check_snapshot(staged.path)
    return store.url(SNAPSHOT)


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
