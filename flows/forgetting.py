"""`tidemark corpus forget`: a takedown, in all places, one after the other.

Tombstones first: they keep out what is forgotten, and say what is to go to a run that takes up
where another was killed. What was fetched goes before the corpus, which says where it came from.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from core.corpus import Partition, partition_of
from core.errors import UsageError
from core.forgetting import (
    FoundDocument,
    clear_remains,
    find_documents,
    forget_in_sidecars,
    forget_losses,
    forget_texts,
)
from core.settings import Settings
from core.storage import Store
from core.tombstones import Tombstone, list_tombstones, read_tombstones, write_tombstone
from crawlers.forget_fetched import Origin, forget_fetched
from warehouse.forget import forget_in_warehouse
from warehouse.forget_releases import forget_in_releases
from warehouse.publish import publish

_KEY = re.compile(r"(item-)?[0-9a-f]{32}")


@dataclass(frozen=True)
class Forgotten:
    """What a takedown found and removed.

    Attributes:
        document_ids: of all that is forgotten now, found or not.
        num_versions: of partitions that were rewritten.
        num_fetched: answers of sites, and mirrors of repositories, that were deleted.
        releases: folders of the releases that were rewritten.
    """

    document_ids: tuple[str, ...]
    num_versions: int
    num_fetched: int
    releases: tuple[str, ...]


def forget(settings: Settings, keys: Collection[str], why: str) -> Forgotten:
    """Remove documents everywhere, and leave tombstones. Killed, it is simply run again.

    Args:
        settings: the data root, the scratch folder and the warehouse.
        keys: ids of single documents, and ``item_key`` of items, to be forgotten in all their
            versions. Without any, everything that has a tombstone is removed again, as after a
            backup was brought back.
        why: goes into the tombstones.

    Raises:
        UsageError: an id is none.
        StorageError: something damaged is in the way; the message says what to do.
    """
    for key in keys:
        if _KEY.fullmatch(key) is None:
            raise UsageError(
                f"{key!r} is no document id (32 hexadecimal digits, column document_id); a "
                "site's own id is given as --native-id SOURCE:ID"
            )
    store = Store(settings.home, settings.scratch)
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
    forget_in_warehouse(settings, stones)
    publish(settings)
    releases = forget_in_releases(settings, stones, partitions)
    folders = {each.seal.folder for each in found}
    return Forgotten(tuple(sorted(ids)), len(folders), num_fetched, tuple(releases))


def _leave_tombstones(
    store: Store, found: Sequence[FoundDocument], wanted: Collection[str], why: str
) -> list[Tombstone]:
    """Write a tombstone for each key, and each document of an item; return those of documents."""
    places: dict[str, set[str]] = {key: set() for key in wanted}
    items: dict[str, str] = {}
    for each in found:
        items[each.document_id] = each.item
        for key in {each.document_id, *({each.item} & places.keys())}:
            places.setdefault(key, set()).add(each.seal.partition.path)
    for key, folders in places.items():
        write_tombstone(store, key, why, items.get(key), tuple(folders))
    stones = (stone for stone in read_tombstones(store) if stone.is_document)
    # Also those of an item that another run has removed from the corpus, before it was killed.
    return [stone for stone in stones if stone.key in places or stone.item in wanted]


def _partitions_of(store: Store, stones: Sequence[Tombstone]) -> set[Partition]:
    """Where documents are or have been; if that is not known of one, wherever there are losses."""
    paths = {path for stone in stones for path in stone.partitions}
    if not all(stone.partitions for stone in stones):
        found = store.list("losses/model=*/source=*/month=*")
        paths |= {path.partition("/")[2] for path in found}
    return {partition_of(path) for path in paths}
