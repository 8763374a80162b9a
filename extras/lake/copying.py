"""A snapshot that nothing replaces, for copies, and the list of tables that a copy has."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from core.settings import Settings
from core.storage.store import explain_disk_errors, sha256_of_file
from warehouse.database.schema import SNAPSHOT
from warehouse.database.statements import OFFLINE, explain_database_errors
from warehouse.read.query import local_snapshot

_NOT_COPIED = ("internal", "materialised", "old")


@dataclass(frozen=True)
class Snapshot:
    """A published snapshot as a local file that nothing replaces."""

    path: Path
    digest: str  # SHA-256 of the file
    home: str  # the data root that it was published from
    scratch: Path  # a folder for temporary files


@contextlib.contextmanager
def frozen_snapshot(settings: Settings) -> Iterator[Snapshot]:
    """Yield the snapshot under a second name, so that a later publication does not replace it."""
    with local_snapshot(settings) as published, explain_disk_errors(str(settings.scratch)):
        settings.scratch.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="publish-", dir=settings.scratch) as folder:
            path = Path(folder) / SNAPSHOT
            try:
                os.link(published, path)
            except OSError:  # another file system, or one without links
                shutil.copyfile(published, path)
            yield Snapshot(path, sha256_of_file(path), settings.home, Path(folder))


@contextlib.contextmanager
def opened_to_copy(snapshot: Snapshot) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield a connection with the snapshot as its current database; it may write other files."""
    config = {**OFFLINE, "temp_directory": str(snapshot.scratch / "duckdb-temporary")}
    with contextlib.closing(duckdb.connect(config=config)) as connection:
        with explain_database_errors(f"open {snapshot.path}"):
            path = str(snapshot.path).replace("'", "''")
            connection.execute(f"attach '{path}' as snapshot (read_only)")
            connection.execute("use snapshot")
        yield connection


def list_copied(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, str]]:
    """Return schema and name of the tables and views that a copy has, sorted.

    A copy has the rows of views, not their SQL. It lacks table macros, which need arguments.
    """
    schemas = ", ".join(f"'{schema}'" for schema in _NOT_COPIED)
    found = connection.execute(
        "select table_schema, table_name from information_schema.tables "  # noqa: S608 - constants
        f"where table_catalog = 'snapshot' and table_schema not in ({schemas}) order by all"
    )
    return [(str(schema), str(name)) for schema, name in found.fetchall()]
