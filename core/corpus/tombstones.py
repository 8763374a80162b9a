"""Tombstones: records of removed documents, which no later crawl or import may restore.

    corpus/forgotten/<document id>.json      one version of an item
    corpus/forgotten/item-<hash>.json        an item, in all versions

The file names are ids or hashes, so they reveal no text, title or URL.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from pathlib import PurePosixPath

from pydantic import AwareDatetime, BaseModel, ConfigDict

from core.corpus.partition import document_id
from core.storage.records import read_record
from core.storage.store import Store

FOLDER = "corpus/forgotten"
_ITEM = "item-"


class Tombstone(BaseModel):
    """The record of the takedown of a document or an item."""

    model_config = ConfigDict(frozen=True)

    key: str  # document id or ``item_key``
    forgotten_at: AwareDatetime  # time of the first takedown (UTC)
    why: str
    item: str | None = None  # ``item_key`` of the document's item, if known
    partitions: tuple[str, ...] = ()  # folders that contained the document or item

    @property
    def is_document(self) -> bool:
        """Return True if the record is of one document, not of all versions of an item."""
        return not self.key.startswith(_ITEM)


def item_key(source: str, native_id: str) -> str:
    """Return the key of an item's tombstone, which contains a hash of source and id."""
    return _ITEM + hashlib.sha256(f"{source}|{native_id}".encode()).hexdigest()[:32]


def list_tombstones(store: Store) -> frozenset[str]:
    """Return the keys of all tombstones: ids of documents, and ``item_key`` values of items."""
    return frozenset(PurePosixPath(path).stem for path in store.list(f"{FOLDER}/*.json"))


def is_forgotten(
    tombstones: frozenset[str], source: str, native_id: str, version_id: str | None
) -> bool:
    """Return True if this version of an item, or the whole item, has a tombstone."""
    if not tombstones:
        return False
    keys = {document_id(source, native_id, version_id), item_key(source, native_id)}
    return not tombstones.isdisjoint(keys)


def write_tombstone(
    store: Store, key: str, why: str, item: str | None = None, partitions: tuple[str, ...] = ()
) -> None:
    """Write a tombstone, or add the item and the partitions to the existing tombstone."""
    path = f"{FOLDER}/{key}.json"
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    stone = Tombstone(key=key, forgotten_at=now, why=why)
    if store.exists(path):
        stone = _read(store, path)
    everywhere = tuple(sorted({*stone.partitions, *partitions}))
    stone = stone.model_copy(update={"item": stone.item or item, "partitions": everywhere})
    store.write_bytes(path, f"{stone.model_dump_json()}\n".encode())


def read_tombstones(store: Store) -> list[Tombstone]:
    """Return all tombstones, in order of key; raise StorageError if a tombstone is damaged."""
    return [_read(store, path) for path in store.list(f"{FOLDER}/*.json")]


def _read(store: Store, path: str) -> Tombstone:
    remedy = "bring it back from a backup: its name alone keeps the document out, but must be ours"
    return read_record(Tombstone, store, path, "a tombstone", remedy)
