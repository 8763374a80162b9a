"""Sealing: publish documents as a new version of a partition, atomically.

A crawl that fails a check is "held": it is stored in the folder ``held/`` and not sealed. It
stays there until an operator accepts it or another crawl replaces it.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import pyarrow as pa

from core.corpus.partition import (
    MANIFEST,
    Partition,
    Seal,
    list_sealed_sources,
    list_versions,
    partition_of,
    read_documents,
    read_manifest,
)
from core.corpus.parts import PartWriter, find_damage, holds_text
from core.corpus.tombstones import list_tombstones
from core.errors import (
    PartitionHeld,
    PartitionSealed,
    SchemaMismatch,
    StorageError,
    UsageError,
    did_you_mean,
)
from core.schemas.tables import DOCUMENTS, MEDIA
from core.schemas.validation import validate
from core.storage.store import Store

# Entries of a manifest that are not updated when another crawl finds the same content.
_OF_THE_VERSION = ("digest", "content_digest", "forgotten", "accepted")
_SEALED_MEANWHILE = "{}: another process sealed it meanwhile; run the same again"
_SEALING = ".sealing"  # empty file in the folder of a version until its manifest is written
HELD_BECAUSE = "held_because"  # manifest key of the list of failed checks


@dataclass(frozen=True)
class Description:
    """The manifest and the additional files of a version."""

    manifest: Mapping[str, object] = field(default_factory=dict)  # manifest entries by key
    files: Mapping[str, bytes] = field(default_factory=dict)  # content of small files, by name
    held_because: Sequence[str] = ()  # failed checks; if any, the crawl is held, not sealed


def seal_partition(
    store: Store,
    partition: Partition,
    contents: Iterable[pa.Table | Description],
    replace: bool = False,
) -> Seal:
    """Write documents as Parquet parts, then the manifest that publishes them.

    The contents are tables of schema DOCUMENTS, or of MEDIA of one kind, in final row order. A
    description may follow as the last item.

    If several processes seal the same version at once, only one succeeds.

    With ``replace``, different content is sealed as the next version. If the content is the same,
    the manifest of the newest version is updated, and its damaged files are repaired.

    Returns:
        The new seal, or the seal of the newest version if its content is the same.

    Raises:
        PartitionSealed: different content is sealed and ``replace`` is not set.
        PartitionHeld: the documents failed a check and are held; nothing is sealed.
        SchemaMismatch: a row does not fit its schema, belongs to another partition, or differs in
            kind from earlier rows; nothing is sealed.
        StorageError: another process sealed this version during the call, or a takedown ran. Or
            the folder has texts of a sealed version whose manifest is lost.
    """
    tombstones = list_tombstones(store)
    versions = list_versions(store, partition)
    folder = partition.folder_of(_next_version(versions))
    require_manifest(store, folder)
    writer = PartWriter(store, folder, str(partition))
    description = Description()
    try:
        for item in contents:
            if isinstance(item, Description):
                description = item
                continue
            schema = DOCUMENTS if holds_text(item) else MEDIA
            valid = validate(item, schema, where=str(partition))
            writer.add(_require_partition(valid, partition))
        writer.close()
        with store.alone(partition.path):
            # Another process may have changed versions or tombstones since this call began.
            if list_tombstones(store) != tombstones:
                raise StorageError(
                    f"{partition}: documents were forgotten meanwhile; run the same again, "
                    "without them"
                )
            if list_versions(store, partition) != versions or not writer.are_there:
                raise StorageError(_SEALED_MEANWHILE.format(partition))
            return _Sealing(store, partition, versions, writer, description).finish(replace)
    except BaseException as error:  # also delete the parts after cancellation
        writer.discard()
        is_gone = isinstance(error.__cause__, FileNotFoundError)
        if is_gone and list_versions(store, partition) != versions:
            # Another process sealed the version first, and deleted the parts of this process.
            raise StorageError(_SEALED_MEANWHILE.format(partition)) from error
        raise


def _next_version(versions: Sequence[Seal]) -> int:
    return versions[-1].version + 1 if versions else 1


def require_manifest(store: Store, folder: str) -> None:
    """Raise StorageError if the folder has the files of a sealed version without its manifest.

    A killed crawl leaves only parts, or parts and the file ``.sealing``. Neither is an error.
    """
    paths = store.list(f"{folder}/*")
    names = {path.rpartition("/")[2] for path in paths}
    parts = {name for name in names if name.startswith("part-")}
    further = {name for name in names - parts if name.endswith((".parquet", ".zst"))}
    further = {name for name in further if not name.startswith(".tmp-")}
    if parts and further and not names & {MANIFEST, _SEALING}:
        raise StorageError(
            f"{store.url(folder)} has sealed texts, and their {MANIFEST} is missing; nothing was "
            f"changed. Bring {MANIFEST} back from a backup; or move the folder out of the data "
            "root, then crawl or import the month again. Keep what was moved, as it may be the "
            "only copy of the texts"
        )


def _require_partition(table: pa.Table, partition: Partition) -> pa.Table:
    """Return the table if all rows belong to the partition; raise SchemaMismatch if not."""
    month = partition.month.first_day if partition.month else None
    for name, expected in (("source", partition.source), ("month", month)):
        found = table[name].unique().to_pylist()
        if found and found != [expected]:
            raise SchemaMismatch(f"{partition}: {name} must be {expected} in all rows: {found}")
    return table


class _Sealing:
    """The last step of sealing: seal the written documents, hold them, or discard them."""

    def __init__(
        self,
        store: Store,
        partition: Partition,
        versions: Sequence[Seal],
        writer: PartWriter,
        description: Description,
    ) -> None:
        self._store = store
        self._partition = partition
        self._writer = writer
        self._newest = versions[-1] if versions else None
        self._version = _next_version(versions)
        self._digest = writer.digest.hexdigest()
        self._description = description

    def finish(self, replace: bool) -> Seal:
        """Keep the sealed version if its content is equal; else hold the new one, or seal it."""
        reasons = self._description.held_because
        if self._newest is not None and self._newest.content_digest == self._digest:
            return self._keep(self._newest, replace and not reasons)
        if self._newest is not None and not replace:
            raise PartitionSealed(
                f"{self._partition} is sealed with other content ({self._newest.num_documents} "
                f"documents, digest {self._newest.digest[:12]}, now {self._writer.num_documents} "
                f"documents, digest {self._digest[:12]}); use --replace to seal the new content "
                "as its next version"
            )
        if reasons:
            raise self._hold(reasons)
        return self._seal()

    def _keep(self, newest: Seal, with_new_manifest: bool) -> Seal:
        """Keep the newest version, whose content is equal; renew its manifest if asked to."""
        if not with_new_manifest:
            self._writer.discard()
            self._clear(newest)
            return newest
        files = newest.manifest["files"]
        # A partial version may lack metadata that its digest does not cover, such as licences.
        if newest.is_partial or any(find_damage(self._store, newest)):
            self._writer.move(newest.folder)
            files = self._writer.files
        for name, data in self._description.files.items():
            self._store.write_bytes(f"{newest.folder}/{name}", data)
        former = newest.manifest
        unchanged = {name: former[name] for name in _OF_THE_VERSION if name in former}
        unchanged["sealed_at"] = former.get("sealed_at", former.get("ended_at"))
        manifest = {**self._manifest(self._description.manifest), **unchanged, "files": files}
        manifest["version"] = newest.version
        self._store.write_bytes(f"{newest.folder}/{MANIFEST}", _as_json(manifest))
        # Delete the written parts, unless they have replaced those of the newest version.
        self._writer.is_kept = files is self._writer.files
        self._writer.discard()
        kept = read_manifest(self._store, self._partition, f"{newest.folder}/{MANIFEST}")
        self._clear(kept)
        return kept

    def _seal(self) -> Seal:
        """Write the manifest, which makes the version the present one, and delete leftovers."""
        folder = self._partition.folder_of(self._version)
        if self._description.files:
            self._store.write_bytes(f"{folder}/{_SEALING}", b"")
        for name, data in self._description.files.items():
            self._store.write_bytes(f"{folder}/{name}", data)
        path = f"{folder}/{MANIFEST}"
        if not self._store.create_bytes(path, _as_json(self._manifest(self._description.manifest))):
            raise StorageError(_SEALED_MEANWHILE.format(self._partition))
        self._writer.is_kept = True
        seal = read_manifest(self._store, self._partition, path)
        self._clear(seal)
        delete_held(self._store, self._partition)
        return seal

    def _hold(self, reasons: Sequence[str]) -> PartitionHeld:
        """Move the parts to the folder of held crawls; return the error with the reasons."""
        folder = held_folder(self._partition)
        delete_held(self._store, self._partition)
        self._writer.move(folder)
        for name, data in self._description.files.items():
            self._store.write_bytes(f"{folder}/{name}", data)
        former = self._description.manifest
        described = {**former, "status": "held", HELD_BECAUSE: list(reasons)}
        described["status_when_accepted"] = former.get("status")
        self._store.write_bytes(f"{folder}/{MANIFEST}", _as_json(self._manifest(described)))
        self._writer.is_kept = True
        month = self._partition.month or "undated"
        return PartitionHeld(
            f"{self._partition} is held back: {'; '.join(reasons)}. Look at it (`tidemark corpus "
            f"show {self._partition.source} {month} --held`), then seal it with "
            f"`tidemark corpus accept {self._partition.source} {month} --why TEXT`, "
            "or crawl it again"
        )

    def _manifest(self, crawl_entries: Mapping[str, object]) -> dict[str, object]:
        """Return the manifest of this version, with the entries that the crawl adds."""
        return {
            "source": self._partition.source,
            "month": str(self._partition.month) if self._partition.month else None,
            "version": self._version,
            "sealed_at": dt.datetime.now(dt.UTC).isoformat(timespec="microseconds"),
            **crawl_entries,
            "content": self._writer.content,
            "digest": self._digest,
            "num_documents": self._writer.num_documents,
            "num_bytes": self._writer.num_bytes,
            "files": self._writer.files,
        }

    def _clear(self, newest: Seal) -> None:
        """Delete files that killed runs left in the folders of the newest and the next version."""
        for pattern in ("part-*", ".tmp-*", _SEALING):
            for path in self._store.list(f"{newest.folder}/{pattern}"):
                if path not in newest.parts:
                    self._store.delete(path)
        following = self._partition.folder_of(newest.version + 1)
        if not self._store.exists(f"{following}/{MANIFEST}"):
            self._store.delete(following)


def _as_json(manifest: Mapping[str, object]) -> bytes:
    return (json.dumps(manifest, indent=2, ensure_ascii=False, default=str) + "\n").encode()


def held_folder(partition: Partition) -> str:
    """Return the folder of a partition's held crawl, relative to the data root."""
    return f"{partition.path}/held"


