"""The interfaces of scoring: documents, rows of losses, scorers, and engines."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.cells.losses import Cell
from core.cells.record import ByteClass, Milestone, TokenizerFacts
from core.schemas.tables import LOSSES, TOKEN_LOSSES
from models.scoring.accounting import TokenizedText
from models.scoring.byte_classes import CLASSES, ClassSums
from models.scoring.protocol import ScoringProtocol

Tokens = npt.NDArray[np.int64]
Losses = npt.NDArray[np.float64]

# FreshBench (Zhu et al. 2024) reports the mean loss of a text's first tokens at these lengths.
MILESTONES = (10, 30, 50, 100, 200, 300, 400, 500, 800, 1000, 1200, 1500, 2000)


class ScoredDocument(NamedTuple):
    """A document, an image or a recording, with the fields used for scoring."""

    document_id: str
    source: str
    month: dt.date | None
    content: str | bytes  # text, or the bytes of an image or a recording
    width: int | None = None  # pixels in a row of an image; other content has None

    @property
    def raw(self) -> bytes:
        """The content as bytes; text is encoded as UTF-8."""
        return self.content.encode() if isinstance(self.content, str) else self.content

    @property
    def num_chars(self) -> int:
        """Number of code points; 0 for images and recordings."""
        return len(self.content) if isinstance(self.content, str) else 0


class Chunk(NamedTuple):
    """A loss with its counts; ``nll_nats`` is NaN if not measured, for the stated ``reason``."""

    nll_nats: float
    num_tokens: int
    num_chars: int
    num_bytes: int
    reason: str | None = None


def measured(nats: float, num_tokens: int, num_chars: int, num_bytes: int) -> Chunk:
    """Return a chunk with the given loss, or with a reason if the loss is not finite."""
    if math.isfinite(nats):
        return Chunk(nats, num_tokens, num_chars, num_bytes)
    return Chunk(math.nan, num_tokens, num_chars, num_bytes, "non_finite")


def bf16_sum(nats: Losses) -> float:
    """Return the sum as torch computes it for bfloat16: rounded addends, and a rounded sum."""
    import torch

    return float(torch.from_numpy(nats).bfloat16().sum())


def iterate_documents(batches: Iterable[pa.RecordBatch]) -> Iterator[ScoredDocument]:
    """Yield the documents of record batches (or tables) one by one, in order."""
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
    """Group documents into blocks of at most ``block_size`` characters (bytes of media)."""
    # A longer document is a block by itself. Record batches have no effect on blocks.
    block: list[ScoredDocument] = []
    size = 0
    for document in documents:
        if block and size + len(document.content) > block_size:
            yield block
            block = []
            size = 0
        block.append(document)
        size += len(document.content)
    if block:
        yield block


def unmeasured(document: ScoredDocument, reason: str) -> Chunk:
    """Return the only chunk of a document that was not measured, with its size and the reason."""
    return Chunk(math.nan, 0, document.num_chars, len(document.raw), reason)


class Row(NamedTuple):
    """A chunk, with its document and its index in the document."""

    document: ScoredDocument
    chunk_index: int
    chunk: Chunk


def rows_table(model: tuple[str, str], protocol: str, rows: Sequence[Row]) -> pa.Table:
    """Return rows as a table of schema LOSSES."""
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


class Scored(NamedTuple):
    """Figures of a window's scored tokens."""

    nats: Losses  # (scored,)
    moments: Losses | None = None  # mean and variance of ln p over the vocabulary, (scored, 2)


class TokenLosses(NamedTuple):
    """The scored tokens of one chunk, whose loss is the sum of ``scored.nats``."""

    document_id: str
    chunk_index: int
    tokens: TokenizedText  # all tokens of the document
    first: int  # index of the first scored token in ``tokens``
    scored: Scored


def tokens_table(cell: Cell, losses: Sequence[TokenLosses]) -> pa.Table:
    """Return the token losses of chunks of a cell as a table of schema TOKEN_LOSSES."""
    tables = [_chunk_table(cell, each) for each in losses]
    return pa.concat_tables([TOKEN_LOSSES.empty_table(), *tables])


