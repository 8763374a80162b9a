"""Importing images or recordings that are there already: a user's files as one sealed partition.

Images (PNG, JPEG, WebP, GIF) become greyscale patches, recordings (WAV, FLAC, Ogg, MP3) segments of
16 kHz mono PCM: see ``images.py`` and ``recordings.py``. Each is a document, and those of one file
are a cluster. What a file is, its first bytes say, never its name; links and hidden files are left
out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import pyarrow as pa

from core.corpus import Partition, Seal, tables_of
from core.errors import ItemUnavailable, MalformedInput, UsageError
from core.sealing import seal_partition
from core.storage import Store
from core.tombstones import is_forgotten, item_key, list_tombstones
from crawlers import manifest
from crawlers.contract import Drop, DropReason
from crawlers.images import HEIGHT, MAX_PATCHES, WIDTH, read_patches
from crawlers.recordings import SAMPLE_BYTES, SAMPLE_RATE, SEGMENT_S, read_segments
from crawlers.user_files import Piece, regular_files, require_target, require_unicode

MediaKind = Literal["image", "audio"]

_IMAGE = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP", re.DOTALL)
# The last is the head of a frame of MPEG audio, layer III: MP3 without tags.
_AUDIO = re.compile(
    rb"RIFF.{4}WAVE|RF64.{4}WAVE|fLaC|OggS|ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]", re.DOTALL
)
_HEAD_BYTES = 12
_READERS: dict[MediaKind, Callable[[Path], Iterable[Piece]]] = {
    "image": read_patches,
    "audio": read_segments,
}
_RULES: dict[MediaKind, dict[str, object]] = {
    "image": {"patch_height": HEIGHT, "patch_width": WIDTH, "max_patches": MAX_PATCHES},
    "audio": {"sample_rate": SAMPLE_RATE, "segment_s": SEGMENT_S},
}


def import_media(
    path: Path,
    partition: Partition,
    store: Store,
    replace: bool = False,
    licence: str = "LicenseRef-unknown",
) -> Seal:
    """Seal the images or the recordings of a file or folder as one partition.

    Files that are damaged, too small or of another format are dropped; the manifest counts them by
    reason. Memory does not grow with the folder.

    Args:
        path: a file or a folder, of images or of recordings.
        partition: the source's name, and the month that the user says the files are from.
        store: the data root.
        replace: seal as the next version where other content is sealed.
        licence: SPDX id of all of them.

    Returns:
        The seal; the old one where the same documents are sealed already.

    Raises:
        UsageError: there is no such path, no image or recording in it, or both; the month is not
            over; the name is empty or that of a source of another kind.
        MalformedInput: a file cannot be read, or its name is no text.
        EmptyPartition: every file was dropped; the message counts the reasons.
        PartitionSealed: other content is sealed there and ``replace`` is not set.
    """
    kinds = _find_kinds(path)
    run = _Import(path, _only_kind(path, kinds), partition, licence)
    run.forgotten = list_tombstones(store)
    require_target(partition, run.kind, store)
    return seal_partition(store, partition, run.tables(kinds), run.describe, replace, run.beside)


def _find_kinds(path: Path) -> dict[str, MediaKind | None]:
    """Return the files by name, relative to a folder, with what their first bytes say."""
    if not (path.is_dir() or path.is_file()):
        raise UsageError(f"there is no file or folder {path}")
    try:
        names = regular_files(path) if path.is_dir() else [path.name]
        return {
            require_unicode(name, f"the name {name!r}"): _kind_of(_file(path, name))
            for name in names
        }
    except OSError as error:
        raise MalformedInput(f"{path} cannot be read: {error}") from error


def _file(path: Path, name: str) -> Path:
    return path / name if path.is_dir() else path


def _kind_of(file: Path) -> MediaKind | None:
    with file.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    if _IMAGE.match(head):
        return "image"
    return "audio" if _AUDIO.match(head) else None


def _only_kind(path: Path, kinds: dict[str, MediaKind | None]) -> MediaKind:
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


class _Import:
    """One run: its tables, and what the manifest says of it once they are used up."""

    def __init__(self, path: Path, kind: MediaKind, partition: Partition, licence: str) -> None:
        self.kind: MediaKind = kind
        self._path, self._partition, self._licence = path, partition, licence
        self.forgotten: frozenset[str] = frozenset()
        self.describe: dict[str, object] = {}
        self.beside: dict[str, bytes] = {}

    def tables(self, kinds: Mapping[str, MediaKind | None]) -> Iterator[pa.Table]:
        started_at = manifest.now()
        ledger = manifest.Ledger(self._partition)
        outcomes = (outcome for name in kinds for outcome in self._documents_of(name, kinds[name]))
        yield from tables_of(ledger.sift(outcomes), self._partition)
        self.describe.update(
            kind="import",
            code_version=manifest.code_version(),
            file=self._path.name,
            started_at=started_at,
            ended_at=manifest.now(),
            **_RULES[self.kind],
            **ledger.close(),
        )
        self.beside[manifest.DROPPED_FILE] = ledger.dropped_items()

    def _documents_of(self, name: str, kind: MediaKind | None) -> Iterator[dict[str, Any] | Drop]:
        """Yield the rows of a file, or why it has none: readers fail before the first piece."""
        file = _file(self._path, name)
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

    def _examine(self, name: str, piece: Piece) -> dict[str, Any] | Drop:
        row, source = self._row(name, piece), self._partition.source
        if is_forgotten(self.forgotten, source, row["native_id"], None):
            return Drop(item_key(source, row["native_id"]), "forgotten")
        return row

    def _row(self, name: str, piece: Piece) -> dict[str, Any]:
        return {
            "native_id": f"{name}:{piece.index}",
            "cluster_id": name,
            "date_kind": "given" if self._partition.month else "none",
            "title": name,
            "licence": self._licence,
            "extra": json.dumps(piece.place),
            "media_kind": self.kind,
            "channels": 1,
            "media": piece.data,
            **_columns(self.kind, piece.data),
        }


def _columns(kind: MediaKind, data: bytes) -> dict[str, object]:
    if kind == "image":
        return {"codec": "grey8", "width": WIDTH, "height": HEIGHT}
    duration_s = len(data) / (SAMPLE_RATE * SAMPLE_BYTES)
    return {"codec": "pcm_s16le", "sample_rate": SAMPLE_RATE, "duration_s": duration_s}
