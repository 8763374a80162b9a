"""Import of images or recordings: a user's files become one sealed partition.

Images (PNG, JPEG, WebP, GIF) are cut into greyscale patches. Recordings (WAV, FLAC, Ogg, MP3) are
cut into segments of 16 kHz mono PCM. Both follow Li et al. 2024, section 4.1. Each patch or
segment is a document, and all documents of a file form a cluster. The type of a file is detected
from its first bytes, not from its name. Links and hidden files are skipped.
"""

from __future__ import annotations

import json
import os
import re
import struct
import tempfile
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np
import numpy.typing as npt
import soundfile
import soxr
from PIL import Image

from core.corpus.partition import Partition, Seal
from core.corpus.sealing import seal_partition
from core.corpus.tombstones import is_forgotten, item_key, list_tombstones
from core.errors import ItemUnavailable, MalformedInput, UsageError
from core.storage.store import Store, explain_disk_errors
from crawlers.contract import Drop, DropReason
from crawlers.imports.text_files import Piece, regular_files, require_target, require_unicode
from crawlers.imports.texts import Import

MediaKind = Literal["image", "audio"]

_IMAGE = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP", re.DOTALL)
# The last alternative is an MP3 file without tags: the frame header of MPEG audio, layer III.
_AUDIO = re.compile(
    rb"RIFF.{4}WAVE|RF64.{4}WAVE|fLaC|OggS|ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]", re.DOTALL
)
_HEAD_BYTES = 12


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
    run = Import(path, partition, judge.outcomes(), _RULES[kind])
    return seal_partition(store, partition, run, replace)


def _find_kinds(path: Path) -> dict[str, MediaKind | None]:
    if not (path.is_dir() or path.is_file()):
        raise UsageError(f"there is no file or folder {path}")
    try:
        names = regular_files(path) if path.is_dir() else [path.name]
        return {
            require_unicode(each, f"the name {each!r}"): _kind_of(
                path / each if path.is_dir() else path
            )
            for each in names
        }
    except OSError as error:
        raise MalformedInput(f"{path} cannot be read: {error}") from error


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


