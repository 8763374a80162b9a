"""A small database beside the site, which DuckDB 1.4 and DuckDB-WASM can open.

The snapshot has DuckDB's newest storage format, and its views compute for seconds. This file has
the format of DuckDB 1.4, and the rows of each public view as a table of the same name.
"""

from __future__ import annotations

import contextlib
import tempfile

import duckdb

from core.errors import WarehouseError
from core.settings import Settings
from core.storage.store import Store
from core.storage.temporary import prefix_of_mine
from reports.exports.figures import exported_views
from reports.site.build import MEMORY, SMALL_DATABASE
from warehouse.database.schema import qualify
from warehouse.database.statements import OFFLINE, Config, quoted
from warehouse.read.query import local_snapshot

STORAGE = "v1.4.0"
_TABLES = ("start_here", "dictionary", "models", "sources", "protocols")


def _config(spill: str) -> Config:
    # Without a folder of its own, DuckDB would write to .tmp of the current directory.
    return {**OFFLINE, "memory_limit": MEMORY, "temp_directory": spill}


def write_small_database(settings: Settings) -> str:
    """Write ``site.duckdb`` beside the site; return its URL.

    Raises:
        UsageError: there is no snapshot.
        WarehouseError: the snapshot lacks a view; publish it again.
    """
    store = Store(settings.home, settings.scratch)
    mine = prefix_of_mine("small")
    with (
        local_snapshot(settings) as snapshot,
        store.writing(SMALL_DATABASE) as staged,
        tempfile.TemporaryDirectory(prefix=mine, dir=staged.path.parent) as spill,
        contextlib.closing(duckdb.connect(config=_config(spill))) as connection,
    ):
        staged.path.unlink()  # DuckDB does not open an empty file
        connection.execute(f"attach {quoted(str(snapshot))} as published (read_only)")
        small = f"attach {quoted(str(staged.path))} as small (storage_version '{STORAGE}')"
        connection.execute(small)
        try:
            for name in (*_TABLES, *exported_views()):
                copy = f"create table small.{name} as from published.{qualify(name)}"
                connection.execute(copy)
        except duckdb.Error as error:
            raise WarehouseError(f"cannot copy {name}: {error}; publish it again") from error
        connection.execute("detach small")
    return store.url(SMALL_DATABASE)
