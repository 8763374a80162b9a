"""Import of images or recordings: a user's files become one sealed partition.

Images (PNG, JPEG, WebP, GIF) are cut into greyscale patches. Recordings (WAV, FLAC, Ogg, MP3) are
cut into segments of 16 kHz mono PCM. Both follow Li et al. 2024, section 4.1. Each patch or
segment is a document, and all documents of a file form a cluster. The type of a file is detected
from its first bytes, not from its name. Links and hidden files are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from core.corpus.partition import Partition, Seal
from core.corpus.sealing import seal_partition
from core.corpus.tombstones import is_forgotten, item_key, list_tombstones
from core.errors import ItemUnavailable, MalformedInput, UsageError
from core.schemas.tables import DocumentRow
from core.storage.store import Store
from crawlers.contract import Drop, DropReason
from crawlers.imports.documents import ImportOptions
from crawlers.imports.readers import find_files
from crawlers.imports.target import contents_of, require_target
from crawlers.pieces import (
    HEAD_BYTES,
    HEIGHT,
    SAMPLE_RATE,
    WIDTH,
    MediaKind,
    Piece,
    kind_of,
    media_columns,
)
from extras.media.images import MAX_PATCHES, read_patches
from extras.media.recordings import SEGMENT_S, read_segments


def import_media(
    path: Path,
    partition: Partition,
    store: Store,
    replace: bool = False,
    licence: str = "LicenseRef-unknown",
) -> Seal:
    """Seal the images or the recordings of a file or folder as one partition.

    Files that are damaged, too small or of another format are dropped; the manifest counts them by
    reason. The use of memory does not depend on the number of files.

    Raises:
        UsageError: the path does not exist, or has no image or recording, or has both; the month is
            not over; the source's name is empty, or the source has another kind of content.
        MalformedInput: a file cannot be read, or its name is not Unicode text.
        EmptyPartition: every file was dropped; the message counts the reasons.
        PartitionSealed: different content is sealed already and ``replace`` is not set.
    """
    kinds = _find_kinds(path)
    kind = _only_kind(path, kinds)
    require_target(partition, kind, store)
    judge = _Judge(path, kind, kinds, partition, licence, list_tombstones(store))
    contents = contents_of(path.name, partition, judge.outcomes(), _RULES[kind])
    return seal_partition(store, partition, contents, replace)


def _find_kinds(path: Path) -> dict[str, MediaKind | None]:
    try:
        return {file.name: _kind_of(file.path) for file in find_files([path], ImportOptions())}
    except OSError as error:
        raise MalformedInput(f"{path} cannot be read: {error}") from error


def _kind_of(file: Path) -> MediaKind | None:
    with file.open("rb") as stream:
        return kind_of(stream.read(HEAD_BYTES))


def _only_kind(path: Path, kinds: dict[str, MediaKind | None]) -> MediaKind:
    """Return the kind of the files; raise an error if there is none, or both."""
    first = {kind: name for name, kind in reversed(kinds.items()) if kind}
    if not first:
        raise UsageError(
            f"{path} holds no image (PNG, JPEG, WebP, GIF) and no recording (WAV, FLAC, Ogg, MP3)"
        )
    if len(first) > 1:
        raise UsageError(
            f"{path} holds images ({first['image']}) and recordings ({first['audio']}); a source "
            "is of one kind, so put them into a folder each and import them as two sources"
        )
    [kind] = first
    return kind


@dataclass(frozen=True)
class _Judge:
    path: Path
    kind: MediaKind  # image or audio: only files of this kind are imported
    kinds: Mapping[str, MediaKind | None]  # kind of each file by name; None for other formats
    partition: Partition
    licence: str
    forgotten: frozenset[str]

    def outcomes(self) -> Iterator[DocumentRow | Drop]:
        for name, kind in self.kinds.items():
            yield from self._documents_of(name, kind)

    def _documents_of(self, name: str, kind: MediaKind | None) -> Iterator[DocumentRow | Drop]:
        """Yield a file's rows, or one drop: readers raise their errors before the first row."""
        file = self.path / name if self.path.is_dir() else self.path
        try:
            if kind is None:
                reason = "unknown_format" if file.stat().st_size else "empty"
                raise ItemUnavailable(reason, "begins like no image or recording that is read")
            for piece in _READERS[kind](file):
                yield self._examine(name, piece)
        except ItemUnavailable as error:
            yield Drop(name, cast(DropReason, error.reason), str(error))
        except OSError as error:
            raise MalformedInput(f"{file} cannot be read: {error}") from error

    def _examine(self, name: str, piece: Piece) -> DocumentRow | Drop:
        """Return a piece as a row; a Drop if it was taken down before."""
        native_id = f"{name}:{piece.index}"
        source = self.partition.source
        if is_forgotten(self.forgotten, source, native_id, None):
            return Drop(item_key(source, native_id), "forgotten")
        return {
            "native_id": native_id,
            "cluster_id": name,
            "date_kind": "given" if self.partition.month else "none",
            "title": name,
            "licence": self.licence,
            "extra": json.dumps(piece.place),
            **media_columns(self.kind, piece.data),
        }


_READERS: dict[MediaKind, Callable[[Path], Iterable[Piece]]] = {
    "image": read_patches,
    "audio": read_segments,
}
_RULES: dict[MediaKind, dict[str, object]] = {
    "image": {"patch_height": HEIGHT, "patch_width": WIDTH, "max_patches": MAX_PATCHES},
    "audio": {"sample_rate": SAMPLE_RATE, "segment_s": SEGMENT_S},
}
