"""The corpus: sealed partitions of documents, one source and one month each.

    corpus/source=<source>/month=<YYYY-MM | undated>/part-00000.parquet …
    corpus/source=<source>/month=<YYYY-MM | undated>/manifest.json

The manifest is written last: a partition without one does not exist. A sealed partition never
changes; ``replace`` seals another in its place, with another digest.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import PartitionSealed, StorageError
from core.month import Month
from core.schemas import DOCUMENTS, validate
from core.storage import Store, name_of_part, path_part

PART_BYTES = 128 * 2**20  # text bytes after which a new part file begins
_UNDATED = "undated"


@dataclass(frozen=True, order=True)
class Partition:
    """One source and one month; ``month`` is None for an undated corpus."""

    source: str
    month: Month | None

    @property
    def path(self) -> str:
        """The folder under the data root."""
        return f"corpus/source={path_part(self.source)}/month={self.month or _UNDATED}"

    def __str__(self) -> str:
        return f"{self.source} {self.month or _UNDATED}"


@dataclass(frozen=True)
class Seal:
    """What a manifest says of a sealed partition."""

    partition: Partition
    digest: str  # over document ids and text digests, in row order
    num_documents: int
    num_bytes: int  # of text
    parts: tuple[str, ...]  # paths under the data root
    manifest: dict[str, object]


def read_seal(store: Store, partition: Partition) -> Seal | None:
    """Return the seal of a partition, or None where there is none."""
    path = f"{partition.path}/manifest.json"
    if not store.exists(path):
        return None
    try:
        manifest = json.loads(store.read_bytes(path))
        return Seal(
            partition=partition,
            digest=manifest["digest"],
            num_documents=manifest["num_documents"],
            num_bytes=manifest["num_bytes"],
            parts=tuple(f"{partition.path}/{file['name']}" for file in manifest["files"]),
            manifest=manifest,
        )
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{store.url(path)} is not a manifest of tidemark ({error!r}); "
            "delete the partition's folder and crawl or import it again"
        ) from error


def list_sealed(store: Store, source: str | None = None) -> list[Seal]:
    """Return the seals of all partitions (of one source), ordered by source and month."""
    folder = f"source={path_part(source)}" if source else "source=*"
    seals = []
    for path in store.list(f"corpus/{folder}/month=*/manifest.json"):
        source_part, month_part = path.split("/")[1:3]
        month = month_part.removeprefix("month=")
        partition = Partition(
            source=name_of_part(source_part.removeprefix("source=")),
            month=None if month == _UNDATED else Month(month),
        )
        if seal := read_seal(store, partition):
            seals.append(seal)
    return seals


def seal_partition(
    store: Store,
    partition: Partition,
    documents: Iterable[pa.Table],
    describe: dict[str, object] | None = None,
    replace: bool = False,
) -> Seal:
    """Write documents as Parquet parts, then the manifest that makes them exist.

    Args:
        store: the data root.
        partition: where to; every row's source and month must be its own.
        documents: tables of schema DOCUMENTS, in the order to keep; consumed once.
        describe: more keys for the manifest (window, counts of dropped items, …). Read after
            ``documents`` is used up, so a crawl may fill it on the way.
        replace: seal in place of other content that is sealed there.

    Returns:
        The seal. Where the same content is sealed already, that seal; nothing is written.

    Raises:
        PartitionSealed: other content is sealed there and ``replace`` is not set.
        SchemaMismatch: a row is not of DOCUMENTS; nothing is sealed.
    """
    writer = _PartWriter(store, partition)
    try:
        for table in documents:
            writer.add(validate(table, DOCUMENTS, where=str(partition)))
        writer.close()
        digest = writer.digest.hexdigest()
        if (old := read_seal(store, partition)) is not None:
            if old.digest == digest:
                writer.discard()
                return old
            if not replace:
                raise PartitionSealed(
                    f"{partition} is sealed with other content ({old.num_documents} documents, "
                    f"digest {old.digest[:12]}, now {writer.num_documents} documents, digest "
                    f"{digest[:12]}); use --replace to seal the new content in its place"
                )
    except BaseException:
        writer.discard()
        raise
    return writer.seal(digest, describe or {})


class _PartWriter:
    """Writes parts under names that no sealed partition uses, so that a crash harms nothing."""

    def __init__(self, store: Store, partition: Partition) -> None:
        self._store, self._partition = store, partition
        self.digest = hashlib.sha256()
        self.num_documents = 0
        self.num_bytes = 0
        self._files: list[dict[str, object]] = []
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0

    def add(self, table: pa.Table) -> None:
        identities = zip(
            table["document_id"].to_pylist(), table["sha256_text"].to_pylist(), strict=True
        )
        for document_id, sha256_text in identities:
            self.digest.update(f"{document_id} {sha256_text}\n".encode())
        size = sum(table["num_bytes"].to_pylist())
        self.num_documents += table.num_rows
        self.num_bytes += size
        self._pending.append(table)
        self._pending_bytes += size
        if self._pending_bytes >= PART_BYTES:
            self._flush()

    def _flush(self) -> None:
        table = pa.concat_tables(self._pending or [DOCUMENTS.empty_table()])
        # The digest so far is in the name: parts of other content never overwrite sealed ones.
        name = f"part-{len(self._files):05d}-{self.digest.hexdigest()[:12]}.parquet"
        with self._store.writing(f"{self._partition.path}/{name}") as staged:
            pq.write_table(table, staged.path, compression="zstd", compression_level=6)
        self._files.append({"name": name, "rows": table.num_rows, "sha256": staged.sha256})
        self._pending, self._pending_bytes = [], 0

    def close(self) -> None:
        if self._pending or not self._files:
            self._flush()

    def discard(self) -> None:
        sealed = read_seal(self._store, self._partition)
        keep = set(sealed.parts) if sealed else set()
        for file in self._files:
            path = f"{self._partition.path}/{file['name']}"
            if path not in keep:
                self._store.delete(path)

    def seal(self, digest: str, describe: dict[str, object]) -> Seal:
        manifest = {
            "source": self._partition.source,
            "month": str(self._partition.month) if self._partition.month else None,
            **describe,
            "digest": digest,
            "num_documents": self.num_documents,
            "num_bytes": self.num_bytes,
            "files": self._files,
        }
        text = json.dumps(manifest, indent=2, ensure_ascii=False, default=str) + "\n"
        self._store.write_bytes(f"{self._partition.path}/manifest.json", text.encode())
        seal = read_seal(self._store, self._partition)
        if seal is None:
            raise StorageError(f"{self._partition}: the manifest vanished while it was sealed")
        for path in self._store.list(f"{self._partition.path}/*part-*"):
            if path not in seal.parts:  # left behind by a killed run, or replaced
                self._store.delete(path)
        return seal


def read_documents(
    store: Store, seal: Seal, columns: list[str] | None = None, batch_rows: int = 256
) -> Iterator[pa.RecordBatch]:
    """Stream a partition's documents in their sealed order.

    Yields:
        Record batches of DOCUMENTS (or of ``columns``), at most ``batch_rows`` rows each.

    Raises:
        StorageError: a part is missing or damaged.
    """
    for path in seal.parts:
        try:
            with store.open(path) as file:
                parquet = pq.ParquetFile(file)
                yield from parquet.iter_batches(batch_size=batch_rows, columns=columns)
        except (pa.ArrowInvalid, OSError) as error:
            raise StorageError(
                f"{store.url(path)} is damaged ({error}); "
                f"crawl or import {seal.partition} again with --replace"
            ) from error
