"""The corpus: sealed partitions of documents. A partition is one month of one source.

The partitions of some sources are half-months or weeks instead (``core.periods``), in paths such as
``month=2024-03a`` and ``month=2024-W10``.

A document is a text (schema DOCUMENTS), or an image or a recording (schema MEDIA). All documents
of a partition are of the same kind.

    corpus/source=<source>/month=<YYYY-MM | undated>/part-00000-<random>.parquet …
    corpus/source=<source>/month=<YYYY-MM | undated>/manifest.json
    corpus/source=<source>/month=<YYYY-MM | undated>/version=<N>/…   version N, from 2 on
    corpus/source=<source>/month=<YYYY-MM | undated>/held/…          a crawl that failed a check

The manifest is written last: a version without a manifest counts as absent. A sealed version never
changes, except by takedown (extra ``takedown``). A repeated crawl with different content
is sealed as the next version. See docs/adr/0018-versions.md for the reasons.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, TypeVar, cast, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from core.errors import StorageError, kind_and_reason
from core.month import Period
from core.periods import parse_period, require_kind
from core.schemas.tables import DOCUMENTS, MEDIA, DocumentRow
from core.storage.store import Store, name_of_part, path_part
from core.version import explain_newer

BATCH_ROWS = 256
BATCH_BYTES = 32 * 2**20  # content size in bytes from which a batch is complete
MANIFEST = "manifest.json"
LOCAL_USE = "local"  # value of the manifest key `use`: texts are not passed on
FIRST_REGIME = "cleaner-1"  # regime of manifests that state none
_UNDATED = "undated"

Content = Literal["text", "image", "audio"]
_Other = TypeVar("_Other")


@dataclass(frozen=True, order=True)
class Partition:
    """One source and one month; ``month`` is None for an undated corpus.

    The constructor raises UsageError if the source has another kind of period than ``month``.
    """

    source: str
    month: Period | None

    def __post_init__(self) -> None:
        if self.month is not None:
            require_kind(self.source, self.month)

    @property
    def path(self) -> str:
        """The partition's folder, relative to the data root."""
        return f"corpus/source={path_part(self.source)}/month={self.month or _UNDATED}"

    def folder_of(self, version: int) -> str:
        """Return the folder of a version; version 1 is in the partition's folder itself."""
        return self.path if version == 1 else f"{self.path}/version={version}"

    def __str__(self) -> str:
        return f"{self.source} {self.month or _UNDATED}"


@dataclass(frozen=True)
class Seal:
    """The manifest of a version of a partition; paths are relative to the data root.

    ``digest`` is a SHA-256 over the ids and digests of the documents at sealing, in row order.
    Losses and the warehouse identify the version by ``digest``, so a takedown does not change it.
    """

    partition: Partition
    digest: str
    num_documents: int  # current number of documents
    num_bytes: int  # current size of the documents' texts or media
    parts: tuple[str, ...]
    manifest: dict[str, object]
    version: int  # number of the version, from 1
    folder: str
    sealed_at: dt.datetime | None = None  # time of sealing, or None if the manifest has none
    content: Content = "text"

    @property
    def content_digest(self) -> str:
        """The digest over the current documents, without documents removed by takedown."""
        return str(self.manifest.get("content_digest", self.digest))

    @property
    def is_partial(self) -> bool:
        """Return True if some items were unavailable; another crawl may fetch them."""
        return self.manifest.get("status") == "partial"

    @property
    def regime(self) -> str:
        """The label of how texts were made: the site's regime, and the version of the cleaner."""
        return str(self.manifest.get("regime", FIRST_REGIME))

    @property
    def is_local(self) -> bool:
        """Return True if the texts may not be passed on, as those of web archives."""
        return self.manifest.get("use") == LOCAL_USE

    @property
    def is_text(self) -> bool:
        """Return True if the documents are texts (schema DOCUMENTS), not images or recordings."""
        return self.content == "text"


def document_id(source: str, native_id: str, version_id: str | None) -> str:
    """Return the id of one version of one item; the id is the same in crawls and imports."""
    return hashlib.sha256(f"{source}|{native_id}|{version_id or ''}".encode()).hexdigest()[:32]