def _chunk_table(cell: Cell, chunk: TokenLosses) -> pa.Table:
    """Return the token losses of one chunk of a cell as a table of schema TOKEN_LOSSES."""
    nats, moments = chunk.scored
    num = len(nats)
    month = cell.partition.month
    ends = chunk.tokens.bytes
    span = slice(chunk.first, chunk.first + num)
    values = [
        cell.model, cell.revision, cell.partition.source, month.first_day if month else None,
        chunk.document_id, cell.protocol, chunk.chunk_index, np.arange(span.start, span.stop),
        chunk.tokens.ids[span], ends[span], ends[1:][span], nats,
        *([None, None] if moments is None else moments.T), None,
    ]  # fmt: skip
    arrays = []
    for each, column in zip(values, TOKEN_LOSSES, strict=True):
        rows = each if isinstance(each, np.ndarray) else [each] * num
        arrays.append(pa.array(rows, column.type, from_pandas=True))
    return pa.table(arrays, schema=TOKEN_LOSSES)


class DeviceFull(Exception):
    """A batch does not fit into the device's memory; a smaller batch may fit."""


class Engine(Protocol):
    """Runs a causal model, locally or on a server."""

    @property
    def max_batch_tokens(self) -> int | None:
        """Maximum number of input tokens of a batch, padding included, or None for no maximum."""

    def losses(
        self, inputs: Sequence[Tokens], targets: Sequence[Tokens], alphabet: Tokens | None = None
    ) -> list[Losses]:
        """Return -ln p of each row's targets, in nats, (scored,) per row.

        Rows are independent: a row's losses do not depend on the other rows of its batch. Raise
        DeviceFull if the batch is too large for the device.

        Args:
            inputs: token ids of each row, (length,).
            targets: true next tokens at each row's last positions, (scored,), scored <= length.
            alphabet: all ids of the softmax (including the targets), or None for all token ids.
        """


class ConfinedEngine(Engine, Protocol):
    """An engine whose model, with its own code, runs in a confined process."""

    guard: str  # how the process is confined, for the record of a cell


class ParallelEngine(Engine, Protocol):
    """An engine whose model's layers are shared by several devices."""

    backend: str  # of torch.distributed
    active_parameters: int  # of the whole model


@runtime_checkable
class MomentEngine(Engine, Protocol):
    """An engine that has the whole distribution of each token, as local models have."""

    def with_moments(self, inputs: Sequence[Tokens], targets: Sequence[Tokens]) -> list[Scored]:
        """Return the losses of ``Engine.losses``, with moments, from one pass of the model."""


