"""Tombstones: what was taken down, so that no later crawl or import brings it back.

    corpus/forgotten/<document id>.json      one version of an item
    corpus/forgotten/item-<hash>.json        an item, in whatever version

The names alone say what is forgotten; nothing of the text, its title or its address is in them.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from pathlib import PurePosixPath

from core.corpus import document_id
from core.storage import Store

FOLDER = "corpus/forgotten"


def item_key(source: str, native_id: str) -> str:
    """Return what stands for an item in the name of its tombstone."""
    return "item-" + hashlib.sha256(f"{source}|{native_id}".encode()).hexdigest()[:32]


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


def write_tombstone(store: Store, key: str, why: str, item: str | None = None) -> None:
    """Leave a tombstone; one that stands there already stays as it is.

    Args:
        store: the data root.
        key: a document's id, or ``item_key``.
        why: somebody asked for it; without the content.
        item: ``item_key`` of a document's item.
    """
    path = f"{FOLDER}/{key}.json"
    if store.exists(path):
        return
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    content = {"key": key, "item": item, "forgotten_at": now, "why": why}
    store.write_bytes(path, (json.dumps(content, ensure_ascii=False) + "\n").encode())


def read_tombstones(store: Store) -> list[dict[str, str | None]]:
    """Return all tombstones, in the order of their keys."""
    return [json.loads(store.read_bytes(path)) for path in store.list(f"{FOLDER}/*.json")]
