"""Takedown of documents in the warehouse's database.

In a database, a takedown deletes the documents' rows and recomputes the sums of the cells. Then it
rewrites the database file, because deleted rows stay in the file until they are overwritten.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from core.corpus.tombstones import Tombstone
from core.settings import Settings
from core.storage.store import Store, explain_disk_errors, replace_durably
from warehouse.database import writer
from warehouse.database.schema import find_schema, list_tables, qualify, read_statements
from warehouse.database.statements import OFFLINE, Statements, explain_database_errors, quoted
from warehouse.database.writer import (
    connected,
    explained_writer,
    locked,
    transaction,
    writer_path,
)
from warehouse.land.landed import naive_utc
from warehouse.land.losses import Warehouse
from warehouse.read.publish import write_estimates

_SCHEMA = pa.schema([("document_id", pa.string()), ("forgotten_at", pa.timestamp("us"))])
_QUESTION_KEYS = pa.schema([("source", pa.string()), ("question_id", pa.string())])
Questions = Collection[tuple[str, str]]  # source and id of each
LEFTOVER = ".tmp-forgetting-"  # prefix of folders with copies of databases
_RECORDS = (
    "landed_cells", "cell_kinds", "cell_replicates", "cell_costs", "cell_milestones",
    "byte_class_losses",
)  # fmt: skip


def forget_in_warehouse(
    settings: Settings, tombstones: Sequence[Tombstone], questions: Questions = ()
) -> int:
    """Delete documents from the database, and record the deletion.

    ``questions`` are those with texts of the documents; they and the answers to them are deleted.

    Returns:
        Number of partitions with deleted rows.

    Raises:
        WarehouseError: a statement failed; nothing has changed.
    """
    with locked(settings), explained_writer(settings):
        for leftover in settings.scratch.glob(f"{LEFTOVER}*"):  # left by a killed run
            shutil.rmtree(leftover, ignore_errors=True)
        with connected(settings) as connection:
            num = _forget_rows(connection, settings, tombstones, questions)
        _rewrite(writer_path(settings), settings)
    return num


def forget_in_copy(
    settings: Settings,
    tombstones: Sequence[Tombstone],
    questions: Questions,
    path: Path,
    has_begun: bool,
) -> bool:
    """Delete documents from a copy of a published database; return False if it has no row of them.

    With ``has_begun``, the copy is written again in any case: a takedown of it was killed.
    """
    if not has_rows(path, tombstones, questions) and not has_begun:
        return False
    with contextlib.closing(writer.connect_file(path, settings)) as connection:
        _forget_rows(connection, settings, tombstones, questions)
    _rewrite(path, settings)
    with contextlib.closing(writer.connect_file(path, settings)) as connection:
        write_estimates(connection)
    return True


def _forget_rows(
    connection: duckdb.DuckDBPyConnection,
    settings: Settings,
    tombstones: Sequence[Tombstone],
    questions: Questions = (),
) -> int:
    """Delete the rows of documents; return the number of partitions with deleted rows."""
    warehouse = Warehouse(connection, Store(settings.home))
    with (
        Statements(connection).given(
            documents_to_forget=_as_table(tombstones),
            questions_to_forget=_as_keys(questions),
        ),
        transaction(connection, "forget documents"),
    ):
        return _forget(connection, warehouse)


def _as_table(tombstones: Sequence[Tombstone]) -> pa.Table:
    """Return the documents that were taken down as a table."""
    rows = [
        {
            "document_id": stone.key,
            "forgotten_at": naive_utc(stone.forgotten_at),
        }
        for stone in tombstones
        if stone.is_document
    ]
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _as_keys(questions: Questions) -> pa.Table:
    rows = [{"source": source, "question_id": name} for source, name in sorted(questions)]
    return pa.Table.from_pylist(rows, schema=_QUESTION_KEYS)


def _forget(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse) -> int:
    """Delete rows of documents that were taken down, and sum the rest again; count months."""
    run = Statements(connection).run
    partitions = _list_partitions(connection)
    for rows in ("losses", "documents", "answers", "questions"):
        run(f"delete_forgotten_{rows}")
    run("insert_forgotten_documents")
    for source, month in partitions:
        key = {"source": source, "month": month}
        run("recount_partition", key)
        for table in _RECORDS:
            text = read_statements()["drop_empty_records"]
            connection.execute(text.replace("recorded_cells", qualify(table)), key)
        warehouse.sum_again(key)
    return len(partitions)


def has_rows(path: Path, tombstones: Sequence[Tombstone], questions: Questions = ()) -> bool:
    """Return True if a database file has rows of what is to be taken down, or states reasons.

    The file may be of a former version. Those of 2026 stated the reasons of takedowns.
    """
    with (
        explain_database_errors(f"read {path}"),
        duckdb.connect(str(path), read_only=True, config=OFFLINE) as it,
    ):
        it.register("documents_to_forget", _as_table(tombstones))
        if _list_partitions(it) or _has_duplicates(it) or _has_reasons(it):
            return True
        asked = find_schema(it, "forecast_questions")
        if not questions or asked is None:
            return False
        it.register("questions_to_forget", _as_keys(questions))
        found = it.table(f"{asked}.forecast_questions").join(
            it.table("questions_to_forget"), "source, question_id", "semi"
        )
        return bool(found.limit(1).fetchall())


def _has_reasons(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return True if the database still has reasons of takedowns."""
    schema = find_schema(connection, "forgotten_documents")
    if schema is None:
        return False
    forgotten = connection.table(f"{schema}.forgotten_documents")
    return "why" in forgotten.columns and bool(forgotten.limit(1).fetchall())


def _has_duplicates(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return True if table ``duplicate_of``, which former versions had, names a document."""
    schema = find_schema(connection, "duplicate_of")
    if schema is None:
        return False
    pairs = connection.table(f"{schema}.duplicate_of")
    with Statements(connection).given(duplicates_to_search=pairs):
        return bool(Statements(connection).run("find_forgotten_duplicate"))


def _list_partitions(connection: duckdb.DuckDBPyConnection) -> list[tuple[object, ...]]:
    return Statements(connection).run("list_partitions_to_forget")


def _rewrite(path: Path, settings: Settings) -> None:
    """Rewrite a database file, so that the file no longer contains deleted rows.

    Raises:
        DiskFull: there is no space for a second copy; the file stays unchanged.
    """
    with _copying_in(path.parent) as folder:
        new = folder / path.name
        writer.connect_file(new, settings).close()
        with (
            explain_database_errors(f"rewrite {path}"),
            duckdb.connect(str(new), config=OFFLINE) as connection,
        ):
            connection.execute(f"attach {quoted(str(path))} as former (read_only)")
            with transaction(connection, f"rewrite {path}"):
                for table in map(qualify, list_tables()):
                    connection.execute(f"delete from {table}")  # noqa: S608 - a constant name
                    connection.execute(f"insert into {table} by name from former.{table}")
            connection.execute("detach former")
            connection.execute("checkpoint")
        with explain_disk_errors(str(path)):
            replace_durably(new, path)
            Path(f"{path}.wal").unlink(missing_ok=True)


@contextlib.contextmanager
def _copying_in(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder for copies of databases; a later run deletes what stays."""
    with explain_disk_errors(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(prefix=LEFTOVER, dir=folder, ignore_cleanup_errors=True)
    with made as name:
        yield Path(name)
