"""Recordings as byte streams: 16 kHz mono PCM, signed 16-bit little-endian.

Source: 16 kHz audio in pieces as in Li et al. 2024, section 4.1.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import soundfile
import soxr

from core.errors import ItemUnavailable
from core.storage import explain_disk_errors
from crawlers.user_files import Piece

Samples = npt.NDArray[np.float64]

SAMPLE_RATE = 16_000
SAMPLE_BYTES = 2
# A window of the default protocol is 2,047 bytes, 64 ms. Some sixty of them make a document of an
# article's size, so that a minute of speech counts as some documents and not as one.
SEGMENT_S = 4
MIN_S = 1  # a shorter rest is left to the segment before it
MAX_S = 6 * 3600  # a small file of silence could decode to any length
MIN_SAMPLE_RATE = 8_000  # a telephone's; speech below that is a murmur
_FORMATS = {"WAV", "WAVEX", "FLAC", "OGG", "MP3"}
_UNKNOWN_BYTES = 0x7FFF_0000  # from here on, what writers to a pipe put for a length
_MP3_SLACK_FRAMES = 4 * 1152  # of a guessed length, in frames of one sample a channel
_MP3_TAG_SHARE = 1 / 8  # of a file; tags may follow the sound
_BLOCK_SAMPLES = 2**18  # decoded at a time, over all channels
_SPOOL_BYTES = 2**24  # of a recording in memory; the rest goes to a temporary file


def read_segments(path: Path) -> Iterator[Piece]:
    """Cut a recording into segments of four seconds; the last has one to five.

    Channels are averaged, other sample rates are resampled (soxr, very high quality, in float64, so
    that rounding hides the differences between machines). Nothing is decoded twice and memory
    does not grow with the length.

    Yields:
        The segments, numbered from 0; the first one after the whole recording is decoded.

    Raises:
        ItemUnavailable: ``damaged``, also where it ends early; ``too_short``; ``too_long``;
            ``low_quality`` for a sample rate below 8 kHz; ``unknown_format``.
        StorageError: there is no room for the decoded recording in the temporary folder.
    """
    with path.open("rb", buffering=0) as file, tempfile.SpooledTemporaryFile(_SPOOL_BYTES) as pcm:
        _require_declared_size(file)
        try:
            # By number: from a name, soundfile would take the format of the suffix.
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
    """Refuse a WAV file that ends before its header says, which libsndfile would not mind."""
    head = file.read(8)
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    declared = int.from_bytes(head[4:], "little") + len(head)
    if head[:4] == b"RIFF" and size + 1 < declared < _UNKNOWN_BYTES:  # the last byte is padding
        raise ItemUnavailable("damaged", f"ends after {size} of {declared} bytes")


def _decode(sound: soundfile.SoundFile, pcm: IO[bytes]) -> tuple[int, int]:
    """Write a recording as 16 kHz mono PCM; return how many frames it had, and samples now."""
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


def _read_mono(sound: soundfile.SoundFile) -> Samples:
    """Read some frames, clipped to full scale, and average their channels; none at the end."""
    num_frames = max(1, _BLOCK_SAMPLES // sound.channels)
    frames = sound.read(num_frames, dtype="float64", always_2d=True).clip(-1, 1)
    mono: Samples = frames.mean(axis=1)
    if not np.isfinite(mono).all():
        raise ItemUnavailable("damaged", "a sample is not a number")
    return mono


def _quantise(mono: Samples) -> bytes:
    """Return samples of [-1, 1] as 16-bit PCM; what had 16 bits before comes back unchanged."""
    full_scale = 2**15
    return np.rint(mono * full_scale).clip(-full_scale, full_scale - 1).astype("<i2").tobytes()


def _require_whole(sound: soundfile.SoundFile, num_frames: int, file: IO[bytes]) -> None:
    """Refuse a recording of which less was decoded than there is, or was."""
    slack = 0
    if sound.format == "MP3":
        # Without an index (Xing's) the length is a guess, and nothing beyond it is decoded.
        slack = _MP3_SLACK_FRAMES
        position, size = file.tell(), file.seek(0, os.SEEK_END)
        if size - position > _MP3_TAG_SHARE * size:
            raise ItemUnavailable(
                "damaged",
                f"decoded {position} of {size} bytes: an MP3 of changing bit rate needs "
                "an index (a Xing header); write it anew",
            )
    if num_frames < sound.frames - slack:
        raise ItemUnavailable("damaged", f"ends after {num_frames} of {sound.frames} frames")


def _cut(pcm: IO[bytes], num_samples: int) -> Iterator[Piece]:
    count = (num_samples // SAMPLE_RATE - MIN_S) // SEGMENT_S + 1
    pcm.seek(0)
    for index in range(count):
        is_last = index == count - 1
        data = pcm.read(-1 if is_last else SEGMENT_S * SAMPLE_RATE * SAMPLE_BYTES)
        yield Piece(index, data, {"begin_s": index * SEGMENT_S})