@dataclass
class Tally:
    """Counts of one cell, updated while the cell is scored.

    Attributes:
        seconds: time that scoring this cell alone would take, in s, with the whole time of batches
            that are shared with other protocols.
        num_tokens_read: number of input tokens, including prefix and context, without padding.
        num_lossy_documents: number of documents that cannot be restored from their tokens.
        context: number of tokens of a window, or None for a compressor.
        chosen: ids of documents of which ``token_losses`` has the losses of all tokens.
        only_chosen: True to run only batches with chosen documents, and to skip other documents.
        with_moments: True to compute moments of the chosen documents' batches, too.
    """

    seconds: float = 0.0
    num_tokens_read: int = 0
    num_lossy_documents: int = 0
    context: int | None = None
    chosen: frozenset[str] = frozenset()
    only_chosen: bool = False
    with_moments: bool = False
    token_losses: list[TokenLosses] = field(default_factory=list)
    _sums: dict[int, list[float]] = field(default_factory=dict)
    _class_sums: ClassSums = field(default_factory=ClassSums)

    def wants(self, document: ScoredDocument) -> bool:
        """Return True if the document is scored."""
        return not self.only_chosen or document.document_id in self.chosen

    def add_beginnings(self, tokens: TokenizedText, losses: Sequence[Losses]) -> None:
        """Add the loss of a document's first n tokens, for each n in MILESTONES (10 to 2000)."""
        sums = np.cumsum(np.concatenate(losses)[: MILESTONES[-1]])
        for length in MILESTONES:
            if length > len(sums) or not math.isfinite(sums[length - 1]):
                return
            figures = (1, sums[length - 1], tokens.chars[length], tokens.bytes[length])
            known = self._sums.setdefault(length, [0.0] * len(figures))
            self._sums[length] = [a + float(b) for a, b in zip(known, figures, strict=True)]

    def add_classes(
        self, tokens: TokenizedText, first: int, nats: Losses, covered: tuple[int, int]
    ) -> None:
        """Add a chunk of a text to the sums by class of byte; see ``ClassSums.add``."""
        if tokens.classes is not None:  # media have none
            self._class_sums.add(tokens.classes, tokens.bytes, first, nats, covered)

    def byte_classes(self) -> tuple[ByteClass, ...]:
        """Return the sums of the classes with bytes or losses; none without losses of tokens."""
        sums = zip(
            CLASSES,
            self._class_sums.nats.tolist(),
            self._class_sums.num_bytes.tolist(),
            strict=True,
        )
        return tuple(
            ByteClass(byte_class=name, nll_nats=nats, num_bytes=size)
            for name, nats, size in sums
            if nats or size
        )

    def milestones(self) -> tuple[Milestone, ...]:
        """Return the sums over documents for each n in MILESTONES that some document reaches."""
        return tuple(
            Milestone(
                milestone=length,
                num_documents=int(documents),
                nll_nats=nats,
                num_chars=int(chars),
                num_bytes=int(size),
            )
            for length, (documents, nats, chars, size) in sorted(self._sums.items())
        )


class ScorerFacts(NamedTuple):
    """The device, dtype, batch size, library versions and tokenizer of a scorer.

    Attributes:
        dtype: dtype of the weights; empty if there are no weights.
        batch_tokens: current maximum number of tokens of a batch, or None without batches.
        active_parameters: number of parameters that a token is multiplied by, or None if unknown.
        matmul_flops: measured rate of matrix products in operations per second, or None.
    """

    device: str
    dtype: str
    batch_tokens: int | None
    versions: Mapping[str, str]
    tokenizer: TokenizerFacts | None
    active_parameters: int | None = None
    matmul_flops: float | None = None


class Identity(Protocol):
    """The facts that identify a model's losses, known before any weights are loaded."""

    @property
    def name(self) -> str:
        """Name of the model, as in the ``model`` column."""

    @property
    def revision(self) -> str:
        """Commit of the hub, or digest of the files."""

    def scoring_id(self, protocol: ScoringProtocol, has_control: bool = False) -> str:
        """Return a short stable hash of all other facts that determine the losses.

        The facts are the protocol's definition, the effective context, the dtype and the version of
        the scorer's code. ``has_control`` is True if the text spells one of the ``control_texts``
        of an identity that has this attribute; others ignore it. Raise NotMeasurable if the model
        cannot be scored under this protocol.
        """


class Scorer(Identity, Protocol):
    """A loaded model that computes losses."""

    @property
    def facts(self) -> ScorerFacts:
        """The scorer's device, dtype and versions."""

    def score_together(
        self,
        documents: Iterable[pa.RecordBatch],
        protocols: Sequence[ScoringProtocol],
        tallies: Sequence[Tally],
    ) -> Iterator[tuple[pa.Table, ...]]:
        """Score documents as they stream in, under several protocols at once.

        Yields:
            One table per protocol, of schema LOSSES; it may be empty. The chunks of a document are
            in order. If a chunk is not measured, ``nll_nats`` is NaN and ``reason`` is set.

        Raises:
            NotMeasurable: this model cannot be scored under one of the protocols.
            BatchTooLarge: the device's memory was full; the next attempt uses smaller batches.
        """


class Scoring:
    """A base class that adds ``score`` to scorers with ``score_together``."""

    def score(
        self: Scorer, documents: Iterable[pa.RecordBatch], protocol: ScoringProtocol
    ) -> Iterator[pa.Table]:
        """Score documents under one protocol; see ``score_together``."""
        for (table,) in self.score_together(documents, [protocol], [Tally()]):
            yield table
