"""Removal of documents from the corpus and from losses, permanently.

The part files of each version are rewritten without the documents, and the manifest's counts are
updated. ``digest`` stays the same, since losses identify the version by it. ``content_digest`` is
computed over the remaining documents. Tombstones (records of removed ids) are written first, so
that repeating a killed takedown completes it. See docs/adr/0018-versions.md.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from itertools import product

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard

from core.corpus.lookup import FoundDocument, list_all_seals
from core.corpus.partition import (
    MANIFEST,
    Partition,
    Seal,
    partition_of,
    read_documents,
    read_manifest,
)
from core.corpus.parts import PartWriter
from core.corpus.tombstones import item_key
from core.errors import StorageError
from core.schemas.tables import DOCUMENTS, MEDIA
from core.storage.store import Store

_ID_COLUMNS = ("document_id", "duplicate_of_document_id")


def forget_texts(store: Store, found: Collection[FoundDocument]) -> None:
    """Remove documents from the versions and held crawls that contain them.

    Raises:
        StorageError: a partition is damaged, or another process changed it during the call.
    """
    # Rewrite dropped items before documents, because a repeated call needs the documents' ids.
    for source in {each.seal.partition.source for each in found}:
        ids = {each.native_id for each in found if each.seal.partition.source == source}
        for seal in list_all_seals(store):
            if seal.partition.source == source:
                with store.alone(seal.partition.path):
                    _rewrite_dropped(store, seal, ids)
    for seal in {each.seal.folder: each.seal for each in found}.values():
        ids = {each.document_id for each in found if each.seal.folder == seal.folder}
        with store.alone(seal.partition.path):
            newest = read_manifest(store, seal.partition, f"{seal.folder}/{MANIFEST}")
            _rewrite_version(store, newest, ids)


def _rewrite_version(store: Store, seal: Seal, ids: Collection[str]) -> None:
    """Write a month's version again without some documents, and delete its former parts."""
    schema = DOCUMENTS if seal.is_text else MEDIA
    writer = PartWriter(store, seal.folder, str(seal.partition), schema)
    try:
        for batch in read_documents(store, seal):
            writer.add(_without(pa.Table.from_batches([batch]), ids))
        writer.close()
        before = seal.manifest.get("forgotten", 0)
        gone = seal.num_documents - writer.num_documents
        manifest = dict(seal.manifest)
        boilerplate = manifest.get("boilerplate")
        if isinstance(boilerplate, dict):
            # Frequent lines in the manifest may identify the document, so delete them.
            manifest["boilerplate"] = {**boilerplate, "most_frequent": []}
        manifest |= {
            "content_digest": writer.digest.hexdigest(),
            "num_documents": writer.num_documents,
            "num_bytes": writer.num_bytes,
            "forgotten": (before if isinstance(before, int) else 0) + gone,
            "files": writer.files,
        }
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        store.write_bytes(f"{seal.folder}/{MANIFEST}", text.encode())
        writer.is_kept = True
    finally:
        writer.discard()
    for path in seal.parts:
        store.delete(path)


def _rewrite_dropped(store: Store, seal: Seal, native_ids: Collection[str]) -> None:
    """Remove the given ids from the records of dropped items, without deleting records."""
    path = f"{seal.folder}/dropped.jsonl.zst"
    if not store.exists(path):
        return
    # The zstd header may lack the content size, which one-shot decompression requires.
    with store.open(path) as file, zstandard.ZstdDecompressor().stream_reader(file) as reader:
        lines = reader.read().decode().splitlines()
    blanked = []
    for line in lines:
        item = json.loads(line)
        if item["native_id"] in native_ids:
            item = {**item, "native_id": item_key(seal.partition.source, item["native_id"])}
            line = json.dumps({**item, "detail": ""})
        elif any(native_id in item["detail"] for native_id in native_ids):
            line = json.dumps({**item, "detail": ""})  # ``detail`` names an item to remove
        blanked.append(line)
    if blanked != lines:
        text = "".join(f"{line}\n" for line in blanked)
        store.write_bytes(path, zstandard.compress(text.encode(), 6))


