"""Pieces of images and recordings: their formats, and the type of a file by its first bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from core.schemas.tables import DocumentRow

MediaKind = Literal["image", "audio"]

# Regime of crawled media. Raise by 1 with a change of this package that changes pieces.
PIECES = "pieces-1"
HEIGHT = 64  # of a patch, in pixels
WIDTH = 128
SAMPLE_RATE = 16_000
SAMPLE_BYTES = 2
HEAD_BYTES = 12  # bytes that ``kind_of`` needs

_MIN_DEVIATION = 2.0  # standard deviation in grey levels, or in steps of 16-bit samples
_IMAGE = re.compile(rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|GIF8[79]a|RIFF.{4}WEBP", re.DOTALL)
# The last alternative is an MP3 file without tags: the frame header of MPEG audio, layer III.
_AUDIO = re.compile(
    rb"RIFF.{4}WAVE|RF64.{4}WAVE|fLaC|OggS|ID3|\xff[\xe2\xe3\xf2\xf3\xfa\xfb]", re.DOTALL
)


@dataclass(frozen=True)
class Piece:
    """A piece of an image or a recording: one document."""

    index: int  # the piece's number within the file
    data: bytes  # the bytes that models score
    place: Mapping[str, int | float]  # position in the file, such as ``begin_s`` (seconds)


def kind_of(head: bytes) -> MediaKind | None:
    """Return the kind of a file by its first bytes; None if its format is not read."""
    if _IMAGE.match(head):
        return "image"
    return "audio" if _AUDIO.match(head) else None


def is_flat(kind: MediaKind, data: bytes) -> bool:
    """Return True if a piece hardly varies: a plain area of an image, or silence."""
    values = np.frombuffer(data, dtype=np.uint8 if kind == "image" else "<i2")
    return bool(values.std() < _MIN_DEVIATION)


def media_columns(kind: MediaKind, data: bytes) -> DocumentRow:
    """Return the columns of schema MEDIA that describe a piece and its format."""
    columns: DocumentRow = {"media_kind": kind, "channels": 1, "media": data}
    if kind == "image":
        return {**columns, "codec": "grey8", "width": WIDTH, "height": HEIGHT}
    duration_s = len(data) / (SAMPLE_RATE * SAMPLE_BYTES)
    return {
        **columns, "codec": "pcm_s16le", "sample_rate": SAMPLE_RATE, "duration_s": duration_s,
    }  # fmt: skip
