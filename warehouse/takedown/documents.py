"""Takedown of documents in the warehouse's database and in releases.

In a database, a takedown deletes the documents' rows and recomputes the sums of the cells. Then it
rewrites the database file, because deleted rows stay in the file until they are overwritten.

Only a takedown changes a release. It replaces whole files, and the file of checksums last. A marker
file (MARK) in the release lets a later run complete a killed takedown.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from core.corpus.partition import Partition, partition_of, read_manifest
from core.corpus.tombstones import Tombstone
from core.json import JsonObject
from core.settings import Settings
from core.storage.store import Store, explain_disk_errors, replace_durably, sha256_of_file
from warehouse.database.schema import SNAPSHOT, find_schema, list_tables, qualify, read_sql
from warehouse.database.statements import OFFLINE, Statements, explain_database_errors, quoted
from warehouse.database.writer import (
    connect_file,
    connected,
    explained_writer,
    locked,
    transaction,
    writer_path,
)
from warehouse.land.landed import naive_utc
from warehouse.land.losses import Warehouse
from warehouse.read.citation import CFF, ZENODO
from warehouse.read.publish import write_estimates
from warehouse.read.release import FOLDER, SUMS

_SCHEMA = pa.schema([("document_id", pa.string()), ("forgotten_at", pa.timestamp("us"))])
_QUESTION_KEYS = pa.schema([("source", pa.string()), ("question_id", pa.string())])
Questions = Collection[tuple[str, str]]  # source and id of each
_DUPLICATES = ("source", "month", "document_id", "duplicate_of_document_id")
LEFTOVER = ".tmp-forgetting-"  # prefix of folders with copies of databases
MARK = "FORGETTING"
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
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
            num = forget_rows(connection, settings, tombstones, questions)
        rewrite(writer_path(settings), settings)
    return num


def forget_rows(
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
    def run(statement: str, key: dict[str, object] | None = None) -> None:
        connection.execute(read_sql("takedown/sql", statement), key)

    partitions = _list_partitions(connection, connection.table(qualify("duplicate_of")))
    for rows in ("losses", "documents", "duplicates", "answers", "questions"):
        run(f"delete_{rows}")
    run("insert_forgotten")
    for source, month in partitions:
        key = {"source": source, "month": month}
        run("update_partition", key)
        for table in _RECORDS:
            text = read_sql("takedown/sql", "drop_empty_records")
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
        schema = find_schema(it, "duplicate_of")
        # Databases with schema version 1 or 2 may lack table ``duplicate_of``.
        none = pa.table({name: pa.array([], pa.string()) for name in _DUPLICATES})
        duplicates = it.table(f"{schema}.duplicate_of") if schema else none
        it.register("documents_to_forget", _as_table(tombstones))
        if _list_partitions(it, duplicates) or _has_reasons(it):
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
    schema = find_schema(connection, "forgotten_documents")
    if schema is None:
        return False
    forgotten = connection.table(f"{schema}.forgotten_documents")
    return "why" in forgotten.columns and bool(forgotten.limit(1).fetchall())


def _list_partitions(
    connection: duckdb.DuckDBPyConnection, duplicates: pa.Table | duckdb.DuckDBPyRelation
) -> list[tuple[object, ...]]:
    with Statements(connection).given(duplicates_to_search=duplicates):
        return connection.execute(read_sql("takedown/sql", "list_partitions")).fetchall()


def rewrite(path: Path, settings: Settings) -> None:
    """Rewrite a database file, so that the file no longer contains deleted rows.

    Raises:
        DiskFull: there is no space for a second copy; the file stays unchanged.
    """
    with _copying_in(path.parent) as folder:
        new = folder / path.name
        connect_file(new, settings).close()
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
    with explain_disk_errors(str(folder)):
        folder.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(prefix=LEFTOVER, dir=folder, ignore_cleanup_errors=True)
    with made as name:
        yield Path(name)


def forget_in_releases(
    settings: Settings,
    tombstones: Sequence[Tombstone],
    partitions: Collection[Partition],
    questions: Questions = (),
) -> list[str]:
    """Delete documents from all releases; return the folders of the changed releases.

    The rewritten databases get the present schema version. The files of corpus and losses must be
    without the documents already; ``partitions`` are the partitions that had contained them.

    Raises:
        StorageError: a file cannot be read or written; run the same command again.
    """
    store = Store(settings.home, settings.scratch)
    rewritten = []
    with locked(settings):
        for path in store.list(f"{FOLDER}/*/{SUMS}"):
            folder = path.rpartition("/")[0]
            if _forget_in(folder, store, settings, tombstones, partitions, questions):
                rewritten.append(folder)
    return rewritten


def _forget_in(
    folder: str,
    store: Store,
    settings: Settings,
    tombstones: Sequence[Tombstone],
    partitions: Collection[Partition],
    questions: Questions,
) -> bool:
    with _copying_in(settings.scratch) as scratch:
        database = scratch / SNAPSHOT
        store.fetch(f"{folder}/{SNAPSHOT}", database)
        if not has_rows(database, tombstones, questions) and not store.exists(f"{folder}/{MARK}"):
            return False
        store.write_bytes(f"{folder}/{MARK}", b"being rewritten by `tidemark corpus forget`\n")
        with contextlib.closing(connect_file(database, settings)) as connection:
            forget_rows(connection, settings, tombstones, questions)
        rewrite(database, settings)
        with contextlib.closing(connect_file(database, settings)) as connection:
            write_estimates(connection)
        _replace(folder, store, database)
    _rewrite_lines(store, f"{folder}/cells.jsonl", lambda row: _cell(store, row, partitions))
    lines = f"{folder}/partitions.jsonl"
    _rewrite_lines(store, lines, lambda row: _partition(store, row, partitions))
    sums = store.read_bytes(f"{folder}/{SUMS}").decode().splitlines()
    names = sorted(line.split(maxsplit=1)[1] for line in sums)
    sums = [f"{store.sha256(f'{folder}/{name}')}  {name}\n" for name in names]
    store.write_bytes(f"{folder}/{SUMS}", "".join(sums).encode())
    store.delete(f"{folder}/{MARK}")
    return True


def _replace(folder: str, store: Store, database: Path) -> None:
    """Replace a release's database, and the database's checksum in the files that state it."""
    digest = sha256_of_file(database)
    day = dt.datetime.now(dt.UTC).date()
    note = (
        f"\n## Taken down\n\nOn {day} documents were taken down, and their rows with them; the "
        "checksum of the database is another since. Table `internal.forgotten_documents` names "
        "them.\n"
    )
    for name in ("README.md", CFF, ZENODO):
        if name == ZENODO and not store.exists(f"{folder}/{name}"):  # a release before 0.3
            continue
        text = store.read_bytes(f"{folder}/{name}").decode()
        text = _DIGEST.sub(digest, text)  # replace the database's checksum
        if name == "README.md" and note not in text:
            text += note
        store.write_bytes(f"{folder}/{name}", text.encode())
    with store.writing(f"{folder}/{SNAPSHOT}") as staged:
        shutil.copyfile(database, staged.path)


def _rewrite_lines(
    store: Store, path: str, change: Callable[[JsonObject], JsonObject | None]
) -> None:
    rows = [change(json.loads(line)) for line in store.read_bytes(path).decode().splitlines()]
    lines = [f"{json.dumps(row, sort_keys=True)}\n" for row in rows if row is not None]
    store.write_bytes(path, "".join(lines).encode())


def _cell(store: Store, row: JsonObject, partitions: Collection[Partition]) -> JsonObject | None:
    """Return a line of cells.jsonl with the new checksum, or None if no losses remain."""
    path = row["losses"]
    if partition_of(path.partition("/")[2]) not in partitions:
        return row
    return {**row, "sha256": store.sha256(path)} if store.exists(path) else None


def _partition(store: Store, row: JsonObject, partitions: Collection[Partition]) -> JsonObject:
    partition = partition_of(row["path"])
    if partition not in partitions or not store.exists(row["path"]):
        return row
    return {**row, "manifest": read_manifest(store, partition, row["path"]).manifest}
