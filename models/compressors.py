"""Compressors as models: they have no cutoff, so their curve over months is the text's own.

A text is cut into pieces about as long as a model's window, each compressed by itself; the loss is
the length of what comes out, headers and all, because that is what a decoder would need. Tokens of
a compressor are bytes.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import math
import platform
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import zstandard

from core.errors import NotMeasurable, UnknownName
from models.losses import Chunk, iterate_blocks, iterate_documents, losses_table, without_tokens
from models.protocols import ScoringProtocol

BYTES_PER_TOKEN = 4  # of English under today's vocabularies, to give pieces a window's length
_BLOCK_CHARS = 2**20
_VERSION = "1"  # raised when a change here changes losses


@dataclass(frozen=True)
class _Method:
    """One compressor; ``start`` gives a function of its own to each thread that scores."""

    version: str
    start: Callable[[], Callable[[bytes], bytes]]


_METHODS = {
    "control:gzip": _Method(
        zlib.ZLIB_RUNTIME_VERSION, lambda: lambda piece: gzip.compress(piece, 9, mtime=0)
    ),
    "control:zstd": _Method(
        ".".join(map(str, zstandard.ZSTD_VERSION)),
        lambda: zstandard.ZstdCompressor(level=19).compress,
    ),
    # Python does not tell which liblzma it was built with.
    "control:xz": _Method(
        f"python-{platform.python_version()}", lambda: lambda piece: lzma.compress(piece, preset=6)
    ),
}

COMPRESSORS = tuple(_METHODS)


class Compressor:
    """A general-purpose compressor with the interface of ``models.scorer.Scorer``.

    Args:
        name: one of COMPRESSORS.

    Raises:
        UnknownName: no such compressor.
    """

    def __init__(self, name: str) -> None:
        if name not in _METHODS:
            raise UnknownName("compressor", name, list(COMPRESSORS))
        self.name = name
        self.revision = _METHODS[name].version

    def scoring_id(self, protocol: ScoringProtocol) -> str:
        """Return a hash over the size of the pieces and the version of this code."""
        definition = f"{_VERSION} {piece_bytes(protocol)}"
        return hashlib.sha256(definition.encode()).hexdigest()[:8]

    def score(
        self, documents: Iterable[pa.RecordBatch], protocol: ScoringProtocol
    ) -> Iterator[pa.Table]:
        """Compress documents piece by piece; see ``Scorer.score``.

        Raises:
            NotMeasurable: the protocol is defined on tokens only.
        """
        limit = piece_bytes(protocol)
        squeeze = _METHODS[self.name].start()
        for block in iterate_blocks(iterate_documents(documents), _BLOCK_CHARS):
            chunks = [
                [_measure(piece, squeeze) for piece in cut(document.text.encode(), limit)]
                or [without_tokens(document.text)]
                for document in block
            ]
            yield losses_table((self.name, self.revision), protocol.name, block, chunks)


def piece_bytes(protocol: ScoringProtocol) -> int:
    """Return how many bytes of text are compressed together, at most.

    Raises:
        NotMeasurable: the protocol is defined on tokens only.
    """
    if protocol.context is None or not protocol.scores_first or protocol.layout == "rolling":
        raise NotMeasurable(
            f"protocol {protocol.name} is defined on a model's tokens and a compressor has none; "
            "score controls with the default protocol"
        )
    return BYTES_PER_TOKEN * protocol.context


def cut(raw: bytes, limit: int) -> Iterator[bytes]:
    """Cut UTF-8 into pieces of at most ``limit`` (>= 4) bytes that end with whole characters."""
    begin = 0
    while begin < len(raw):
        end = min(begin + limit, len(raw))
        while end < len(raw) and raw[end] & 0xC0 == 0x80:  # inside a character
            end -= 1
        yield raw[begin:end]
        begin = end


def _measure(piece: bytes, squeeze: Callable[[bytes], bytes]) -> Chunk:
    return Chunk(
        nll_nats=8 * len(squeeze(piece)) * math.log(2),
        num_tokens=len(piece),
        num_chars=len(piece.decode()),
        num_bytes=len(piece),
    )
