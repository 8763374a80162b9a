"""Compression methods: the settings of each compressor that serves as a control.

Every compressed output is complete: it includes headers, checksums and end marks. So the original
bytes can be restored from the output and the name of the method. The methods are:

    gzip    RFC 1952, level 9, no time stamp
    zlib    RFC 1950, level 9
    zstd    RFC 8878, level 19
    xz      the .xz format, preset 6
    brotli  RFC 7932, quality 11
    ppmd    PPMd variant I, order 12, 64 MiB of memory that is cleared when full, an end mark
    png     ISO 15948 through Pillow, level 9, adaptive filters. An image keeps its rows; data that
            is no image becomes one row of 8-bit grey pixels. Data of more than 4 MiB becomes
            several images, because Pillow keeps a whole image in memory
    flac    RFC 9639 through libsndfile, level 8, one channel of 16 kHz. A recording has samples of
            16 bits; data that is no recording becomes samples of 8 bits (byte value minus 128)

Li et al. (arXiv 2402.00861, Table 3) report PNG and FLAC sizes for text, but not how they convert
text to images and sound.
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

_SAMPLE_RATE = 16_000  # samples per second; the size of a FLAC file does not depend on the rate
_IMAGE_BYTES = 2**22  # maximum size of one image
# pyppmd 1.3 loses a byte if a call's output buffer of 32 KiB fills up within a symbol. A symbol
# takes at most about three bytes, so an input of this many bytes never fills the buffer.
_PPMD_BYTES = 2**10
_PPMD_ORDER = 12
_PPMD_MEMORY_BYTES = 2**26
_ZSTD_LEVEL = 19
_XZ_PRESET = 6
_BROTLI_QUALITY = 11
_PNG_LEVEL = 9
_FLAC_LEVEL = 1.0  # libsndfile maps 0 to 1 to FLAC's levels 0 to 8


class Form(NamedTuple):
    """The layout of the bytes to compress, for methods made for images and sound."""

    width: int | None = None  # bytes in a row of an image, or None if the bytes are no image
    sample_bytes: int = 1  # bytes of a sample; 2 in a recording


class Encoder(Protocol):
    """Compresses the written pieces as one continuous sequence of bytes, into a sink."""

    def write(self, data: bytes) -> None:
        """Compress more bytes: whole rows of an image, or whole samples of a recording."""

    def close(self) -> None:
        """Write the end of the compressed output."""


@dataclass(frozen=True)
class Method:
    """A compressor at one setting.

    Attributes:
        start: function that returns a new encoder. Its arguments are the sink, the form of the
            bytes, and the number of bytes (None if not known in advance).
        sees_form: True if the compressed output depends on the form of the bytes.
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
        """Move the position forward; count the bytes beyond the previous end."""
        self._position += len(data)
        self.num_bytes = max(self.num_bytes, self._position)
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Set the position and return it."""
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self.num_bytes}
        self._position = origin[whence] + offset
        return self._position

    def tell(self) -> int:
        """Return the position in bytes."""
        return self._position


Sink = ByteCounter | io.BytesIO  # receives the compressed output; nothing is read from it


def load_method(name: str) -> Method:
    """Return the compression method of a name, such as ``control:gzip``.

    Raise UnknownName for other names. Raise ModelLoadError if the library or its method is missing.
    """
    if name not in _METHODS:
        raise UnknownName("compressor", name, list(COMPRESSORS))
    make, needs = _METHODS[name]
    try:
        return make()
    except (ImportError, OSError) as error:  # OSError means that a C library cannot be loaded
        raise ModelLoadError(f"{name} cannot be used here: {error}; it needs {needs}") from error


class _Stream:
    """An encoder for libraries that return compressed bytes piece by piece."""

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
    """An encoder that writes one PNG file, or several PNG files for more than 4 MiB."""

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
        image.save(file, "PNG", compress_level=_PNG_LEVEL)
        self._sink.write(file.getvalue())


class _Recording:
    """An encoder that writes one FLAC file."""

    def __init__(self, sink: Sink, sample_bytes: int) -> None:
        import soundfile

        self._is_wide = sample_bytes == 2
        self._file = soundfile.SoundFile(
            sink, "w", samplerate=_SAMPLE_RATE, channels=1, format="FLAC",
            subtype="PCM_16" if self._is_wide else "PCM_S8", compression_level=_FLAC_LEVEL,
        )  # fmt: skip

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
    """Return DEFLATE; ``window_bits`` are zlib's, which also choose the header (gzip or zlib)."""

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        stream = zlib.compressobj(zlib.Z_BEST_COMPRESSION, zlib.DEFLATED, window_bits)
        return _Stream(sink, stream.compress, stream.flush)

    return Method(zlib.ZLIB_RUNTIME_VERSION, start, (zlib.error,))


def _zstd() -> Method:
    import zstandard

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)
        stream = compressor.compressobj(-1 if num_bytes is None else num_bytes)
        return _Stream(sink, stream.compress, stream.flush)

    revision = ".".join(map(str, zstandard.ZSTD_VERSION))
    return Method(revision, start, (zstandard.ZstdError,))


def _xz() -> Method:
    import lzma

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        stream = lzma.LZMACompressor(preset=_XZ_PRESET)
        return _Stream(sink, stream.compress, stream.flush)

    # Python does not report the version of its liblzma.
    return Method(f"python-{platform.python_version()}", start, (lzma.LZMAError,))


def _brotli() -> Method:
    import brotli

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        stream = brotli.Compressor(quality=_BROTLI_QUALITY)
        return _Stream(sink, stream.process, stream.finish)

    return Method(brotli.__version__, start, (brotli.error,))


def _ppmd() -> Method:
    import pyppmd

    def start(sink: Sink, form: Form, num_bytes: int | None) -> Encoder:
        restart = pyppmd.PPMD8_RESTORE_METHOD_RESTART
        stream = pyppmd.Ppmd8Encoder(_PPMD_ORDER, _PPMD_MEMORY_BYTES, restart)

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

    # Pillow chooses the filters of the rows, and zlib compresses the filtered rows.
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
    _, _, after_name = file.getvalue().partition(b"libFLAC ")
    version = (
        after_name[: after_name.find(b" ")].decode("ascii", "replace") if after_name else "unknown"
    )
    return Method(f"{library}-flac-{version}", start, (soundfile.SoundFileError,), sees_form=True)


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
