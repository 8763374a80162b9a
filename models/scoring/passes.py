"""A scoring pass: it scores one partition under one protocol, block by block.

``DocumentRun`` scores each document separately. ``StreamRun`` joins the documents of a partition to
one stream; a window may contain parts of several documents. Each row of a stream's losses is the
part of one document in one window. Only one block of documents is in memory, with the tokens
before the block that the next window reads.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile

import numpy as np
import pyarrow as pa

from models.scoring.accounting import TokenizedText
from models.scoring.blocks import Block, Tokenization
from models.scoring.protocol import ScoringProtocol
from models.scoring.scorer import (
    Chunk,
    Losses,
    Row,
    Scored,
    ScoredDocument,
    Tally,
    TokenLosses,
    Tokens,
    bf16_sum,
    measured,
    rows_table,
    unmeasured,
)
from models.scoring.text_model import TextModel
from models.scoring.windows import (
    Batches,
    Job,
    StreamWindow,
    Window,
    finish_stream,
    plan_windows,
    stream_windows,
)


@dataclass
class Run(ABC):
    """The base class of ``DocumentRun`` and ``StreamRun``."""

    model: tuple[str, str]
    protocol: ScoringProtocol
    context: int
    prefix: tuple[int, ...]
    text_model: TextModel
    batches: Batches
    tally: Tally

    def take(self, block: Block) -> pa.Table:
        """Score a block; return the rows that later blocks cannot change."""
        self.tally.seconds += block.seconds
        for tokens in block.tokens[Tokenization.of(self.protocol)]:
            self.tally.num_lossy_documents += tokens is not None and not tokens.is_lossless
        return rows_table(self.model, self.protocol.name, self._rows(block))

    def finish(self) -> pa.Table:
        """Return the rows that depend on the end of the partition."""
        return rows_table(self.model, self.protocol.name, self._last_rows())

    @abstractmethod
    def _rows(self, block: Block) -> list[Row]:
        """Score a block; return its final rows."""

    @abstractmethod
    def _last_rows(self) -> list[Row]:
        """Score the rest of the partition; return the remaining rows."""

    def _measure(self, jobs: Sequence[Job], of_media: bool) -> list[Scored]:
        alphabet = self.text_model.byte_tokens if of_media else None
        return self.batches.measure(jobs, alphabet, self.tally)


class DocumentRun(Run):
    """Scores each document separately; each window becomes a chunk."""

    def _rows(self, block: Block) -> list[Row]:
        """Score the windows of all documents of a block together; return a row for each window."""
        tokens_of_documents = block.tokens[Tokenization.of(self.protocol)]
        plans = [self._plan(tokens) for tokens in tokens_of_documents]
        jobs = []
        for document, tokens, plan in zip(block.documents, tokens_of_documents, plans, strict=True):
            if tokens is not None:
                is_wanted = self.tally.wants(document)
                jobs += [Job(tokens.ids, each, self.prefix, is_wanted=is_wanted) for each in plan]
        # One for each job: in the order of the documents, and of the windows of each.
        scored = iter(self._measure(jobs, isinstance(block.documents[0].content, bytes)))
        rows = []
        for number, (document, plan) in enumerate(zip(block.documents, plans, strict=True)):
            own = list(islice(scored, len(plan)))
            if self.tally.wants(document):
                chunks = self._chunks(block, number, plan, own)
                rows += [Row(document, index, chunk) for index, chunk in enumerate(chunks)]
        return rows

    def _plan(self, tokens: TokenizedText | None) -> list[Window]:
        """Return the windows of a document; media without byte tokens have none."""
        if tokens is None:
            return []
        return plan_windows(len(tokens.ids), self.protocol, self.context, len(self.prefix))

    def _chunks(
        self, block: Block, number: int, plan: Sequence[Window], scored: Sequence[Scored]
    ) -> list[Chunk]:
        """Return one chunk per window; a chunk's text starts where the previous window ends."""
        tokens = block.tokens[Tokenization.of(self.protocol)][number]
        if tokens is None or not plan:
            reason = "no_tokens" if tokens else "not_measurable"
            return [unmeasured(block.documents[number], reason)]
        if self.protocol.charges_every_token:
            self.tally.add_beginnings(tokens, [own.nats for own in scored])
        document_id = block.documents[number].document_id
        is_exact = self.protocol.sums == "float64"
        if document_id in self.tally.chosen and is_exact:
            self.tally.token_losses += [
                TokenLosses(document_id, index, tokens, window.first, own)
                for index, (window, own) in enumerate(zip(plan, scored, strict=True))
            ]
        chunks = []
        covered = 0
        for window, own in zip(plan, scored, strict=True):
            chunk = measured(
                nats=float(own.nats.sum()) if is_exact else bf16_sum(own.nats),
                num_tokens=window.num_scored,
                num_chars=int(tokens.chars[window.end] - tokens.chars[covered]),
                num_bytes=int(tokens.bytes[window.end] - tokens.bytes[covered]),
            )
            if is_exact and chunk.reason is None:
                self.tally.add_classes(tokens, window.first, own.nats, (covered, window.end))
            chunks.append(chunk)
            covered = window.end
        return chunks

    def _last_rows(self) -> list[Row]:
        return []


