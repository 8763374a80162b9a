"""Takedown of documents in releases.

Only a takedown changes a release. It replaces whole files, and the file of checksums last. A marker
file (MARK) in the release lets a later run complete a killed takedown.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from core.corpus.partition import Partition, partition_of, read_manifest
from core.json import JsonObject
from core.settings import Settings
from core.storage.store import Store, sha256_of_file
from extras.releases.citation import CFF, ZENODO
from warehouse.database.schema import SNAPSHOT
from warehouse.database.writer import locked
from warehouse.read.released import FOLDER, SUMS, list_releases

MARK = "FORGETTING"
COPIES = ".tmp-forgetting-"  # prefix of folders with copies; a takedown deletes those that stay
# Deletes documents from a database; its second argument tells if a takedown of it was killed.
ForgetIn = Callable[[Path, bool], bool]
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def forget_in_releases(
    settings: Settings, partitions: Collection[Partition], forget_in: ForgetIn
) -> list[str]:
    """Delete documents from all releases; return the folders of the changed releases.

    The rewritten databases get the present schema version. The files of corpus and losses must be
    without the documents already; ``partitions`` are the partitions that had contained them.
    ``forget_in`` returns False if a database has no row of the documents.

    Raises:
        StorageError: a file cannot be read or written; run the same command again.
    """
    store = Store(settings.home, settings.scratch)
    rewritten = []
    with locked(settings):
        for name in list_releases(store):
            folder = f"{FOLDER}/{name}"
            if _forget_in(folder, store, settings, partitions, forget_in):
                rewritten.append(folder)
    return rewritten


def _forget_in(
    folder: str,
    store: Store,
    settings: Settings,
    partitions: Collection[Partition],
    forget_in: ForgetIn,
) -> bool:
    """Remove what was taken down from a release; return False if nothing of it is there."""
    mark = f"{folder}/{MARK}"
    with tempfile.TemporaryDirectory(
        prefix=COPIES, dir=settings.scratch, ignore_cleanup_errors=True
    ) as name:
        database = Path(name) / SNAPSHOT
        store.fetch(f"{folder}/{SNAPSHOT}", database)
        if not forget_in(database, store.exists(mark)):
            return False
        store.write_bytes(mark, b"being rewritten by `tidemark corpus forget` (extra `takedown`)\n")
        _replace(folder, store, database)
    _rewrite_lines(store, f"{folder}/cells.jsonl", lambda row: _cell(store, row, partitions))
    lines = f"{folder}/partitions.jsonl"
    _rewrite_lines(store, lines, lambda row: _partition(store, row, partitions))
    sums = store.read_bytes(f"{folder}/{SUMS}").decode().splitlines()
    names = sorted(line.split(maxsplit=1)[1] for line in sums)
    sums = [f"{store.sha256(f'{folder}/{name}')}  {name}\n" for name in names]
    store.write_bytes(f"{folder}/{SUMS}", "".join(sums).encode())
    store.delete(mark)
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
    """Change each line of a file of JSON lines; None deletes the line."""
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
