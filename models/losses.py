"""What all scorers share: documents in, rows of the LOSSES schema out."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from core.schemas import LOSSES


class ScoredDocument(NamedTuple):
    """What scoring needs of a document, an image or a recording."""

    document_id: str
    source: str
    month: dt.date | None
    content: str | bytes  # text, or the bytes of an image or a recording
    width: int | None = None  # pixels in a row, of an image

    @property
    def raw(self) -> bytes:
        """The bytes that a code of this document has to give back."""
        return self.content.encode() if isinstance(self.content, str) else self.content

    @property
    def num_chars(self) -> int:
        """Code points; what is no text has none."""
        return len(self.content) if isinstance(self.content, str) else 0


class Chunk(NamedTuple):
    """One row's figures; ``nll_nats`` is NaN where ``reason`` says why it could not be measured."""

    nll_nats: float
    num_tokens: int
    num_chars: int
    num_bytes: int
    reason: str | None = None


def measured(nats: float, num_tokens: int, num_chars: int, num_bytes: int) -> Chunk:
    """Return a chunk with its loss, or with the reason where the model gave none."""
    if math.isfinite(nats):
        return Chunk(nats, num_tokens, num_chars, num_bytes)
    return Chunk(math.nan, num_tokens, num_chars, num_bytes, "non_finite")


def iterate_documents(batches: Iterable[pa.RecordBatch]) -> Iterator[ScoredDocument]:
    """Take the documents of record batches (or tables) one by one, in their order.

    Args:
        batches: with document_id, source, month and either text, or media and (for images) width.
    """
    for batch in batches:
        names = set(batch.schema.names)
        contents = batch.column("text" if "text" in names else "media")
        widths = batch.column("width") if "width" in names else pa.nulls(batch.num_rows)
        columns = [batch.column(name) for name in ("document_id", "source", "month")]
        for row in range(batch.num_rows):
            values = (column[row].as_py() for column in (*columns, contents, widths))
            yield ScoredDocument(*values)


def iterate_blocks(
    documents: Iterable[ScoredDocument], block_size: int
) -> Iterator[list[ScoredDocument]]:
    """Gather documents until they have ``block_size`` characters (or bytes, of media).

    Where one is longer, it alone. Blocks depend on the documents and their order only, never on
    how they were batched.
    """
    block: list[ScoredDocument] = []
    size = 0
    for document in documents:
        if block and size + len(document.content) > block_size:
            yield block
            block, size = [], 0
        block.append(document)
        size += len(document.content)
    if block:
        yield block


def unmeasured(document: ScoredDocument, reason: str) -> Chunk:
    """Return the one chunk of a document that has no loss: its bytes are there, with the reason."""
    return Chunk(math.nan, 0, document.num_chars, len(document.raw), reason)


class Row(NamedTuple):
    """A chunk of a document, and which one."""

    document: ScoredDocument
    chunk_index: int
    chunk: Chunk


def losses_table(
    model: tuple[str, str],
    protocol: str,
    documents: Sequence[ScoredDocument],
    chunks: Sequence[Sequence[Chunk]],
) -> pa.Table:
    """Lay chunks out as a table of schema LOSSES.

    Args:
        model: name and revision.
        protocol: its name.
        documents: in the order of their rows.
        chunks: all those of each document, in order.
    """
    rows = [
        Row(document, index, chunk)
        for document, own in zip(documents, chunks, strict=True)
        for index, chunk in enumerate(own)
    ]
    return rows_table(model, protocol, rows)


def rows_table(model: tuple[str, str], protocol: str, rows: Sequence[Row]) -> pa.Table:
    """As ``losses_table``, for rows that are numbered already."""
    columns = {
        "model": [model[0]] * len(rows),
        "revision": [model[1]] * len(rows),
        "source": [row.document.source for row in rows],
        "month": [row.document.month for row in rows],
        "document_id": [row.document.document_id for row in rows],
        "chunk_index": [row.chunk_index for row in rows],
        "protocol": [protocol] * len(rows),
        **{name: [getattr(row.chunk, name) for row in rows] for name in Chunk._fields},
    }
    return pa.table(columns, schema=LOSSES)
