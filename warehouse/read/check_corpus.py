"""Integrity checks of sealed partitions."""

from __future__ import annotations

from collections.abc import Iterator

from core import progress
from core.corpus.lookup import find_documents
from core.corpus.partition import MANIFEST, Partition, Seal, partition_of, read_manifest
from core.corpus.parts import find_damage
from core.corpus.tombstones import list_tombstones
from core.errors import TidemarkError
from core.storage.store import Store
from warehouse.read.findings import Finding, finding_of

Rows = list[dict[str, object]]
_CRAWL_AGAIN = (
    "Bring the files back from a backup; or crawl or import the partition again with --replace, "
    "then run `tidemark score`."
)
WITHOUT_MANIFEST = (
    "Delete nothing: bring the folder back from a backup. Without one, move it out of the data "
    "root, crawl or import the month again, and run `tidemark score`; keep what was moved, as its "
    "files may be the only copy of the text."
)
_FORMER_VERSION = (
    "Bring the files back from a backup; or move them and the manifest.json beside them out of the "
    "data root: a later version is sealed, and stays."
)


def check_partitions(store: Store, seals: dict[Partition, list[Seal]]) -> Iterator[Finding]:
    """Read all files of all versions of partitions; add each readable manifest to ``seals``."""
    unreadable: Rows = []
    damaged: list[tuple[Seal, str, str]] = []  # seal, file, problem
    folders = ("corpus/source=*/month=*", "corpus/source=*/month=*/version=*")
    paths = [path for folder in folders for path in store.list(f"{folder}/{MANIFEST}")]
    for number, path in enumerate(paths, start=1):
        try:
            seal = read_manifest(store, partition_of(path), path)
            seals.setdefault(seal.partition, []).append(seal)
            damage = find_damage(store, seal)
            damaged += [(seal, file, problem) for file, problem in damage]
        except TidemarkError as error:
            unreadable.append({"file": path, "problem": str(error)})
        progress.report("check partitions", number, len(paths))
    meaning = "Manifests that cannot be read."
    yield from finding_of("manifests_can_be_read", meaning, WITHOUT_MANIFEST, unreadable)
    former: Rows = []
    newest: Rows = []
    for seal, file, problem in damaged:
        versions = [each.version for each in seals[seal.partition]]
        rows = newest if seal.version == max(versions) else former
        rows.append({"file": file, "problem": problem})
    meaning = "Sealed partitions whose files are not what was sealed."
    yield from finding_of("partitions_are_sound", meaning, _CRAWL_AGAIN, newest)
    meaning = "Former versions of partitions whose files are not what was sealed."
    yield from finding_of("former_versions_are_sound", meaning, _FORMER_VERSION, former)


def check_forgotten(store: Store) -> Iterator[Finding]:
    """Find documents that were taken down, and are in the corpus all the same."""
    rows: Rows = []
    tombstones = list_tombstones(store)
    if tombstones:
        for document in find_documents(store, tombstones):
            folder = document.seal.folder
            rows.append({"document_id": document.document_id, "partition": folder})
    meaning = "Documents that were taken down, and are still there, or there again."
    remedy = "Run `tidemark corpus forget --again` (extra `takedown`)."
    yield from finding_of("forgotten_documents_are_gone", meaning, remedy, rows)