@dataclass
class _Member:
    """A document of the stream; ``begin`` is the index of its first token in the stream."""

    document: ScoredDocument
    tokens: TokenizedText
    begin: int
    num_chunks: int = 0

    @property
    def end(self) -> int:
        return self.begin + len(self.tokens.ids)

    def row(self, nats: float, num_scored: int, covered: tuple[int, int]) -> Row:
        """Return the document's next row; ``covered``: bounds of its tokens in the stream."""
        begin, end = (min(max(at, self.begin), self.end) - self.begin for at in covered)
        chars = self.tokens.chars
        sizes = self.tokens.bytes
        self.num_chunks += 1
        chunk = measured(
            nats, num_scored, int(chars[end] - chars[begin]), int(sizes[end] - sizes[begin])
        )
        return Row(self.document, self.num_chunks - 1, chunk)

    def dropped(self, begin: int) -> Row:
        """Return the document's last row, for the text from ``begin`` on, which is not scored."""
        row = self.row(0.0, 0, (begin, self.end))
        return row._replace(chunk=row.chunk._replace(nll_nats=math.nan, reason="dropped"))


@dataclass
class StreamRun(Run):
    """Scores all documents as one stream."""

    _ids: Tokens = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _offset: int = 0  # index in the stream of the first token in _ids
    _members: list[_Member] = field(default_factory=list)
    _num_bytes: int = 0
    _is_closed: bool = False
    _of_media: bool = False
    _last: Window | None = None
    _held: list[Row] = field(default_factory=list)  # last window's rows, which finish() may change
    _covered: int = 0

    def __post_init__(self) -> None:
        self._coming: Iterator[StreamWindow] = stream_windows(
            self.protocol, self.context, len(self.prefix)
        )
        self._next = next(self._coming)

    @property
    def _num_tokens(self) -> int:
        return self._offset + len(self._ids)

    def _rows(self, block: Block) -> list[Row]:
        """Append a block; score the complete windows, but keep back the rows of the last one."""
        rows = self._append(block)
        for window, own in self._score(self._take_windows()):
            # The rows of the last window stay behind, since finish() may change them.
            rows += self._held
            self._held = own
            self._last = window
        self._forget()
        return rows

    def _take_windows(self) -> list[Window]:
        """Return the next windows, as far as the tokens that they need have been appended."""
        windows = []
        while self._next.needed <= self._num_tokens:
            windows.append(self._next.window)
            self._next = next(self._coming)
        return windows

    def _append(self, block: Block) -> list[Row]:
        """Append documents to the stream; return the rows of documents that are not scored."""
        rows = []
        added = [self._ids]
        end = self._num_tokens
        self._of_media = isinstance(block.documents[0].content, bytes)
        for document, tokens in zip(
            block.documents, block.tokens[Tokenization.of(self.protocol)], strict=True
        ):
            reason = self._reason_against(tokens)
            if reason:
                rows.append(Row(document, 0, unmeasured(document, reason)))
            elif tokens is not None:
                self._members.append(_Member(document, tokens, end))
                added.append(tokens.ids)
                end += len(tokens.ids)
        self._ids = np.concatenate(added)
        return rows

    def _reason_against(self, tokens: TokenizedText | None) -> str | None:
        """Return why a document is not a part of the stream, or None if it is."""
        if tokens is not None:
            self._num_bytes += int(tokens.bytes[-1])  # joining text counts
        limit = self.protocol.max_stream_bytes
        if limit is not None and self._num_bytes > limit:
            self._is_closed = True
        if self._is_closed:
            return "dropped"
        if tokens is None:
            return "not_measurable"
        if len(tokens.ids) == 0:
            return "no_tokens"
        return None

    def _score(self, windows: Sequence[Window]) -> Iterator[tuple[Window, list[Row]]]:
        """Yield each window with its rows."""
        jobs = [Job(self._ids, window, self.prefix, self._offset) for window in windows]
        for window, scored in zip(windows, self._measure(jobs, self._of_media), strict=True):
            yield window, list(self._share(window, scored.nats))
            self._covered = window.end

    def _share(self, window: Window, nats: Losses) -> Iterator[Row]:
        """Yield a row for each document with scored tokens or covered text in a window."""
        begin = min(window.first, self._covered)
        position = bisect_right(self._members, begin, key=lambda member: member.end)
        for member in takewhile(lambda each: each.begin < window.end, self._members[position:]):
            scored = [
                min(max(at, window.first), window.end) - window.first
                for at in (member.begin, member.end)
            ]
            own = nats[slice(*scored)]
            yield member.row(float(own.sum()), len(own), (self._covered, window.end))

    def _forget(self) -> None:
        """Drop the tokens and documents that no later window reads."""
        keep = max(self._offset, min(self._next.window.begin, self._covered - self.context))
        self._ids = self._ids[keep - self._offset :].copy()
        self._offset = keep
        # Keep the documents of all kept tokens, because later windows may score them again.
        num_done = bisect_right(self._members, keep, key=lambda member: member.end)
        del self._members[:num_done]

    def _last_rows(self) -> list[Row]:
        """Score the last windows; return their rows, and rows for text that is not scored."""
        num_prefix = len(self.prefix)
        num_tokens = self._num_tokens
        windows = finish_stream(self.protocol, self.context, self._last, num_tokens, num_prefix)
        rows = self._held + [row for _, own in self._score(windows) for row in own]
        if self.protocol.layout == "pieces" and num_prefix:
            # Like llm-compressive, subtract the size of the BOS of the dropped last piece.
            rows = _shortened(rows, self.text_model.start_text or "")
        return rows + [
            member.dropped(self._covered) for member in self._members if member.end > self._covered
        ]


def _shortened(rows: Sequence[Row], text: str) -> list[Row]:
    """Reduce the rows' characters and bytes by those of ``text``, from the last row backwards."""
    num_chars = len(text)
    num_bytes = len(text.encode())
    shorter = []
    for row in reversed(rows):
        chars = min(num_chars, row.chunk.num_chars)
        size = min(num_bytes, row.chunk.num_bytes)
        num_chars -= chars
        num_bytes -= size
        chunk = row.chunk._replace(
            num_chars=row.chunk.num_chars - chars, num_bytes=row.chunk.num_bytes - size
        )
        shorter.append(row._replace(chunk=chunk))
    return shorter[::-1]
