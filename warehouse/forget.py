"""Takedown in a database: rows of documents go, and what was summed over them is summed anew.

What a database file has deleted stays legible in it until the space is used again, so the file is
written anew afterwards.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from core.settings import Settings
from core.storage import Store, explain_disk_errors, replace_durably
from core.tombstones import Tombstone
from warehouse.database_errors import explain_database_errors
from warehouse.extensions import quoted
from warehouse.lake import LAKE, is_lake
from warehouse.land import Warehouse
from warehouse.schema import list_tables, read_sql
from warehouse.turns import Turns
from warehouse.writer import (
    commit,
    connect_file,
    connected,
    locked,
    transaction,
    writer_path,
)

_SCHEMA = pa.schema(
    [
        ("document_id", pa.string()),
        ("forgotten_at", pa.timestamp("us")),
        ("why", pa.string()),
    ]
)
LEFTOVER = ".tmp-forgetting-"  # begins the names of folders with copies of databases
_RECORDS = ("landed_cells", "cell_replicates", "cell_costs", "cell_milestones")


def forget_in_warehouse(settings: Settings, tombstones: Sequence[Tombstone]) -> int:
    """Forget documents in the writer's database, or in the lake, and record that.

    Returns:
        How many partitions had rows of them.

    Raises:
        WarehouseError: the database refused it; nothing has changed.
    """
    if settings.warehouse is not None:
        with locked(settings), connected(settings) as lake:
            num = forget_rows(lake, settings, tombstones)
            _expire_lake(lake)
        return num
    with locked(settings):
        for leftover in settings.scratch.glob(f"{LEFTOVER}*"):  # of a takedown that was killed
            shutil.rmtree(leftover, ignore_errors=True)
        with connected(settings) as connection:
            num = forget_rows(connection, settings, tombstones)
        write_anew(writer_path(settings), settings)
    return num


def forget_rows(
    connection: duckdb.DuckDBPyConnection, settings: Settings, tombstones: Sequence[Tombstone]
) -> int:
    """Forget documents on a connection; return how many partitions had rows of them."""
    warehouse = Warehouse(connection, Store(settings.home), Turns(None))
    connection.register("documents_to_forget", _as_table(tombstones))
    try:
        return commit(connection, "forget documents", lambda: _forget(connection, warehouse))
    finally:
        connection.unregister("documents_to_forget")


def _as_table(tombstones: Sequence[Tombstone]) -> pa.Table:
    rows = [
        {
            "document_id": stone.key,
            "forgotten_at": stone.forgotten_at.astimezone(dt.UTC).replace(tzinfo=None),
            "why": stone.why,
        }
        for stone in tombstones
        if stone.is_document
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _forget(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse) -> int:
    def run(statement: str, key: dict[str, object] | None = None) -> list[tuple[object, ...]]:
        return connection.execute(read_sql("forgetting", statement), key).fetchall()

    partitions = run("list_partitions")
    for statement in (
        "delete_losses",
        "delete_documents",
        "delete_duplicates",
        "insert_forgotten",
    ):
        run(statement)
    for source, month in partitions:
        key = {"source": source, "month": month}
        run("update_partition", key)
        for table in _RECORDS:
            run(f"drop_empty_{table}", key)
        warehouse.sum_anew(key)
    return len(partitions)


def has_rows(path: Path, tombstones: Sequence[Tombstone]) -> bool:
    """Whether a database file has documents or losses of what is to be forgotten."""
    with explain_database_errors(f"read {path}"), duckdb.connect(str(path), read_only=True) as it:
        has_duplicates = it.execute(read_sql("forgetting", "count_duplicate_tables")).fetchall()
        if has_duplicates == [(0,)]:  # of a former version: the statement names the table
            it.execute(read_sql("forgetting", "stand_in_duplicates"))
        it.register("documents_to_forget", _as_table(tombstones))
        return bool(it.execute(read_sql("forgetting", "list_partitions")).fetchall())


def write_anew(path: Path, settings: Settings) -> None:
    """Write a database file anew, without what was deleted in it.

    Raises:
        DiskFull: no space for a second copy; the file stays as it is.
    """
    with _beside(path) as new:
        new.unlink()
        connect_file(new, settings).close()
        with explain_database_errors(f"write {path} anew"):
            connection = duckdb.connect(str(new))
            try:
                connection.execute(f"attach {quoted(str(path))} as former (read_only)")
                with transaction(connection, f"write {path} anew"):
                    for table in list_tables():
                        connection.execute(f"delete from {table}")  # noqa: S608 - our own name
                        text = f"insert into {table} by name from former.main.{table}"
                        connection.execute(text)
                connection.execute("detach former")
                connection.execute("checkpoint")
            finally:
                connection.close()
        with explain_disk_errors(str(path)):
            replace_durably(new, path)
            Path(f"{path}.wal").unlink(missing_ok=True)


@contextlib.contextmanager
def _beside(path: Path) -> Iterator[Path]:
    with explain_disk_errors(str(path)):
        folder = Path(tempfile.mkdtemp(prefix=LEFTOVER, dir=path.parent))
    try:
        new = folder / path.name
        new.touch()
        yield new
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _expire_lake(connection: duckdb.DuckDBPyConnection) -> None:
    """Have the lake forget its former versions, and rewrite the files with deleted rows."""
    assert is_lake(connection)  # noqa: S101 - only called so
    with explain_database_errors("let the lake forget its former versions"):
        for statement in (
            f"call ducklake_rewrite_data_files('{LAKE}', delete_threshold => 0)",
            f"call ducklake_expire_snapshots('{LAKE}', older_than => now())",
            f"call ducklake_cleanup_old_files('{LAKE}', cleanup_all => true)",
        ):
            connection.execute(statement)
