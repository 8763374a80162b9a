"""Sealing: documents become a version of a partition, whole or not at all.

What fails a check is held back: kept beside the versions, in ``held/``, until somebody has looked
at it and accepts it, or another crawl takes its place.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

import pyarrow as pa

from core.corpus import (
    MANIFEST,
    Partition,
    Seal,
    list_versions,
    partition_of,
    read_documents,
    read_manifest,
)
from core.errors import PartitionHeld, PartitionSealed, SchemaMismatch, StorageError, UsageError
from core.part_writer import PartWriter, holds_text
from core.partition_check import find_damage
from core.schemas import DOCUMENTS, MEDIA, validate
from core.storage import Store
from core.tombstones import list_tombstones

# What a manifest keeps when the same content is crawled again.
_OF_THE_VERSION = ("digest", "content_digest", "forgotten", "accepted")
_SEALED_MEANWHILE = "{}: another process sealed it meanwhile; run the same again"
HELD_BECAUSE = "held_because"  # key of ``describe`` for the reasons to hold a partition back


def seal_partition(
    store: Store,
    partition: Partition,
    documents: Iterable[pa.Table],
    describe: dict[str, object] | None = None,
    replace: bool = False,
    beside: Mapping[str, bytes] | None = None,
) -> Seal:
    """Write documents as Parquet parts, then the manifest that makes them exist.

    The first version is in the partition's own folder, the next ones below it. Of two processes
    that seal a version at once, one does.

    Args:
        store: the data root.
        partition: where to; every row's source and month must be its own.
        documents: tables of schema DOCUMENTS, or of MEDIA of one kind, in the order to keep;
            consumed once.
        describe: more keys for the manifest (window, counts of dropped items, …). Reasons under
            ``held_because`` have the partition held back.
        replace: where other content is sealed, seal this as the next version. Where the newest
            version is of this content, its manifest tells of this crawl (a partial month may be
            whole), and its files are mended if they are damaged.
        beside: small files for the version's folder, by name. This and ``describe`` are read
            after ``documents`` is used up, so a crawl may fill them on the way.

    Returns:
        The seal. Where the newest version is of the same content, that one's.

    Raises:
        PartitionSealed: other content is sealed there and ``replace`` is not set.
        PartitionHeld: there are reasons to hold it back; nothing is sealed.
        SchemaMismatch: a row is not of its schema, of another partition, or of another kind than
            those before it; nothing is sealed.
        StorageError: another process sealed the same version, or forgot a document, meanwhile.
    """
    forgotten = list_tombstones(store)
    versions = list_versions(store, partition)
    folder = partition.folder_of(_next(versions))
    writer = PartWriter(store, folder, str(partition))
    try:
        for table in documents:
            schema = DOCUMENTS if holds_text(table) else MEDIA
            writer.add(_own(validate(table, schema, where=str(partition)), partition))
        writer.close()
        with store.alone(partition.path):
            _require_undisturbed(store, partition, writer, (versions, forgotten))
            sealing = _Sealing(store, partition, versions, writer, describe or {}, beside or {})
            return sealing.finish(replace)
    except BaseException as error:
        writer.discard()
        is_gone = isinstance(error.__cause__, FileNotFoundError)
        if is_gone and list_versions(store, partition) != versions:
            # Whoever was faster has cleared away what we were writing.
            raise StorageError(_SEALED_MEANWHILE.format(partition)) from error
        raise


def _next(versions: Sequence[Seal]) -> int:
    return versions[-1].version + 1 if versions else 1


def _own(table: pa.Table, partition: Partition) -> pa.Table:
    month = partition.month.first_day if partition.month else None
    for name, expected in (("source", partition.source), ("month", month)):
        if table.num_rows and (found := table[name].unique().to_pylist()) != [expected]:
            raise SchemaMismatch(f"{partition}: {name} must be {expected} in all rows: {found}")
    return table


def _require_undisturbed(
    store: Store,
    partition: Partition,
    writer: PartWriter,
    before: tuple[Sequence[Seal], frozenset[str]],
) -> None:
    """Refuse to go on where another process has changed what this one has begun with."""
    versions, forgotten = before
    if list_tombstones(store) != forgotten:
        raise StorageError(
            f"{partition}: documents were forgotten meanwhile; run the same again, without them"
        )
    if list_versions(store, partition) != versions or not writer.are_there:
        raise StorageError(_SEALED_MEANWHILE.format(partition))


class _Sealing:
    """The last step: all documents are written, and become a version, are held, or let go."""

    def __init__(
        self,
        store: Store,
        partition: Partition,
        versions: Sequence[Seal],
        writer: PartWriter,
        describe: Mapping[str, object],
        beside: Mapping[str, bytes],
    ) -> None:
        self._store, self._partition, self._writer = store, partition, writer
        self._newest = versions[-1] if versions else None
        self._version = _next(versions)
        self._digest = writer.digest.hexdigest()
        self._describe = dict(describe)
        self._beside = beside

    def finish(self, replace: bool) -> Seal:
        reasons = self._describe.pop(HELD_BECAUSE, None)
        if self._newest is not None and self._newest.content_digest == self._digest:
            return self._keep(self._newest, replace and not reasons)
        if self._newest is not None and not replace:
            raise PartitionSealed(
                f"{self._partition} is sealed with other content ({self._newest.num_documents} "
                f"documents, digest {self._newest.digest[:12]}, now {self._writer.num_documents} "
                f"documents, digest {self._digest[:12]}); use --replace to seal the new content "
                "as its next version"
            )
        if isinstance(reasons, Sequence) and reasons:
            raise self._hold([str(reason) for reason in reasons])
        return self._seal()

    def _keep(self, newest: Seal, is_again: bool) -> Seal:
        """Return the version that is there; its manifest tells of the last crawl that gave it."""
        if not is_again:
            self._writer.discard()
            self._clear(newest)
            return newest
        files = newest.manifest["files"]
        if any(find_damage(self._store, newest)):
            self._writer.move(newest.folder)
            files = self._writer.files
        for name, data in self._beside.items():
            self._store.write_bytes(f"{newest.folder}/{name}", data)
        former = newest.manifest
        stays = {name: former[name] for name in _OF_THE_VERSION if name in former}
        stays["sealed_at"] = former.get("sealed_at", former.get("ended_at"))
        manifest = {**self._manifest(self._describe), **stays, "files": files}
        manifest["version"] = newest.version
        self._write_manifest(newest.folder, manifest)
        self._writer.is_kept = files is self._writer.files
        self._writer.discard()
        kept = read_manifest(self._store, self._partition, f"{newest.folder}/{MANIFEST}")
        self._clear(kept)
        return kept

    def _seal(self) -> Seal:
        folder = self._partition.folder_of(self._version)
        for name, data in self._beside.items():
            self._store.write_bytes(f"{folder}/{name}", data)
        path = f"{folder}/{MANIFEST}"
        if not self._store.create_bytes(path, _as_json(self._manifest(self._describe))):
            raise StorageError(_SEALED_MEANWHILE.format(self._partition))
        self._writer.is_kept = True
        seal = read_manifest(self._store, self._partition, path)
        self._clear(seal)
        delete_held(self._store, self._partition)
        return seal

    def _hold(self, reasons: list[str]) -> PartitionHeld:
        folder = held_folder(self._partition)
        delete_held(self._store, self._partition)
        self._writer.move(folder)
        for name, data in self._beside.items():
            self._store.write_bytes(f"{folder}/{name}", data)
        described = {**self._describe, "status": "held", HELD_BECAUSE: reasons}
        described["status_when_accepted"] = self._describe.get("status")
        self._write_manifest(folder, self._manifest(described))
        self._writer.is_kept = True
        month = self._partition.month or "undated"
        return PartitionHeld(
            f"{self._partition} is held back: {'; '.join(reasons)}. Look at it (`tidemark corpus "
            f"show {self._partition.source} {month} --held`), then seal it with "
            f"`tidemark corpus accept {self._partition.source} {month} --why TEXT`, "
            "or crawl it again"
        )

    def _manifest(self, describe: Mapping[str, object]) -> dict[str, object]:
        return {
            "source": self._partition.source,
            "month": str(self._partition.month) if self._partition.month else None,
            "version": self._version,
            "sealed_at": dt.datetime.now(dt.UTC).isoformat(timespec="microseconds"),
            **describe,
            "content": self._writer.content,
            "digest": self._digest,
            "num_documents": self._writer.num_documents,
            "num_bytes": self._writer.num_bytes,
            "files": self._writer.files,
        }

    def _write_manifest(self, folder: str, manifest: Mapping[str, object]) -> None:
        self._store.write_bytes(f"{folder}/{MANIFEST}", _as_json(manifest))

    def _clear(self, newest: Seal) -> None:
        """Delete what killed runs have left: in the newest version's folder, and in the next."""
        clear_folder(self._store, newest)
        following = self._partition.folder_of(newest.version + 1)
        if not self._store.exists(f"{following}/{MANIFEST}"):
            self._store.delete(following)


