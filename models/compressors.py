"""Compressors as models: they have no cutoff, so their curve over months depends only on the text.

A document is cut into pieces about as long as a model's window. Each piece is compressed
independently. The loss of a piece is the length of the whole output. Headers count, because a
decoder needs them. A compressor's tokens are bytes. ``compression_methods.py`` has the compressors.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import pyarrow as pa

from core.errors import NotMeasurable
from core.settings import Settings
from models.catalogue import ModelEntry
from models.compression_methods import ByteCounter, Encoder, Form, Method, load_method
from models.scoring.machine import describe_cpu, library_versions
from models.scoring.protocol import ScoringProtocol
from models.scoring.scorer import (
    Chunk,
    Row,
    ScoredDocument,
    ScorerFacts,
    Scoring,
    Tally,
    iterate_blocks,
    iterate_documents,
    rows_table,
    unmeasured,
)

BYTES_PER_TOKEN = 4  # typical for English; pieces get about the length of a model's window
SOLID = "solid"  # document_id of the only row, if a whole partition is compressed as one stream
_BLOCK_CHARS = 2**20
_BITS_PER_BYTE = 8
_VERSION = "1"  # increase if a change here or in compression_methods.py changes losses


class Compressor(Scoring):
    """A general-purpose compressor with the interface of ``models.scoring.scorer.Scorer``.

    Raises the errors of ``compression_methods.load_method``.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._method = load_method(name)
        self.revision = self._method.revision

    @property
    def facts(self) -> ScorerFacts:
        """The processor and the version of the compression library."""
        versions = library_versions() | {self.name.removeprefix("control:"): self.revision}
        return ScorerFacts(describe_cpu(), "", None, versions, None)

    def scoring_id(self, protocol: ScoringProtocol, has_control: bool = False) -> str:
        """Return a hash over the pieces' size and the versions of this code and the library."""
        # Hash the full revision, because a cell's file name contains only its first characters.
        definition = f"{_VERSION} {self.revision} {piece_bytes(protocol) or protocol.layout}"
        if protocol.max_chars is not None:
            definition += f" {protocol.max_chars}"
        return hashlib.sha256(definition.encode()).hexdigest()[:8]

    def score_together(
        self,
        documents: Iterable[pa.RecordBatch],
        protocols: Sequence[ScoringProtocol],
        tallies: Sequence[Tally],
    ) -> Iterator[tuple[pa.Table, ...]]:
        """Compress documents in pieces or as one stream; see ``Scorer.score_together``.

        A row's ``reason`` is ``no_tokens`` for empty input. If the library fails, the reason is
        ``compression_failed`` with its message. Raise NotMeasurable if a protocol needs tokens.
        """
        runs = [
            (self._start(protocol), partial(self._table, protocol, tally))
            for protocol, tally in zip(protocols, tallies, strict=True)
        ]
        for block in iterate_blocks(iterate_documents(documents), _BLOCK_CHARS):
            yield tuple(table(partial(run.take, block)) for run, table in runs)
        yield tuple(table(run.finish) for run, table in runs)

    def _start(self, protocol: ScoringProtocol) -> _PieceRun | _SolidRun:
        """Return a new run of a protocol."""
        limit = piece_bytes(protocol)
        if protocol.layout == "solid":
            return _SolidRun(self._method)
        return _PieceRun(self._method, limit, protocol.max_chars)

    def _table(
        self, protocol: ScoringProtocol, tally: Tally, work: Callable[[], list[Row]]
    ) -> pa.Table:
        """Compress by ``work``, add its time and bytes to the tally, return the table of losses."""
        began = time.perf_counter()
        rows = work()
        tally.seconds += time.perf_counter() - began
        tally.num_tokens_read += sum(row.chunk.num_tokens for row in rows)
        return rows_table((self.name, self.revision), protocol.name, rows)


class _PieceRun:
    """Compresses documents in pieces of at most ``limit`` bytes (None: documents as a whole)."""

    def __init__(self, method: Method, limit: int | None, max_chars: int | None) -> None:
        self._method = method
        self._limit = limit
        self._max_chars = max_chars

    def take(self, block: list[ScoredDocument]) -> list[Row]:
        return [
            Row(document, index, chunk)
            for document in block
            for index, chunk in enumerate(self._chunks(document))
        ]

    def finish(self) -> list[Row]:
        return []

    def _chunks(self, document: ScoredDocument) -> list[Chunk]:
        """Return the loss of each piece of a document."""
        document = document._replace(content=document.content[: self._max_chars])
        form = _form(document)
        chunks = []
        for piece in _pieces(document, form, self._limit or len(document.raw)):
            archive = _Archive(self._method, len(piece))
            archive.add(piece, form)
            num_chars = len(piece.decode()) if isinstance(document.content, str) else 0
            chunks.append(archive.close(num_chars))
        return chunks or [unmeasured(document, "no_tokens")]


