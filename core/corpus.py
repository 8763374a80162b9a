"""The corpus: sealed partitions of documents, one source and one month each.

A document is a text (schema DOCUMENTS), or an image or a recording (schema MEDIA); a partition
holds one of these kinds.

    corpus/source=<source>/month=<YYYY-MM | undated>/part-00000-<random>.parquet …
    corpus/source=<source>/month=<YYYY-MM | undated>/manifest.json

The manifest is written last: a partition without one does not exist. A sealed partition never
changes; ``replace`` seals another in its place, with another digest.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Literal, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import PartitionSealed, SchemaMismatch, StorageError
from core.month import Month
from core.schemas import DOCUMENTS, MEDIA, validate
from core.storage import Store, name_of_part, path_part

PART_BYTES = 128 * 2**20  # bytes of content after which a new part file begins
BATCH_ROWS = 256
BATCH_BYTES = 32 * 2**20  # bytes of content after which a batch ends early
_UNDATED = "undated"

Content = Literal["text", "image", "audio"]


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
    digest: str  # over the ids and digests of the documents, in row order
    num_documents: int
    num_bytes: int  # of text or media
    parts: tuple[str, ...]  # paths under the data root
    manifest: dict[str, object]
    content: Content = "text"

    @property
    def folder(self) -> str:
        """Where its files are, under the data root."""
        return self.partition.path

    @property
    def is_partial(self) -> bool:
        """Whether items could not be had; another crawl may get them."""
        return self.manifest.get("status") == "partial"

    @property
    def is_text(self) -> bool:
        """Whether its documents are of DOCUMENTS; else they are of MEDIA."""
        return self.content == "text"


def document_id(source: str, native_id: str, version_id: str | None) -> str:
    """Return the id of one version of one item, the same wherever it is crawled or imported."""
    return hashlib.sha256(f"{source}|{native_id}|{version_id or ''}".encode()).hexdigest()[:32]


def tables_of(rows: Iterable[Mapping[str, Any]], partition: Partition) -> Iterator[pa.Table]:
    """Gather rows into tables: some hundred rows or some dozen megabytes each.

    Args:
        rows: columns of DOCUMENTS by name, or of MEDIA where a row has ``media`` and no ``text``.
            What follows from others is filled in: id, source, month, digest and length of the
            content, ``cluster_id`` where the row has none.
        partition: whose the rows are.
    """
    for is_text, group in groupby(rows, key=lambda row: "text" in row):
        yield from _batches(group, partition, DOCUMENTS if is_text else MEDIA)


def _batches(
    rows: Iterable[Mapping[str, Any]], partition: Partition, schema: pa.Schema
) -> Iterator[pa.Table]:
    batch: list[dict[str, Any]] = []
    size = 0
    for row in rows:
        batch.append(_completed(row, partition))
        size += batch[-1]["num_bytes"]
        if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield pa.Table.from_pylist(batch, schema=schema)
            batch, size = [], 0
    if batch:
        yield pa.Table.from_pylist(batch, schema=schema)


def _completed(row: Mapping[str, Any], partition: Partition) -> dict[str, Any]:
    raw = row["text"].encode() if "text" in row else row["media"]
    digest = hashlib.sha256(raw).hexdigest()
    if "text" in row:
        derived = {"num_chars": len(row["text"]), "sha256_text": digest}
    else:
        derived = {"sha256_media": digest}
    return {
        **row,
        **derived,
        "document_id": document_id(partition.source, row["native_id"], row.get("version_id")),
        "source": partition.source,
        "month": partition.month.first_day if partition.month else None,
        "cluster_id": row.get("cluster_id") or row["native_id"],
        "num_bytes": len(raw),
    }


def read_seal(store: Store, partition: Partition) -> Seal | None:
    """Return the seal of a partition, or None where there is none."""
    path = f"{partition.path}/manifest.json"
    if not store.exists(path):
        return None
    try:
        manifest = json.loads(store.read_bytes(path))
        content = manifest.get("content", "text")  # the first manifests did not say
        if content not in get_args(Content):
            raise ValueError(f"unknown content {content!r}")
        return Seal(
            partition=partition,
            digest=manifest["digest"],
            num_documents=manifest["num_documents"],
            num_bytes=manifest["num_bytes"],
            parts=tuple(f"{partition.path}/{file['name']}" for file in manifest["files"]),
            manifest=manifest,
            content=content,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"{store.url(path)} is not a manifest of tidemark ({error!r}); "
            "delete the partition's folder and crawl or import it again"
        ) from error


def list_sealed(store: Store, source: str | None = None) -> list[Seal]:
    """Return the seals of all partitions (of one source), ordered by source and month."""
    folder = f"source={path_part(source)}" if source else "source=*"
    seals = []
    for path in store.list(f"corpus/{folder}/month=*/manifest.json"):
        if seal := read_seal(store, partition_of(path)):
            seals.append(seal)
    return seals


def partition_of(path: str) -> Partition:
    """Return the partition that a path below ``corpus/source=…/month=…/`` belongs to.

    Raises:
        UsageError: the folder's month is none.
    """
    source, month = path.split("/")[1:3]
    month = month.removeprefix("month=")
    return Partition(
        source=name_of_part(source.removeprefix("source=")),
        month=None if month == _UNDATED else Month(month),
    )


def seal_partition(
    store: Store,
    partition: Partition,
    documents: Iterable[pa.Table],
    describe: dict[str, object] | None = None,
    replace: bool = False,
    beside: Mapping[str, bytes] | None = None,
) -> Seal:
    """Write documents as Parquet parts, then the manifest that makes them exist.

    Args:
        store: the data root.
        partition: where to; every row's source and month must be its own.
        documents: tables of schema DOCUMENTS, or of MEDIA of one kind, in the order to keep;
            consumed once.
        describe: more keys for the manifest (window, counts of dropped items, …).
        replace: seal in place of what is sealed there, even of the same content: its files may
            be damaged.
        beside: small files for the partition's folder, by name. This and ``describe`` are read
            after ``documents`` is used up, so a crawl may fill them on the way.

    Returns:
        The seal. Where the same content is sealed already and ``replace`` is not set, that seal;
        nothing is written.

    Raises:
        PartitionSealed: other content is sealed there and ``replace`` is not set.
        SchemaMismatch: a row is not of its schema, of another partition, or of another kind than
            those before it; nothing is sealed.
    """
    writer = _PartWriter(store, partition)
    try:
        for table in documents:
            schema = DOCUMENTS if _holds_text(table) else MEDIA
            writer.add(_own(validate(table, schema, where=str(partition)), partition))
        writer.close()
        digest = writer.digest.hexdigest()
        if (old := read_seal(store, partition)) is not None:
            if old.digest == digest and not replace:
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
    return writer.seal(digest, describe or {}, beside or {})


def _holds_text(table: pa.Table) -> bool:
    return "text" in table.column_names or "media" not in table.column_names


def _own(table: pa.Table, partition: Partition) -> pa.Table:
    month = partition.month.first_day if partition.month else None
    for name, expected in (("source", partition.source), ("month", month)):
        if table.num_rows and (found := table[name].unique().to_pylist()) != [expected]:
            raise SchemaMismatch(f"{partition}: {name} must be {expected} in all rows: {found}")
    return table


class _PartWriter:
    """Writes parts under names that no other run uses, so that a crash or a rival harms nothing."""

    def __init__(self, store: Store, partition: Partition) -> None:
        self._store, self._partition = store, partition
        self.digest = hashlib.sha256()
        self.num_documents = 0
        self.num_bytes = 0
        self._contents: set[str] = set()
        self._files: list[dict[str, object]] = []
        self._pending: list[pa.Table] = []
        self._pending_bytes = 0
        self._run = secrets.token_hex(4)

    def add(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        is_text = _holds_text(table)
        self._note_contents({"text"} if is_text else set(table["media_kind"].to_pylist()))
        digests = table["sha256_text" if is_text else "sha256_media"].to_pylist()
        for document_id, sha256 in zip(table["document_id"].to_pylist(), digests, strict=True):
            self.digest.update(f"{document_id} {sha256}\n".encode())
        size = sum(table["num_bytes"].to_pylist())
        self.num_documents += table.num_rows
        self.num_bytes += size
        self._pending.append(table)
        self._pending_bytes += size
        if self._pending_bytes >= PART_BYTES:
            self._flush()

    def _note_contents(self, contents: set[str]) -> None:
        self._contents |= contents
        if len(self._contents) > 1:
            raise SchemaMismatch(
                f"{self._partition}: {' and '.join(sorted(self._contents))} in one partition; "
                "expected documents of one kind. Seal each kind as a source of its own"
            )

    def _flush(self) -> None:
        table = pa.concat_tables(self._pending or [DOCUMENTS.empty_table()])
        name = f"part-{len(self._files):05d}-{self._run}.parquet"
        with self._store.writing(f"{self._partition.path}/{name}") as staged:
            pq.write_table(
                table,
                staged.path,
                compression="zstd",
                compression_level=6,
                write_page_checksum=True,  # so that a flipped bit is found when it is read
            )
        self._files.append({"name": name, "rows": table.num_rows, "sha256": staged.sha256})
        self._pending, self._pending_bytes = [], 0

    def close(self) -> None:
        if self._pending or not self._files:
            self._flush()

    def discard(self) -> None:
        for file in self._files:
            self._store.delete(f"{self._partition.path}/{file['name']}")

    def seal(self, digest: str, describe: dict[str, object], beside: Mapping[str, bytes]) -> Seal:
        manifest = {
            "source": self._partition.source,
            "month": str(self._partition.month) if self._partition.month else None,
            **describe,
            "content": next(iter(self._contents), "text"),
            "digest": digest,
            "num_documents": self.num_documents,
            "num_bytes": self.num_bytes,
            "files": self._files,
        }
        folder = self._partition.path
        for name, data in beside.items():
            self._store.write_bytes(f"{folder}/{name}", data)
        if not all(self._store.exists(f"{folder}/{file['name']}") for file in self._files):
            raise StorageError(
                f"{self._partition}: another process sealed it meanwhile; run the same again"
            )
        text = json.dumps(manifest, indent=2, ensure_ascii=False, default=str) + "\n"
        self._store.write_bytes(f"{folder}/manifest.json", text.encode())
        seal = read_seal(self._store, self._partition)
        if seal is None:
            raise StorageError(f"{self._partition}: the manifest vanished while it was sealed")
        own = {*seal.parts, f"{folder}/manifest.json", *(f"{folder}/{name}" for name in beside)}
        for path in self._store.list(f"{folder}/*"):
            if path not in own:  # left behind by a killed run, or replaced
                self._store.delete(path)
        return seal


def read_documents(
    store: Store, seal: Seal, columns: list[str] | None = None, batch_rows: int = 256
) -> Iterator[pa.RecordBatch]:
    """Stream a partition's documents in their sealed order.

    Yields:
        Record batches of DOCUMENTS or MEDIA (or of ``columns``), at most ``batch_rows`` rows each.

    Raises:
        StorageError: a part is missing or damaged.
    """
    for path in seal.parts:
        try:
            with store.open(path) as file:
                parquet = pq.ParquetFile(file, page_checksum_verification=True)
                yield from parquet.iter_batches(batch_size=batch_rows, columns=columns)
        except (pa.ArrowInvalid, OSError) as error:
            raise StorageError(
                f"{store.url(path)} is damaged ({error}); "
                f"crawl or import {seal.partition} again with --replace"
            ) from error
