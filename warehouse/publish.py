"""Publishing: a checked snapshot of the writer's database takes the former one's place at once.

Analysts open ``<home>/warehouse.duckdb`` read-only whenever they like. The file under that name is
never written to: a new one is renamed over it, and who has the old one open keeps reading that.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb

from core.errors import CheckFailed
from core.settings import Settings
from core.storage import Store
from warehouse.schema import list_checks, list_leaf_views, read_sql
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
    """Run the integrity checks on a database file, and see that every view can be read.

    Raises:
        CheckFailed: names the check or the view, and the first offending row.
    """
    with explain_database_errors(f"check {path}"):
        connection = duckdb.connect(str(path), read_only=True)
        try:
            for check in list_checks():
                _run_check(connection, check)
            for view, file in list_leaf_views().items():
                _bind_view(connection, view, file)
        finally:
            connection.close()


def _run_check(connection: duckdb.DuckDBPyConnection, check: str) -> None:
    row = connection.execute(read_sql("checks", check)).fetchone()
    if row is not None:
        names = [column[0] for column in connection.description or []]
        shown = ", ".join(f"{name}={value}" for name, value in zip(names, row, strict=True))
        raise CheckFailed(
            f"not published: check {check} found {shown}; the former snapshot stays. "
            "Delete the writer's database (work/writer.duckdb) and run `tidemark score` again "
            "(what is scored only lands); land files from elsewhere again, too"
        )


def _bind_view(connection: duckdb.DuckDBPyConnection, view: str, file: Path) -> None:
    # Names are those of our own files.
    try:
        connection.table(view).limit(0).fetchall()
    except duckdb.Error as error:
        raise CheckFailed(f"not published: {file.name} cannot be read: {error}") from error
