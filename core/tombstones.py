"""Tombstones: what was taken down, so that no later crawl or import brings it back.

    corpus/forgotten/<document id>.json      one version of an item
    corpus/forgotten/item-<hash>.json        an item, in whatever version

The names alone say what is forgotten; nothing of a text, its title or its address is in them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
from pathlib import PurePosixPath

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from core.corpus import document_id
from core.errors import StorageError
from core.storage import Store

FOLDER = "corpus/forgotten"
_ITEM = "item-"


class Tombstone(BaseModel):
    """What is known of something that was taken down.

    Attributes:
        key: a document's id, or ``item_key``.
        forgotten_at: when it was first asked for (UTC).
        why: as it was said.
        item: ``item_key`` of the item that a document is a version of, where that is known.
        partitions: folders under the data root that it was found in.
    """

    model_config = ConfigDict(frozen=True)

    key: str
    forgotten_at: AwareDatetime
    why: str
    item: str | None = None
    partitions: tuple[str, ...] = ()

    @property
    def is_document(self) -> bool:
        """Whether it is of one document; else of an item in all its versions."""
        return not self.key.startswith(_ITEM)


def item_key(source: str, native_id: str) -> str:
    """Return what stands for an item in the name of its tombstone."""
    return _ITEM + hashlib.sha256(f"{source}|{native_id}".encode()).hexdigest()[:32]


def list_tombstones(store: Store) -> frozenset[str]:
    """Return the ids of documents, and the keys of items, that are forgotten."""
    return frozenset(PurePosixPath(path).stem for path in store.list(f"{FOLDER}/*.json"))


def is_forgotten(
    tombstones: frozenset[str], source: str, native_id: str, version_id: str | None
) -> bool:
    """Whether a version of an item is forgotten, or the item in all its versions."""
    if not tombstones:
        return False
    keys = {document_id(source, native_id, version_id), item_key(source, native_id)}
    return not tombstones.isdisjoint(keys)


def write_tombstone(
    store: Store, key: str, why: str, item: str | None = None, partitions: tuple[str, ...] = ()
) -> None:
    """Leave a tombstone; of one that stands there already, only item and partitions are added."""
    path = f"{FOLDER}/{key}.json"
    now = dt.datetime.now(dt.UTC).replace(microsecond=0)
    stone = Tombstone(key=key, forgotten_at=now, why=why)
    if store.exists(path):
        stone = _read(store, path)
    everywhere = tuple(sorted({*stone.partitions, *partitions}))
    text = stone.model_copy(
        update={"item": stone.item or item, "partitions": everywhere}
    ).model_dump_json()
    store.write_bytes(path, f"{text}\n".encode())


def read_tombstones(store: Store) -> list[Tombstone]:
    """Return all tombstones, in the order of their keys.

    Raises:
        StorageError: one is damaged.
    """
    return [_read(store, path) for path in store.list(f"{FOLDER}/*.json")]


def _read(store: Store, path: str) -> Tombstone:
    try:
        return Tombstone.model_validate_json(store.read_bytes(path))
    except ValidationError as error:
        raise StorageError(
            f"{store.url(path)} is no tombstone ({error.error_count()} problems); bring it back "
            "from a backup: its name alone keeps the document out, but must be a file of ours"
        ) from error
