"""Compression methods: the settings of each compressor that serves as a control.

Every code is complete: it has its headers, checksums and end marks. The code and the name of the
method restore exactly the original bytes. The methods, and how media methods treat other bytes:

    gzip    RFC 1952, level 9, no time stamp
    zlib    RFC 1950, level 9
    zstd    RFC 8878, level 19
    xz      the .xz format, preset 6
    brotli  RFC 7932, quality 11
    ppmd    PPMd variant I of order 12 with 64 MiB, cleared when full; an end mark
    png     ISO 15948 through Pillow, level 9, adaptive filters. An image keeps its rows; other
            bytes are one row of 8-bit grey pixels. More than 4 MiB become several images of 4 MiB
            of whole rows, because Pillow holds an image as a whole
    flac    RFC 9639 through libsndfile, level 8, one channel of 16 kHz. A recording has samples of
            16 bits; other bytes are samples of 8 bits, the byte less 128

Li et al. (arXiv 2402.00861, Table 3) give PNG and FLAC for every modality, but not the layout of
text.
"""

from __future__ import annotations

import io
import os
import platform
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from core.errors import ModelLoadError, UnknownName

_SAMPLE_RATE = 16_000  # of tidemark's recordings; FLAC's size does not depend on it
_IMAGE_BYTES = 2**22  # passed to Pillow at once
# pyppmd 1.3 loses a byte if a call's buffer of 32 KiB fills up within a symbol; the code cannot be
# decoded then. A symbol takes about three bytes at most, so this many bytes never fill the buffer.
_PPMD_BYTES = 2**10


class Form(NamedTuple):
    """The layout of bytes, for methods made for images and sound."""

    width: int | None = None  # bytes in a row of an image; None: no image
    sample_bytes: int = 1  # 2 in a recording


class Encoder(Protocol):
    """A code being written. Nothing is inserted between the written pieces."""

    def write(self, data: bytes) -> None:
        """Append bytes: whole rows of an image, whole samples of a recording."""

    def close(self) -> None:
        """Write the rest of the code."""


@dataclass(frozen=True)
class Method:
    """A compressor at one setting.

    Attributes:
        revision: version of the compression library.
        start: begins a new code, so that threads share no state. Its arguments are the sink, the
            form of the bytes, and their number if known in advance.
        errors: exceptions that the library raises on failure.
        sees_form: True if the code depends on the form of the bytes.
    """

    revision: str
    start: Callable[[Sink, Form, int | None], Encoder]
    errors: tuple[type[Exception], ...]
    sees_form: bool = False