@dataclass(frozen=True)
class _Judge:
    path: Path
    kind: MediaKind  # image or audio: only files of this kind are imported
    kinds: Mapping[str, MediaKind | None]  # kind of each file by name; None for other formats
    partition: Partition
    licence: str
    forgotten: frozenset[str]

    def outcomes(self) -> Iterator[dict[str, Any] | Drop]:
        for name, kind in self.kinds.items():
            yield from self._documents_of(name, kind)

    def _documents_of(self, name: str, kind: MediaKind | None) -> Iterator[dict[str, Any] | Drop]:
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

    def _examine(self, name: str, piece: Piece) -> dict[str, Any] | Drop:
        native_id, source = f"{name}:{piece.index}", self.partition.source
        if is_forgotten(self.forgotten, source, native_id, None):
            return Drop(item_key(source, native_id), "forgotten")
        return {
            "native_id": native_id,
            "cluster_id": name,
            "date_kind": "given" if self.partition.month else "none",
            "title": name,
            "licence": self.licence,
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


HEIGHT, WIDTH = 64, 128  # size of a patch in pixels
MAX_PATCHES = 16  # maximum patches of one image; more would add little new data
MAX_PIXELS = 2**26  # maximum per image (600 MB decoded); cameras have 50 million pixels (2026)
_IMAGE_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
_ORIENTATION = 0x0112  # EXIF tag
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Errors that Pillow raises on damaged files: documented ones, and ones seen after bit flips.
_DAMAGE = (
    OSError, SyntaxError, ValueError, TypeError, IndexError, EOFError, struct.error, zlib.error,
)  # fmt: skip


def read_patches(path: Path) -> list[Piece]:
    """Cut an image into greyscale patches: a grid from the top left corner, row by row.

    The image is first rotated by its EXIF data, and never resized. A patch has 64 rows of 128
    bytes. If the grid has more than ``MAX_PATCHES`` patches, only that many are kept, spread over
    the image. A patch's number is its position in the whole grid, row by row. Of an animation, only
    the first frame is used. Raise ItemUnavailable with a reason: ``damaged`` (or truncated),
    ``too_large`` (more than ``MAX_PIXELS``) or ``too_small`` (less than one patch).
    """
    with path.open("rb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ignore Pillow's warnings: ``_grey`` checks the size
        try:
            with Image.open(file, formats=_IMAGE_FORMATS) as image:
                grey = _grey(image)
        except Image.DecompressionBombError as error:
            raise ItemUnavailable("too_large", str(error)) from error
        except _DAMAGE as error:
            raise ItemUnavailable("damaged", f"not a whole image: {error}") from error
    return _cut_patches(grey)


def _grey(image: Image.Image) -> npt.NDArray[np.uint8]:
    """Decode an image to greyscale bytes; shape (height, width)."""
    width, height = image.size
    if width * height > MAX_PIXELS:
        raise ItemUnavailable(
            "too_large", f"{width} x {height} pixels, at most {MAX_PIXELS} in all are read"
        )
    turn = _TURNS.get(image.getexif().get(_ORIENTATION, 1))
    if image.mode.startswith("I;16"):  # Pillow would clip 16-bit values at 255
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    if "transparency" in image.info:
        image = image.convert("RGBA")
    image = image.convert("L")
    return np.asarray(image if turn is None else image.transpose(turn))


def _cut_patches(grey: npt.NDArray[np.uint8]) -> list[Piece]:
    height, width = grey.shape
    rows, columns = height // HEIGHT, width // WIDTH
    if not rows * columns:
        raise ItemUnavailable(
            "too_small", f"{width} x {height} pixels, at least {WIDTH} x {HEIGHT} are needed"
        )
    side = int(MAX_PATCHES**0.5)
    num_rows = min(rows, max(side, MAX_PATCHES // columns))
    num_columns = min(columns, MAX_PATCHES // num_rows)
    pieces = []
    for row in _spread(num_rows, rows):
        for column in _spread(num_columns, columns):
            top, left = row * HEIGHT, column * WIDTH
            patch = grey[top : top + HEIGHT, left : left + WIDTH]
            place = {"top": top, "left": left, "image_width": width, "image_height": height}
            pieces.append(Piece(row * columns + column, patch.tobytes(), place))
    return pieces


def _spread(count: int, total: int) -> list[int]:
    """Return ``count`` evenly spread numbers from 0 to ``total - 1``; ``count`` <= ``total``."""
    return [(2 * index + 1) * total // (2 * count) for index in range(count)]


SAMPLE_RATE = 16_000
SAMPLE_BYTES = 2
# The default protocol scores windows of 2,047 bytes, which is 64 ms of sound. A segment of 4 s has
# about sixty windows (128 kB), as many bytes as a long article.
SEGMENT_S = 4
MIN_S = 1  # a shorter rest at the end is joined to the segment before it
MAX_S = 6 * 3600  # maximum length, since even a small file may contain many hours of silence
MIN_SAMPLE_RATE = 8_000  # as in telephony; at lower rates, speech is unintelligible
_FORMATS = {"WAV", "WAVEX", "FLAC", "OGG", "MP3"}
_UNKNOWN_BYTES = 0x7FFF_0000  # WAV headers state this or more if the length is unknown (pipe)
_MP3_SLACK_FRAMES = 4 * 1152  # tolerance of estimated lengths; a frame is one sample per channel
_MP3_TAG_SHARE = 1 / 8  # tags after the sound have at most this share of a file's bytes
_BLOCK_SAMPLES = 2**18  # samples decoded at a time, all channels together
_SPOOL_BYTES = 2**24  # a longer decoded recording goes to a temporary file


def read_segments(path: Path) -> Iterator[Piece]:
    """Cut a recording into segments of 4 s of 16 kHz mono PCM; the last segment has 1 to 5 s.

    Channels are averaged. Other sample rates are resampled (soxr, very high quality, in float64).
    Rounding to 16 bits then hides differences of resampling between machines. The whole recording
    is decoded to a temporary file first, so memory does not grow with its length. Raise
    ItemUnavailable with a reason: ``damaged`` (or truncated), ``too_short``, ``too_long``,
    ``low_quality`` (sample rate below 8 kHz) or ``unknown_format``. Raise StorageError if the
    temporary folder is too full for the decoded recording.
    """
    with path.open("rb", buffering=0) as file, tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as pcm:
        _require_declared_size(file)
        try:
            # Open a file descriptor: given a path, soundfile would take the format from its suffix.
            with (
                soundfile.SoundFile(file.fileno(), closefd=False) as sound,
                explain_disk_errors(tempfile.gettempdir()),
            ):
                num_frames, num_samples = _decode(sound, pcm)
                _require_whole(sound, num_frames, file)
        except soundfile.SoundFileError as error:
            raise ItemUnavailable("damaged", f"not a whole recording: {error}") from error
        if num_samples < MIN_S * SAMPLE_RATE:
            seconds = num_samples / SAMPLE_RATE
            raise ItemUnavailable("too_short", f"{seconds:.2f} s, at least {MIN_S} s are needed")
        yield from _cut(pcm, num_samples)


def _require_declared_size(file: IO[bytes]) -> None:
    """Refuse a WAV file that is shorter than its header declares; libsndfile would accept it."""
    head = file.read(8)
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    declared = int.from_bytes(head[4:], "little") + len(head)
    if head[:4] == b"RIFF" and size + 1 < declared < _UNKNOWN_BYTES:  # padding may be missing
        raise ItemUnavailable("damaged", f"ends after {size} of {declared} bytes")


def _decode(sound: soundfile.SoundFile, pcm: IO[bytes]) -> tuple[int, int]:
    """Write 16 kHz mono to ``pcm``; return the numbers of frames read and of samples written."""
    if sound.format not in _FORMATS:
        raise ItemUnavailable("unknown_format", f"{sound.format} is not read")
    rate = sound.samplerate
    if rate < MIN_SAMPLE_RATE:
        raise ItemUnavailable(
            "low_quality", f"{rate} samples a second, at least {MIN_SAMPLE_RATE} are needed"
        )
    resampler = soxr.ResampleStream(rate, SAMPLE_RATE, 1, dtype="float64", quality="VHQ")
    num_samples = num_frames = 0
    is_last = False
    while not is_last:
        mono = _read_mono(sound)
        num_frames += len(mono)
        is_last = not len(mono)
        if rate != SAMPLE_RATE:
            mono = resampler.resample_chunk(mono, last=is_last)
        num_samples += len(mono)
        if num_samples > MAX_S * SAMPLE_RATE:
            raise ItemUnavailable("too_long", f"at most {MAX_S // 3600} hours are read")
        pcm.write(_quantise(mono))
    return num_frames, num_samples


def _read_mono(sound: soundfile.SoundFile) -> npt.NDArray[np.float64]:
    """Read a block of sound as mono, clipped to [-1, 1]; return an empty array at the end."""
    num_frames = max(1, _BLOCK_SAMPLES // sound.channels)
    frames = sound.read(num_frames, dtype="float64", always_2d=True).clip(-1, 1)
    mono: npt.NDArray[np.float64] = frames.mean(axis=1)
    if not np.isfinite(mono).all():
        raise ItemUnavailable("damaged", "a sample is not a number")
    return mono


def _quantise(mono: npt.NDArray[np.float64]) -> bytes:
    """Return samples of [-1, 1] as 16-bit PCM; samples of 16-bit files stay unchanged."""
    full_scale = 2**15
    return np.rint(mono * full_scale).clip(-full_scale, full_scale - 1).astype("<i2").tobytes()


def _require_whole(sound: soundfile.SoundFile, num_frames: int, file: IO[bytes]) -> None:
    slack = 0
    if sound.format == "MP3":
        # Without an index (Xing header), the length is estimated, and decoding stops there.
        slack = _MP3_SLACK_FRAMES
        position, size = file.tell(), file.seek(0, os.SEEK_END)
        if size - position > _MP3_TAG_SHARE * size:
            what = f"decoded {position} of {size} bytes: an MP3 of changing bit rate needs an index"
            raise ItemUnavailable("damaged", f"{what} (a Xing header); write it again")
    if num_frames < sound.frames - slack:
        raise ItemUnavailable("damaged", f"ends after {num_frames} of {sound.frames} frames")


def _cut(pcm: IO[bytes], num_samples: int) -> Iterator[Piece]:
    count = (num_samples // SAMPLE_RATE - MIN_S) // SEGMENT_S + 1
    pcm.seek(0)
    for index in range(count):
        is_last = index == count - 1
        data = pcm.read(-1 if is_last else SEGMENT_S * SAMPLE_RATE * SAMPLE_BYTES)
        yield Piece(index, data, {"begin_s": index * SEGMENT_S})


_READERS: dict[MediaKind, Callable[[Path], Iterable[Piece]]] = {
    "image": read_patches,
    "audio": read_segments,
}
_RULES: dict[MediaKind, dict[str, object]] = {
    "image": {"patch_height": HEIGHT, "patch_width": WIDTH, "max_patches": MAX_PATCHES},
    "audio": {"sample_rate": SAMPLE_RATE, "segment_s": SEGMENT_S},
}