def tables_of(
    items: Iterable[DocumentRow | _Other], partition: Partition
) -> Iterator[pa.Table | _Other]:
    """Collect rows into tables of at most BATCH_ROWS rows and about BATCH_BYTES bytes.

    Rows with the key ``text`` become rows of DOCUMENTS, other rows become rows of MEDIA. Derived
    columns are added: id, source, month, digest and length of the content. ``cluster_id`` is added
    if the row has none. Items that are no rows are yielded as they are.
    """
    for kind, group in groupby(items, key=_kind_of):
        if kind == "other":
            yield from cast("Iterable[_Other]", group)
        else:
            rows = cast("Iterable[DocumentRow]", group)
            yield from _batches(rows, partition, DOCUMENTS if kind == "text" else MEDIA)


def _kind_of(item: object) -> Literal["text", "media", "other"]:
    if not isinstance(item, dict):
        return "other"
    return "text" if "text" in item else "media"


def _batches(
    rows: Iterable[DocumentRow], partition: Partition, schema: pa.Schema
) -> Iterator[pa.Table]:
    """Yield tables of at most ``BATCH_ROWS`` rows and about ``BATCH_BYTES`` bytes."""
    batch: list[dict[str, object]] = []
    size = 0
    for row in rows:
        content = row["text"].encode() if "text" in row else row["media"]
        batch.append({**row, **_derived(row, content, partition)})
        size += len(content)
        if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield pa.Table.from_pylist(batch, schema=schema)
            batch = []
            size = 0
    if batch:
        yield pa.Table.from_pylist(batch, schema=schema)


def _derived(row: DocumentRow, content: bytes, partition: Partition) -> dict[str, object]:
    """Return the columns that follow from a document's content and its partition."""
    digest = hashlib.sha256(content).hexdigest()
    of_kind = (
        {"num_chars": len(row["text"]), "sha256_text": digest}
        if "text" in row
        else {"sha256_media": digest}
    )
    return {
        **of_kind,
        "document_id": document_id(partition.source, row["native_id"], row.get("version_id")),
        "source": partition.source,
        "month": partition.month.first_day if partition.month else None,
        "cluster_id": row.get("cluster_id") or row["native_id"],
        "num_bytes": len(content),
    }


def read_seal(store: Store, partition: Partition, as_of: dt.datetime | None = None) -> Seal | None:
    """Return the newest version sealed by ``as_of`` (None: until now), or None without one.

    Raises:
        StorageError: a manifest is damaged.
    """
    return _newest(store, partition, _manifests_of(store, partition), as_of)


def list_versions(store: Store, partition: Partition) -> list[Seal]:
    """Return all versions of a partition, the oldest first."""
    paths = _manifests_of(store, partition)
    return [read_manifest(store, partition, paths[version]) for version in sorted(paths)]


def find_version(store: Store, partition: Partition, digest: str) -> Seal | None:
    """Return the newest version of a partition that has this digest, or None."""
    found = (seal for seal in reversed(list_versions(store, partition)) if seal.digest == digest)
    return next(found, None)


def list_sealed(
    store: Store,
    source: str | None = None,
    as_of: dt.datetime | None = None,
    months: Collection[Period] | None = None,
) -> list[Seal]:
    """Return the newest version of each partition of ``source`` and ``months`` (None: all).

    Manifests of other sources and months are not read.

    Raises:
        StorageError: a manifest is damaged.
    """
    seals = (
        _newest(store, partition, paths, as_of)
        for partition, paths in list_manifests(store, source).items()
        if months is None or partition.month in months
    )
    return [seal for seal in seals if seal is not None]


def list_sealed_sources(store: Store) -> list[str]:
    """Return the names of the sources of which something is sealed, sorted."""
    return sorted({partition.source for partition in list_manifests(store)})


def list_manifests(store: Store, source: str | None = None) -> dict[Partition, dict[int, str]]:
    """Return manifest paths by partition and version; ``source`` None means all sources."""
    folder = f"corpus/source={path_part(source)}" if source else "corpus/source=*"
    found: dict[Partition, dict[int, str]] = {}
    for path in store.list(f"{folder}/month=*/{MANIFEST}"):
        found[partition_of(path)] = {1: path}
    for path in store.list(f"{folder}/month=*/version=*/{MANIFEST}"):
        found.setdefault(partition_of(path), {})[_version_of(path)] = path
    return found


