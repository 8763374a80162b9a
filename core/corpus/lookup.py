"""Look-up of single documents in the corpus by id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from core.corpus.partition import Seal, list_manifests, read_documents, read_manifest
from core.errors import UsageError
from core.storage.store import Store

_IDS_AT_A_TIME = 8192
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
            found = _read(store, seal, document_id) if seal.is_text else None
            if found is not None:
                return found
    raise UsageError(
        f"no sealed text under {store.root} has the id {document_id!r}; ids are in column "
        "document_id of table documents, and images and recordings have no text"
    )


def _read(store: Store, seal: Seal, document_id: str) -> StoredDocument | None:
    ids = read_documents(store, seal, ["document_id"], _IDS_AT_A_TIME)
    if not any(pc.any(pc.equal(batch["document_id"], document_id)).as_py() for batch in ids):
        return None
    for batch in read_documents(store, seal, [*_FACTS, "text"]):
        for row in batch.filter(pc.equal(batch["document_id"], document_id)).to_pylist():
            return StoredDocument(seal, row, row.pop("text"))
    return None
