"""Decoding of recordings, and cutting into segments of 16 kHz mono PCM (Li et al. 2024)."""

from __future__ import annotations

import heapq
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from core.errors import ItemUnavailable
from core.storage.store import explain_disk_errors
from crawlers.pieces import SAMPLE_BYTES, SAMPLE_RATE, Piece

# The default protocol scores windows of 2,047 bytes, which is 64 ms of sound. A segment of 4 s has
# about sixty windows (128 kB), as many bytes as a long article.
SEGMENT_S = 4
MIN_S = 1  # a shorter rest at the end is joined to the segment before it
MAX_S = 6 * 3600  # maximum length, since even a small file may contain many hours of silence
MIN_SAMPLE_RATE = 8_000  # as in telephony; at lower rates, speech is unintelligible
MAX_DRAWN = 16  # maximum segments that are drawn from one recording
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


def draw_segments(path: Path, rank: Callable[[int], bytes]) -> list[Piece]:
    """Cut ``MAX_DRAWN`` segments or fewer from a recording, those of the lowest rank first.

    Raise the errors of ``read_segments``.
    """
    return heapq.nsmallest(MAX_DRAWN, read_segments(path), key=lambda piece: rank(piece.index))


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
    """Raise an error if decoding ended before the length that the file states."""
    slack = 0
    if sound.format == "MP3":
        # Without an index (Xing header), the length is estimated, and decoding stops there.
        slack = _MP3_SLACK_FRAMES
        position = file.tell()
        size = file.seek(0, os.SEEK_END)
        if size - position > _MP3_TAG_SHARE * size:
            what = f"decoded {position} of {size} bytes: an MP3 of changing bit rate needs an index"
            raise ItemUnavailable("damaged", f"{what} (a Xing header); write it again")
    if num_frames < sound.frames - slack:
        raise ItemUnavailable("damaged", f"ends after {num_frames} of {sound.frames} frames")


def _cut(pcm: IO[bytes], num_samples: int) -> Iterator[Piece]:
    """Yield segments of a recording; the last one has the rest."""
    count = (num_samples // SAMPLE_RATE - MIN_S) // SEGMENT_S + 1
    pcm.seek(0)
    for index in range(count):
        is_last = index == count - 1
        data = pcm.read(-1 if is_last else SEGMENT_S * SAMPLE_RATE * SAMPLE_BYTES)
        yield Piece(index, data, {"begin_s": index * SEGMENT_S})
