"""Look-up of documents in the corpus by id."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from core.corpus.partition import Seal, list_manifests, read_documents, read_manifest
from core.corpus.sealing import list_held
from core.corpus.tombstones import item_key
from core.errors import UsageError
from core.storage.store import Store

_IDS_AT_A_TIME = 8192
_KEYS = ["document_id", "native_id", "url", "cluster_id"]
_FACTS = ["document_id", "native_id", "title", "url", "event_time", "licence", "attribution"]


@dataclass(frozen=True)
class StoredDocument:
    """A document of the corpus, with its facts and its text."""

    seal: Seal  # the newest version of a partition that has the document
    facts: Mapping[str, object]  # columns of DOCUMENTS: ids, title, url, event_time, rights
    text: str


def find_document(store: Store, document_id: str) -> StoredDocument:
    """Return a document's facts and text, from the newest version that has it.

    Raises:
        UsageError: no sealed partition has a text of this id.
        StorageError: a partition is damaged.
    """
    for partition, paths in list_manifests(store).items():
        for _, path in sorted(paths.items(), reverse=True):
            seal = read_manifest(store, partition, path)
            found = _find_in(store, seal, document_id) if seal.is_text else None
            if found is not None:
                return found
    raise UsageError(
        f"no sealed text under {store.root} has the id {document_id!r}; ids are in column "
        "document_id of table documents, and images and recordings have no text"
    )


def _find_in(store: Store, seal: Seal, document_id: str) -> StoredDocument | None:
    """Return a document of one version, or None. Texts are read only if the id is found."""
    ids = read_documents(store, seal, ["document_id"], _IDS_AT_A_TIME)
    if not any(pc.any(pc.equal(batch["document_id"], document_id)).as_py() for batch in ids):
        return None
    for batch in read_documents(store, seal, [*_FACTS, "text"]):
        for row in batch.filter(pc.equal(batch["document_id"], document_id)).to_pylist():
            return StoredDocument(seal, row, row.pop("text"))
    return None


@dataclass(frozen=True)
class FoundDocument:
    """A document that was found by key, and the seal of the version or held crawl that has it."""

    document_id: str
    native_id: str
    url: str | None
    item: str  # ``item_key`` of the item, or of the media file of which it is a piece
    seal: Seal


def find_documents(store: Store, keys: Collection[str]) -> list[FoundDocument]:
    """Find documents by key in all versions of all partitions, and in held crawls.

    A key is a document id, or an ``item_key`` value, which stands for all versions of an item. The
    ``item_key`` value of an image or a recording stands for all its pieces.

    Raises:
        StorageError: a partition is damaged, so its documents are unknown.
    """
    found = []
    for seal in list_all_seals(store):
        for batch in read_documents(store, seal, columns=_KEYS, batch_rows=_IDS_AT_A_TIME):
            columns = (batch[name].to_pylist() for name in _KEYS)
            for document_id, native_id, url, cluster_id in zip(*columns, strict=True):
                item = item_key(seal.partition.source, native_id)
                # All pieces of a media file have the file's id as their cluster.
                file = item if seal.is_text else item_key(seal.partition.source, cluster_id)
                item = file if file in keys else item
                if document_id in keys or item in keys:
                    found.append(FoundDocument(document_id, native_id, url, item, seal))
    return found


def list_all_seals(store: Store) -> Iterator[Seal]:
    """Yield the seals of all versions of all partitions, and of held crawls."""
    for partition, paths in list_manifests(store).items():
        for path in paths.values():
            yield read_manifest(store, partition, path)
    yield from list_held(store)