class _SolidRun:
    """Compresses all documents as one stream, without separators."""

    def __init__(self, method: Method) -> None:
        self._archive = _Archive(method)
        self._num_chars = 0
        self._partition: ScoredDocument | None = None

    def take(self, block: list[ScoredDocument]) -> list[Row]:
        for document in block:
            self._archive.add(document.raw, _form(document))
            self._num_chars += document.num_chars
        self._partition = block[0]._replace(document_id=SOLID, content="")
        return []

    def finish(self) -> list[Row]:
        if self._partition is None:
            return []
        return [Row(self._partition, 0, self._archive.close(self._num_chars))]


class _Archive:
    """Compresses bytes and counts the size of the output, without storing the output."""

    def __init__(self, method: Method, num_bytes: int | None = None) -> None:
        self._method = method
        self._expected = num_bytes  # of all input; None: unknown
        self._form: Form | None = None
        self._sink = ByteCounter()
        self._encoder: Encoder | None = None
        self._num_bytes = 0  # of input
        self._num_coded = 0  # bytes of output
        self._failure: Exception | None = None

    def add(self, raw: bytes, form: Form) -> None:
        """Compress more bytes."""
        # If the method depends on the form, a new form (another image width) starts a new output.
        self._num_bytes += len(raw)
        if self._failure is not None or not raw:
            return
        try:
            if self._encoder is None or (self._method.sees_form and form != self._form):
                self._end()
                self._encoder = self._method.start(self._sink, form, self._expected)
                self._form = form
            self._encoder.write(raw)
        except self._method.errors as error:
            self._failure = error

    def close(self, num_chars: int) -> Chunk:
        """Return the loss in nats, from the bits of the output; NaN with a reason if it failed."""
        try:
            self._end()
        except self._method.errors as error:
            self._failure = self._failure or error
        if self._failure is not None:
            reason = f"compression_failed: {self._failure}"
            return Chunk(math.nan, self._num_bytes, num_chars, self._num_bytes, reason)
        if not self._num_bytes:
            return Chunk(math.nan, 0, num_chars, 0, "no_tokens")
        nats = _BITS_PER_BYTE * self._num_coded * math.log(2)
        return Chunk(nats, self._num_bytes, num_chars, self._num_bytes)

    def _end(self) -> None:
        if self._encoder is not None:
            self._encoder.close()
            self._num_coded += self._sink.num_bytes
            self._sink = ByteCounter()  # a FLAC file must begin at position 0 of its sink
            self._encoder = None


def piece_bytes(protocol: ScoringProtocol) -> int | None:
    """Return the maximum size of a piece in bytes, or None if documents are not cut.

    Raise NotMeasurable if the protocol is defined on tokens only.
    """
    if protocol.layout in ("single", "solid"):
        return None
    is_plain = protocol.layout in ("disjoint", "sliding") and protocol.prefix == "start"
    if is_plain and protocol.charges_every_token and protocol.context is not None:
        return BYTES_PER_TOKEN * protocol.context
    raise NotMeasurable(
        f"protocol {protocol.name} is defined on a model's tokens or its context, and a compressor "
        "has none; score controls with the default protocol"
    )


def cut(raw: bytes, limit: int) -> Iterator[bytes]:
    """Cut UTF-8 text into pieces of at most ``limit`` (>= 4) bytes, between characters."""
    begin = 0
    while begin < len(raw):
        end = min(begin + limit, len(raw))
        while end < len(raw) and raw[end] & 0xC0 == 0x80:  # ``end`` is inside a character
            end -= 1
        yield raw[begin:end]
        begin = end


def _pieces(document: ScoredDocument, form: Form, limit: int) -> Iterator[bytes]:
    """Cut a document between its characters, rows of pixels or samples."""
    # A row longer than ``limit`` becomes one piece.
    raw = document.raw
    if isinstance(document.content, str):
        yield from cut(raw, limit)
        return
    unit = form.width or form.sample_bytes
    size = max(limit // unit, 1) * unit
    for begin in range(0, len(raw), size):
        yield raw[begin : begin + size]


def _form(document: ScoredDocument) -> Form:
    """Return a document's layout; that of plain bytes if its last row or sample is incomplete."""
    if isinstance(document.content, str):
        return Form()
    size = len(document.content)
    if document.width is None:
        return Form(sample_bytes=1 if size % 2 else 2)
    is_whole = document.width > 0 and size % document.width == 0
    return Form(width=document.width if is_whole else None)


def load_compressor(entry: ModelEntry, settings: Settings) -> Compressor:
    """Return the compressor of an entry; errors are those of ``Compressor``."""
    return Compressor(entry.name)
