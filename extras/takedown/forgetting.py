"""`tidemark corpus forget`: delete documents from corpus, losses, questions, warehouse, releases.

Tombstones (records of deleted documents) are written first: they block new copies, and tell a
repeated run what to delete. Cached responses are deleted before the documents, because the
documents contain the URLs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

from core.corpus.lookup import FoundDocument, find_documents
from core.corpus.partition import Partition, partition_of
from core.corpus.sealing import require_manifest
from core.corpus.tombstones import Tombstone, list_tombstones, read_tombstones, write_tombstone
from core.errors import UsageError
from core.plugins import import_parts
from core.settings import Settings
from core.storage.store import Store
from extras.takedown.fetched import Origin, forget_fetched
from extras.takedown.questions import forget_questions
from extras.takedown.rows import forget_in_copy, forget_in_warehouse
from extras.takedown.texts import (
    clear_remains,
    forget_in_sidecars,
    forget_losses,
    forget_pages,
    forget_texts,
)
from warehouse.database.repair import require_known_databases
from warehouse.read.publish import publish
from warehouse.read.released import FOLDER, list_releases

_KEY = re.compile(r"(item-)?[0-9a-f]{32}")


@dataclass(frozen=True)
class Forgotten:
    """The result of a takedown."""

    document_ids: tuple[str, ...]  # ids of all documents of the keys, even if deleted before
    num_versions: int  # number of rewritten versions of partitions
    num_fetched: int  # number of deleted responses and repository mirrors
    releases: tuple[str, ...]  # folders of the rewritten releases


def forget(settings: Settings, keys: Collection[str], why: str) -> Forgotten:
    """Delete documents everywhere, and write tombstones. After a kill, repeat the call.

    Keys are ids of documents, or ``item_key`` values, which denote all versions of an item. Without
    keys, delete all documents that have tombstones, for example after a restored backup.

    Raises:
        UsageError: a key is malformed; there are releases, and no extra that can change them.
        StorageError: a file is damaged; the message states the remedy.
        NewerVersion: a later version wrote the warehouse here; nothing was deleted.
    """
    require_known_databases(settings)
    for key in keys:
        if _KEY.fullmatch(key) is None:
            raise UsageError(
                f"{key!r} is no document id (32 hexadecimal digits, column document_id); a "
                "site's own id is given as --native-id SOURCE:ID"
            )
    store = Store(settings.home, settings.scratch)
    if list_releases(store) and not import_parts("takedown"):
        raise UsageError(
            f"the releases in {store.url(FOLDER)} may have rows of the documents; to take them out "
            "needs the extra releases: put it back, or move that folder away"
        )
    for folder in ("month=*", "month=*/version=*"):
        for path in store.list(f"corpus/source=*/{folder}"):
            require_manifest(store, path)
    wanted = frozenset(keys) or list_tombstones(store)
    found = find_documents(store, wanted)
    stones = _leave_tombstones(store, found, wanted, why)
    ids = {stone.key for stone in stones}
    partitions = _partitions_of(store, stones)
    origins = [Origin(each.url, each.native_id, each.seal) for each in found]
    num_fetched = forget_fetched(settings, origins)
    forget_texts(store, found)
    forget_in_sidecars(store, {partition.source for partition in partitions}, ids)
    clear_remains(store)
    forget_losses(store, partitions, ids)
    forget_pages(store, ids)
    questions = forget_questions(store, ids)
    forget_in_warehouse(settings, stones, questions)
    publish(settings, may_shrink=True)
    forget_in = partial(forget_in_copy, settings, stones, questions)
    releases: list[str] = []
    for part in import_parts("takedown"):
        releases += part.forget_in_releases(settings, partitions, forget_in)
    folders = {each.seal.folder for each in found}
    return Forgotten(tuple(sorted(ids)), len(folders), num_fetched, tuple(releases))


def _leave_tombstones(
    store: Store, found: Sequence[FoundDocument], wanted: Collection[str], why: str
) -> list[Tombstone]:
    """Write tombstones for keys and for documents of items; return the documents' tombstones."""
    places: dict[str, set[str]] = {key: set() for key in wanted}
    items: dict[str, str] = {}
    for each in found:
        items[each.document_id] = each.item
        for key in {each.document_id, *({each.item} & places.keys())}:
            places.setdefault(key, set()).add(each.seal.partition.path)
    for key, folders in places.items():
        write_tombstone(store, key, why, items.get(key), tuple(folders))
    stones = (stone for stone in read_tombstones(store) if stone.is_document)
    # The result includes documents that a killed run has already deleted from the corpus.
    return [stone for stone in stones if stone.key in places or stone.item in wanted]


def _partitions_of(store: Store, stones: Sequence[Tombstone]) -> set[Partition]:
    """Return the documents' partitions; if a partition is unknown, add all that have losses."""
    paths = {path for stone in stones for path in stone.partitions}
    if not all(stone.partitions for stone in stones):
        found = store.list("losses/model=*/source=*/month=*")
        paths |= {path.partition("/")[2] for path in found}
    return {partition_of(path) for path in paths}