def _without(
    table: pa.Table, ids: Collection[str], columns: Sequence[str] = _ID_COLUMNS
) -> pa.Table:
    """Return the rows that have none of these ids."""
    wanted = pa.array(sorted(ids), pa.string())
    for name in columns:
        if name in table.column_names:
            named = pc.is_in(table[name].cast(pa.string()), value_set=wanted)
            table = table.filter(pc.invert(named))
    return table


def clear_remains(store: Store) -> None:
    """Delete part files that no manifest lists, such as those of killed runs.

    This also deletes the parts of a crawl in progress. That crawl cannot be sealed anyway, because
    tombstones have changed.
    """
    kept = {path for seal in list_all_seals(store) for path in seal.parts}
    for folder in ("month=*", "month=*/version=*", "month=*/held"):
        for pattern in ("part-*", ".tmp-*"):
            for path in store.list(f"corpus/source=*/{folder}/{pattern}"):
                if path not in kept:
                    store.delete(path)


def forget_in_sidecars(store: Store, sources: Collection[str], ids: Collection[str]) -> None:
    """Remove documents from the additional (sidecar) Parquet files of all partitions of sources."""
    for folder in ("month=*", "month=*/version=*", "month=*/held"):
        for path in store.list(f"corpus/source=*/{folder}/*.parquet"):
            is_part = path.rpartition("/")[2].startswith(("part-", ".tmp-"))
            if not is_part and partition_of(path).source in sources:
                rewrite_table(store, path, ids)


def forget_losses(store: Store, partitions: Collection[Partition], ids: Collection[str]) -> None:
    """Remove the rows of documents from all files of losses and of token losses of partitions."""
    for partition, root in product(sorted(partitions, key=str), ("losses", "tokens")):
        folder = partition.path.removeprefix("corpus/")
        for path in store.list(f"{root}/model=*/{folder}/.tmp-*"):
            store.delete(path)  # temporary file of a killed or active scoring run
        for path in store.list(f"{root}/model=*/{folder}/*.parquet"):
            if rewrite_table(store, path, ids) == 0:
                store.delete(path)
                store.delete(f"{path.removesuffix('.parquet')}.json")


def forget_pages(store: Store, ids: Collection[str]) -> None:
    """Delete the site's X-ray pages of documents, and all lists of such pages, which have titles.

    ``tidemark report`` writes the lists again.
    """
    for folder in ("report/xray", "report/months/*/xray"):
        for path in store.list(f"{folder}/*/*.html"):
            if path.rpartition("/")[2].removesuffix(".html") in {*ids, "index"}:
                store.delete(path)


def rewrite_table(
    store: Store, path: str, ids: Collection[str], columns: Sequence[str] = _ID_COLUMNS
) -> int:
    """Remove the rows with one of some ids from a Parquet file, in place; return the rows left.

    ``columns`` are those that may have ids; return -1 if the file has none of them.

    Raises:
        StorageError: the file is damaged.
    """
    try:
        with store.open(path) as file:
            schema = pq.read_schema(file)
            names = [name for name in columns if name in schema.names]
            if not names:
                return -1
            table = pq.read_table(file, columns=names, page_checksum_verification=True)
            if len(_without(table, ids, names)) == len(table):
                return len(table)
            whole = pq.read_table(file, page_checksum_verification=True)
            rest = _without(whole, ids, names)
    except (pa.ArrowException, OSError) as error:
        raise StorageError(
            f"{store.url(path)} is damaged ({error}), so it is not known whether it contains texts "
            "to forget; bring it back from a backup, or move it out of the data root, "
            "then run the same command again"
        ) from error
    with store.writing(path) as staged:
        pq.write_table(rest, staged.path, compression="zstd", write_page_checksum=True)
    return len(rest)