class ByteCounter:
    """A sink that counts bytes and stores none."""

    def __init__(self) -> None:
        self.num_bytes = 0
        self._position = 0

    def write(self, data: bytes, /) -> int:
        """Count the bytes written beyond the end."""
        self._position += len(data)
        self.num_bytes = max(self.num_bytes, self._position)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Move to a position."""
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.num_bytes}
        self._position = origin[whence] + offset
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position


Sink = ByteCounter | io.BytesIO  # receives a code; never read during compression


def load_method(name: str) -> Method:
    """Return a method.

    Raise UnknownName if there is none, and ModelLoadError if its library is missing or lacks it.
    """
    if name not in _METHODS:
        raise UnknownName("compressor", name, list(COMPRESSORS))
    make, needs = _METHODS[name]
    try:
        return make()
    except (ImportError, OSError) as error:  # OSError: a C library cannot be loaded
        raise ModelLoadError(f"{name} cannot be used here: {error}; it needs {needs}") from error


class _Stream:
    """An encoder of a library that returns its code piece by piece."""

    def __init__(
        self, sink: Sink, compress: Callable[[bytes], bytes], flush: Callable[[], bytes]
    ) -> None:
        self._sink = sink
        self._compress = compress
        self._flush = flush

    def write(self, data: bytes) -> None:
        self._sink.write(self._compress(data))

    def close(self) -> None:
        self._sink.write(self._flush())


class _Images:
    """One PNG file, or several in a row for more than 4 MiB."""

    def __init__(self, sink: Sink, width: int | None) -> None:
        self._sink = sink
        self._width = width
        self._limit = max(_IMAGE_BYTES // (width or 1), 1) * (width or 1)
        self._waiting = bytearray()

    def write(self, data: bytes) -> None:
        self._waiting += data
        while len(self._waiting) >= self._limit:
            self._save(bytes(self._waiting[: self._limit]))
            del self._waiting[: self._limit]

    def close(self) -> None:
        if self._waiting:
            self._save(bytes(self._waiting))

    def _save(self, pixels: bytes) -> None:
        from PIL import Image

        width = self._width or len(pixels)
        image = Image.frombytes("L", (width, len(pixels) // width), pixels)
        file = io.BytesIO()
        image.save(file, "PNG", compress_level=9)
        self._sink.write(file.getvalue())


class _Recording:
    """One FLAC file."""

    def __init__(self, sink: Sink, sample_bytes: int) -> None:
        import soundfile

        self._is_wide = sample_bytes == 2
        self._file = soundfile.SoundFile(
            sink,
            "w",
            samplerate=_SAMPLE_RATE,
            channels=1,
            format="FLAC",
            subtype="PCM_16" if self._is_wide else "PCM_S8",
            compression_level=1.0,  # the scale 0 to 1 stands for FLAC's levels 0 to 8
        )

    def write(self, data: bytes) -> None:
        import numpy as np

        if self._is_wide:
            samples = np.frombuffer(data, "<i2").astype(np.int16)
        else:  # libsndfile uses the upper 8 of 16 bits
            samples = (np.frombuffer(data, np.uint8).astype(np.int16) - 128) << 8
        self._file.write(samples)

    def close(self) -> None:
        self._file.close()


def _deflate(window_bits: int) -> Method:
    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        stream = zlib.compressobj(9, zlib.DEFLATED, window_bits)
        return _Stream(sink, stream.compress, stream.flush)

    return Method(zlib.ZLIB_RUNTIME_VERSION, start, (zlib.error,))


def _zstd() -> Method:
    import zstandard

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        compressor = zstandard.ZstdCompressor(level=19)
        stream = compressor.compressobj(-1 if num_bytes is None else num_bytes)
        return _Stream(sink, stream.compress, stream.flush)

    revision = ".".join(map(str, zstandard.ZSTD_VERSION))
    return Method(revision, start, (zstandard.ZstdError,))


def _xz() -> Method:
    import lzma

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        stream = lzma.LZMACompressor(preset=6)
        return _Stream(sink, stream.compress, stream.flush)

    # Python does not report the version of its liblzma.
    return Method(f"python-{platform.python_version()}", start, (lzma.LZMAError,))


def _brotli() -> Method:
    import brotli

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        stream = brotli.Compressor(quality=11)
        return _Stream(sink, stream.process, stream.finish)

    return Method(brotli.__version__, start, (brotli.error,))


def _ppmd() -> Method:
    import pyppmd

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        stream = pyppmd.Ppmd8Encoder(12, 2**26, pyppmd.PPMD8_RESTORE_METHOD_RESTART)

        def compress(data: bytes) -> bytes:
            slices = (data[at : at + _PPMD_BYTES] for at in range(0, len(data), _PPMD_BYTES))
            return b"".join(map(stream.encode, slices))

        return _Stream(sink, compress, stream.flush)

    return Method(f"pyppmd-{pyppmd.__version__}", start, (pyppmd.PpmdError,))


def _png() -> Method:
    import PIL
    from PIL import features

    if not features.check("zlib"):
        raise ImportError("this Pillow was built without zlib")

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        return _Images(sink, form.width)

    # Pillow chooses the filters of the rows; the zlib in use compresses them.
    revision = f"pillow-{PIL.__version__}-zlib-{features.version('zlib')}"
    return Method(revision, start, (OSError, ValueError), sees_form=True)


def _flac() -> Method:
    import soundfile

    library = f"libsndfile-{soundfile.__libsndfile_version__}"
    if "FLAC" not in soundfile.available_formats():
        raise ImportError(f"{library} was built without FLAC")

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        return _Recording(sink, form.sample_bytes)

    # libFLAC reports its version only in the files it writes: "reference libFLAC 1.4.3 ...".
    file = io.BytesIO()
    encoder = start(file, Form(), None)
    encoder.write(b"some")
    encoder.close()
    _, _, told = file.getvalue().partition(b"libFLAC ")
    flac = told[: told.find(b" ")].decode("ascii", "replace") if told else "unknown"
    return Method(f"{library}-flac-{flac}", start, (soundfile.SoundFileError,), sees_form=True)


_METHODS: dict[str, tuple[Callable[[], Method], str]] = {
    "control:gzip": (lambda: _deflate(16 + zlib.MAX_WBITS), "a Python with zlib"),
    "control:zlib": (lambda: _deflate(zlib.MAX_WBITS), "a Python with zlib"),
    "control:zstd": (_zstd, "zstandard: pip install zstandard"),
    "control:xz": (_xz, "a Python with lzma"),
    "control:brotli": (_brotli, "brotli: pip install brotli"),
    "control:ppmd": (_ppmd, "pyppmd: pip install pyppmd"),
    "control:png": (_png, "Pillow with zlib: pip install pillow"),
    "control:flac": (
        _flac,
        "soundfile, with a libsndfile that has FLAC: pip install soundfile (its wheels bring one), "
        "or your system's libsndfile1",
    ),
}

COMPRESSORS = tuple(_METHODS)
