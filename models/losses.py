"""What all scorers share: documents in, rows of the LOSSES schema out."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa

from core.schemas import LOSSES


class ScoredDocument(NamedTuple):
    """The columns of a document that scoring needs."""

    document_id: str
    source: str
    month: dt.date | None
    text: str


class Chunk(NamedTuple):
    """One row's figures; ``nll_nats`` is NaN where ``reason`` says why it could not be measured."""

    nll_nats: float
    num_tokens: int
    num_chars: int
    num_bytes: int
    reason: str | None = None


def iterate_documents(batches: Iterable[pa.RecordBatch]) -> Iterator[ScoredDocument]:
    """Take the documents of record batches (or tables) one by one, in their order."""
    for batch in batches:
        columns = [batch.column(name) for name in ScoredDocument._fields]
        for row in range(batch.num_rows):
            yield ScoredDocument(*(column[row].as_py() for column in columns))


def iterate_blocks(
    documents: Iterable[ScoredDocument], block_chars: int
) -> Iterator[list[ScoredDocument]]:
    """Gather documents until they have ``block_chars`` characters; where one is longer, it alone.

    Blocks depend on the documents and their order only, never on how they were batched.
    """
    block: list[ScoredDocument] = []
    size = 0
    for document in documents:
        if block and size + len(document.text) > block_chars:
            yield block
            block, size = [], 0
        block.append(document)
        size += len(document.text)
    if block:
        yield block


def without_tokens(text: str) -> Chunk:
    """Return the one chunk of a text that has no tokens: its bytes are there, its loss is not."""
    return Chunk(math.nan, 0, len(text), len(text.encode()), "no_tokens")


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
        chunks: those of each document, in order.
    """
    owners = [document for document, own in zip(documents, chunks, strict=True) for _ in own]
    rows = [chunk for own in chunks for chunk in own]
    columns = {
        "model": [model[0]] * len(rows),
        "revision": [model[1]] * len(rows),
        "source": [document.source for document in owners],
        "month": [document.month for document in owners],
        "document_id": [document.document_id for document in owners],
        "chunk_index": [index for own in chunks for index in range(len(own))],
        "protocol": [protocol] * len(rows),
        **{name: [getattr(chunk, name) for chunk in rows] for name in Chunk._fields},
    }
    return pa.table(columns, schema=LOSSES)