def clear_folder(store: Store, seal: Seal) -> None:
    """Delete parts that a version's manifest does not name, and files that were being written."""
    for pattern in ("part-*", ".tmp-*"):
        for path in store.list(f"{seal.folder}/{pattern}"):
            if path not in seal.parts:
                store.delete(path)


def _as_json(manifest: Mapping[str, object]) -> bytes:
    return (json.dumps(manifest, indent=2, ensure_ascii=False, default=str) + "\n").encode()


def held_folder(partition: Partition) -> str:
    """Where what was held back of a partition is, under the data root."""
    return f"{partition.path}/held"


def read_held(store: Store, partition: Partition) -> Seal | None:
    """Return what is held back of a partition, or None.

    Raises:
        StorageError: its manifest is damaged.
    """
    path = f"{held_folder(partition)}/{MANIFEST}"
    return read_manifest(store, partition, path) if store.exists(path) else None


def delete_held(store: Store, partition: Partition) -> None:
    """Let go of what is held back of a partition, if anything; its manifest first."""
    store.delete(f"{held_folder(partition)}/{MANIFEST}")
    store.delete(held_folder(partition))


def accept_held(store: Store, partition: Partition, why: str) -> Seal:
    """Seal what is held back, which somebody has looked at.

    A run that was killed half-way is simply run again.

    Args:
        store: the data root.
        partition: whose.
        why: it is right all the same; goes into the manifest with the reasons.

    Raises:
        UsageError: nothing is held back of this partition, or ``why`` is empty.
        StorageError: what is held is damaged.
    """
    held = read_held(store, partition)
    if held is None:
        raise UsageError(f"nothing is held back of {partition}")
    if not why.strip():
        raise UsageError("say why it is right: --why TEXT")
    for path, problem in find_damage(store, held):
        raise StorageError(f"{store.url(path)} {problem}; crawl {partition} again")
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    accepted = {"why": why.strip(), "at": now, "although": held.manifest[HELD_BECAUSE]}
    derived = ("source", "month", "version", "sealed_at", HELD_BECAUSE, "status_when_accepted")
    describe = {key: value for key, value in held.manifest.items() if key not in derived}
    describe |= {"status": held.manifest["status_when_accepted"], "accepted": accepted}
    names = [path.rpartition("/")[2] for path in store.list(f"{held.folder}/*")]
    beside = {
        name: store.read_bytes(f"{held.folder}/{name}")
        for name in names
        if name != MANIFEST and not name.startswith(("part-", ".tmp-"))
    }
    tables = (pa.Table.from_batches([batch]) for batch in read_documents(store, held))
    seal = seal_partition(store, partition, tables, describe, True, beside)
    delete_held(store, partition)
    return seal


def list_held(store: Store) -> Iterator[Seal]:
    """Yield all that is held back."""
    for path in store.list(f"corpus/source=*/month=*/held/{MANIFEST}"):
        yield read_manifest(store, partition_of(path), path)
