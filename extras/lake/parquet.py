"""A copy of the snapshot as Parquet files, for engines that do not read DuckDB's files.

    <place>/publication.json                  names the files of the latest copy
    <place>/<digest>/<schema>/<name>.parquet  one file a table or view

The folder of the former copy stays until the next copy, for readers that are reading it.
"""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
from pydantic import AwareDatetime, BaseModel, ValidationError

from core import progress
from core.errors import StorageError, UsageError
from core.storage.store import Store
from extras.lake.copying import Snapshot, list_copied, opened_to_copy
from warehouse.database.statements import explain_database_errors

FILE = "publication.json"
_COPY = re.compile("[0-9a-f]{16}")  # the folder of a copy


class Table(BaseModel):
    """One Parquet file of a copy."""

    path: str  # relative to the place
    num_rows: int


class Publication(BaseModel):
    """The latest copy at a place; without a snapshot, the first copy is not complete yet."""

    data_root: str
    snapshot: str | None = None  # SHA-256 of warehouse.duckdb
    published_at: AwareDatetime | None = None
    tables: dict[str, Table] = {}  # by name, such as main.monthly_loss


def copy_to_parquet(snapshot: Snapshot, place: str) -> bool:
    """Write a snapshot's tables and views as Parquet; return False if they are there already.

    Files that a killed copy of the same snapshot has written are used.

    Raises:
        UsageError: the place holds something that is no copy of this data root.
        WarehouseError, StorageError: a file cannot be written; the former copy stays.
    """
    store = Store(_absolute(place), snapshot.scratch)
    former = _claim(store, snapshot)
    if former.snapshot == snapshot.digest:
        return False
    folder = _folder(snapshot.digest)
    tables: dict[str, Table] = {}
    with opened_to_copy(snapshot) as connection:
        relations = list_copied(connection)
        for number, (schema, name) in enumerate(relations, start=1):
            path = f"{folder}/{schema}/{name}.parquet"
            num_rows = _write(store, connection, f'"{schema}"."{name}"', path)
            tables[f"{schema}.{name}"] = Table(path=path, num_rows=num_rows)
            progress.report(f"publish to {store.url('')}", number, len(relations))
    _require_all(store, folder, tables)
    now = dt.datetime.now(dt.UTC)
    latest = Publication(
        data_root=snapshot.home, snapshot=snapshot.digest, published_at=now, tables=tables
    )
    store.write_bytes(FILE, latest.model_dump_json(indent=2).encode())
    _delete_older(store, former, latest)
    return True


def read_publication(store: Store) -> Publication | None:
    """Return the latest copy at a place, or None if there is none.

    Raises:
        UsageError: the file that names the copy is damaged.
    """
    if not store.exists(FILE):
        return None
    try:
        return Publication.model_validate_json(store.read_bytes(FILE))
    except ValidationError as error:
        raise UsageError(
            f"{store.url(FILE)} does not describe a copy of a snapshot; publish to another place"
        ) from error


def _absolute(place: str) -> str:
    if "://" in place:
        return place
    return str(Path(place).expanduser().absolute())


def _folder(digest: str) -> str:
    return digest[:16]


def _claim(store: Store, snapshot: Snapshot) -> Publication:
    """Return the copy at a place; mark an empty place as one of this data root."""
    found = read_publication(store)
    if found is None:
        if store.list("*") or store.list("**/*"):  # an object store has no folders
            raise UsageError(
                f"{store.url('')} has files, but no {FILE}: it is no copy of a snapshot. "
                "Nothing was written; publish to an empty or new folder"
            )
        found = Publication(data_root=snapshot.home)
        store.write_bytes(FILE, found.model_dump_json(indent=2).encode())
    if found.data_root != snapshot.home:
        raise UsageError(
            f"{store.url('')} is a copy of the data root {found.data_root}, not of "
            f"{snapshot.home}. Nothing was written; publish to another folder. If the data root "
            f"was moved, change data_root in {FILE}"
        )
    return found


def _write(store: Store, connection: duckdb.DuckDBPyConnection, relation: str, path: str) -> int:
    """Write one file, unless it is there; return the number of its rows."""
    if store.exists(path):
        with store.open(path) as file:
            return int(pq.read_metadata(file).num_rows)
    with store.writing(path) as staged, explain_database_errors(f"write {store.url(path)}"):
        target = str(staged.path).replace("'", "''")
        written = connection.execute(
            f"copy (from {relation}) to '{target}' (format parquet, compression zstd)"
        )
        [(num_rows,)] = written.fetchall()
    return int(num_rows)


def _require_all(store: Store, folder: str, tables: dict[str, Table]) -> None:
    """Raise StorageError if a file is gone, which another process has deleted meanwhile."""
    there = set(store.list(f"{folder}/*/*.parquet"))
    for table in tables.values():
        if table.path not in there:
            raise StorageError(
                f"{store.url(table.path)} was deleted by another publication to the same place; "
                "run the same command again"
            )


def _delete_older(store: Store, former: Publication, latest: Publication) -> None:
    """Delete the folders of copies before the former one."""
    kept = {_folder(each.snapshot) for each in (former, latest) if each.snapshot}
    folders = {path.partition("/")[0] for path in store.list("*/*/*.parquet")}
    for folder in folders - kept:
        if _COPY.fullmatch(folder):
            store.delete(folder)
