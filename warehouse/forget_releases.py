"""Takedown in releases: a release never changes, but for this.

Each file is replaced whole, the checksums last. A mark says that a release is being rewritten, so
that a run that was killed goes on where it was: without it, a release that disagrees with its
checksums is left as it is.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

from core.corpus import Partition, partition_of, read_manifest
from core.settings import Settings
from core.storage import Store, explain_disk_errors, sha256_of_file
from core.tombstones import Tombstone
from warehouse.forget import LEFTOVER, forget_rows, has_rows, write_anew
from warehouse.publish import SNAPSHOT
from warehouse.release import FOLDER, SUMS
from warehouse.writer import connect_file, locked

MARK = "FORGETTING"
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def forget_in_releases(
    settings: Settings, tombstones: Sequence[Tombstone], partitions: Collection[Partition]
) -> list[str]:
    """Rewrite the releases of the data root that have rows of documents; return their folders.

    Their databases are brought to the present definitions on the way.

    Args:
        settings: the data root, whose corpus and losses have forgotten already.
        tombstones: of the documents.
        partitions: that they were in.

    Raises:
        StorageError: a file cannot be read or written; run the same again.
    """
    store = Store(settings.home, settings.scratch)
    rewritten = []
    with locked(settings):
        for path in store.list(f"{FOLDER}/*/{SUMS}"):
            folder = path.rpartition("/")[0]
            if _forget_in(folder, store, settings, tombstones, partitions):
                rewritten.append(folder)
    return rewritten


def _forget_in(
    folder: str,
    store: Store,
    settings: Settings,
    tombstones: Sequence[Tombstone],
    partitions: Collection[Partition],
) -> bool:
    with explain_disk_errors(str(settings.scratch)):
        settings.scratch.mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(prefix=LEFTOVER, dir=settings.scratch)
    with scratch as name:
        database = Path(name) / SNAPSHOT
        with store.open(f"{folder}/{SNAPSHOT}") as file, database.open("wb") as copy:
            shutil.copyfileobj(file, copy)
        if not has_rows(database, tombstones) and not store.exists(f"{folder}/{MARK}"):
            return False
        store.write_bytes(f"{folder}/{MARK}", b"being rewritten by `tidemark corpus forget`\n")
        connection = connect_file(database, settings)
        try:
            forget_rows(connection, settings, tombstones)
        finally:
            connection.close()
        write_anew(database, settings)
        _replace(folder, store, database)
    _rewrite_lines(store, f"{folder}/cells.jsonl", lambda row: _cell(store, row, partitions))
    _rewrite_lines(
        store, f"{folder}/partitions.jsonl", lambda row: _partition(store, row, partitions)
    )
    _write_sums(folder, store)
    store.delete(f"{folder}/{MARK}")
    return True


def _replace(folder: str, store: Store, database: Path) -> None:
    """Put the new database in its place; texts that name its checksum name the new one."""
    digest = sha256_of_file(database)
    day = dt.datetime.now(dt.UTC).date()
    note = (
        f"\n## Taken down\n\nOn {day} documents were taken down, and their rows with them; the "
        "checksum of the database is another since. Table `forgotten_documents` names them.\n"
    )
    for name in ("README.md", "CITATION.cff"):
        text = store.read_bytes(f"{folder}/{name}").decode()
        text = _DIGEST.sub(digest, text)  # of a database: they have no other
        if name == "README.md" and note not in text:
            text += note
        store.write_bytes(f"{folder}/{name}", text.encode())
    with store.writing(f"{folder}/{SNAPSHOT}") as staged:
        shutil.copyfile(database, staged.path)


def _read_sums(folder: str, store: Store) -> dict[str, str]:
    lines = store.read_bytes(f"{folder}/{SUMS}").decode().splitlines()
    pairs = (line.split(maxsplit=1) for line in lines)
    return {name: digest for digest, name in pairs}


def _write_sums(folder: str, store: Store) -> None:
    names = sorted(_read_sums(folder, store))
    lines = [f"{store.sha256(f'{folder}/{name}')}  {name}\n" for name in names]
    store.write_bytes(f"{folder}/{SUMS}", "".join(lines).encode())


def _rewrite_lines(
    store: Store, path: str, change: Callable[[dict[str, Any]], dict[str, Any] | None]
) -> None:
    rows = [change(json.loads(line)) for line in store.read_bytes(path).decode().splitlines()]
    lines = [f"{json.dumps(row, sort_keys=True)}\n" for row in rows if row is not None]
    store.write_bytes(path, "".join(lines).encode())


def _cell(
    store: Store, row: dict[str, Any], partitions: Collection[Partition]
) -> dict[str, Any] | None:
    """A cell's line with the checksum of its losses now; None where nothing of it is left."""
    path = row["losses"]
    if partition_of(path.partition("/")[2]) not in partitions:
        return row
    return {**row, "sha256": store.sha256(path)} if store.exists(path) else None


def _partition(
    store: Store, row: dict[str, Any], partitions: Collection[Partition]
) -> dict[str, Any]:
    partition = partition_of(row["path"])
    if partition not in partitions or not store.exists(row["path"]):
        return row
    return {**row, "manifest": read_manifest(store, partition, row["path"]).manifest}