def _manifests_of(store: Store, partition: Partition) -> dict[int, str]:
    """Return the manifest paths of one partition, by version."""
    first = f"{partition.path}/{MANIFEST}"
    found = {1: first} if store.exists(first) else {}
    for path in store.list(f"{partition.path}/version=*/{MANIFEST}"):
        found[_version_of(path)] = path
    return found


def _version_of(path: str) -> int:
    folder = path.split("/")[-2]
    try:
        return int(folder.removeprefix("version="))
    except ValueError as error:
        raise StorageError(
            f"{path}: expected a folder version=N, found {folder}; move it out of corpus/"
        ) from error


def _newest(
    store: Store, partition: Partition, paths: Mapping[int, str], as_of: dt.datetime | None
) -> Seal | None:
    """Return the newest version sealed by ``as_of``; versions without a time always count."""
    for version in sorted(paths, reverse=True):
        seal = read_manifest(store, partition, paths[version])
        if as_of is None or seal.sealed_at is None or seal.sealed_at <= as_of:
            return seal
    return None


def read_manifest(store: Store, partition: Partition, path: str) -> Seal:
    """Read one manifest of a partition.

    Raises:
        StorageError: the manifest is missing or damaged.
    """
    raw = store.read_bytes(path)
    folder = path.rpartition("/")[0]
    try:
        manifest = json.loads(raw)
        content = manifest.get("content", "text")  # early manifests do not have this key
        if content not in get_args(Content):
            raise ValueError(f"unknown content {content!r}")
        # Early manifests have no ``sealed_at``, only ``ended_at``, the end of the crawl.
        moment = manifest.get("sealed_at", manifest.get("ended_at"))
        sealed_at = dt.datetime.fromisoformat(moment).astimezone(dt.UTC) if moment else None
        return Seal(
            partition=partition,
            digest=manifest["digest"],
            num_documents=manifest["num_documents"],
            num_bytes=manifest["num_bytes"],
            parts=tuple(f"{folder}/{file['name']}" for file in manifest["files"]),
            manifest=manifest,
            version=int(manifest.get("version", 1)),
            folder=folder,
            sealed_at=sealed_at,
            content=content,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable_manifest(store, path, raw, error) from error


def unreadable_manifest(store: Store, path: str, raw: bytes, error: Exception) -> StorageError:
    """Return the error for a manifest that is damaged, or that a later tidemark version wrote."""
    newer = explain_newer(raw)
    if newer:
        return StorageError(f"{store.url(path)} {newer}")
    return StorageError(
        f"{store.url(path)} is not a manifest of tidemark ({kind_and_reason(error)}); "
        "bring it back from a backup, or move its folder out of the data root and crawl or "
        "import the month again"
    )


def partition_of(path: str) -> Partition:
    """Return the partition of a path below ``corpus/source=…/month=…/``.

    Raises:
        UsageError: the folder's month is malformed.
    """
    source, month = path.split("/")[1:3]
    month = month.removeprefix("month=")
    return Partition(
        source=name_of_part(source.removeprefix("source=")),
        month=None if month == _UNDATED else parse_period(month),
    )


def read_documents(
    store: Store, seal: Seal, columns: list[str] | None = None, batch_rows: int = BATCH_ROWS
) -> Iterator[pa.RecordBatch]:
    """Stream a partition's documents in their sealed order.

    Yields:
        Record batches of at most ``batch_rows`` rows, with ``columns`` (None: all columns).

    Raises:
        StorageError: a part file is missing or damaged.
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


def read_texts(
    store: Store, seal: Seal, chosen: Collection[str], key: str = "document_id"
) -> Iterator[tuple[str, str]]:
    """Yield key and text of documents with a chosen key; errors are those of ``read_documents``."""
    for batch in read_documents(store, seal, columns=[key, "text"]):
        for name, text in zip(batch[key].to_pylist(), batch["text"], strict=True):
            if name in chosen:
                yield name, text.as_py()