def read_held(store: Store, partition: Partition) -> Seal | None:
    """Return the held crawl of a partition, or None; StorageError if its manifest is damaged."""
    path = f"{held_folder(partition)}/{MANIFEST}"
    return read_manifest(store, partition, path) if store.exists(path) else None


def delete_held(store: Store, partition: Partition) -> None:
    """Delete the held crawl of a partition, if there is one, beginning with its manifest."""
    store.delete(f"{held_folder(partition)}/{MANIFEST}")
    store.delete(held_folder(partition))


def accept_held(store: Store, partition: Partition, why: str) -> Seal:
    """Seal the held crawl of a partition after review by an operator.

    The manifest stores the operator's reason ``why``. If this call is killed, repeat it.

    Raises:
        UsageError: the partition has no held crawl, or ``why`` is empty.
        StorageError: the held crawl is damaged.
    """
    held = read_held(store, partition)
    if held is None:
        meant = did_you_mean(partition.source, list_sealed_sources(store))
        raise UsageError(
            f"nothing is held back of {partition}; {meant}see `tidemark status` for what is"
        )
    if not why.strip():
        raise UsageError("say why it is right: --why TEXT")
    for path, problem in find_damage(store, held):
        raise StorageError(f"{store.url(path)} {problem}; crawl {partition} again")
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    accepted = {"why": why.strip(), "at": now, "although": held.manifest[HELD_BECAUSE]}
    # Sealing computes these entries again, or they are of the held crawl only.
    left_out = ("source", "month", "version", "sealed_at", HELD_BECAUSE, "status_when_accepted")
    describe = {key: value for key, value in held.manifest.items() if key not in left_out}
    describe |= {"status": held.manifest["status_when_accepted"], "accepted": accepted}
    names = [path.rpartition("/")[2] for path in store.list(f"{held.folder}/*")]
    files = {
        name: store.read_bytes(f"{held.folder}/{name}")
        for name in names
        if name != MANIFEST and not name.startswith(("part-", ".tmp-"))
    }
    tables = (pa.Table.from_batches([batch]) for batch in read_documents(store, held))
    contents = chain(tables, [Description(describe, files)])
    seal = seal_partition(store, partition, contents, replace=True)
    delete_held(store, partition)
    return seal


def list_held(store: Store) -> Iterator[Seal]:
    """Yield the manifests of all held crawls."""
    for path in store.list(f"corpus/source=*/month=*/held/{MANIFEST}"):
        yield read_manifest(store, partition_of(path), path)
