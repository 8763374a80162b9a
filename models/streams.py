"""Streams: the documents of a partition one after another, with windows across their borders.

Each row is what one window has of one document, so that losses still belong to documents. What
memory holds is a block of documents and as many tokens before it as a window reads.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from models.accounting import TokenizedText
from models.backend import Losses, Tokens
from models.batches import Job
from models.blocks import Block, Tokenization
from models.losses import Row, ScoredDocument, measured, unmeasured
from models.runs import Run
from models.windows import StreamWindow, Window, finish_stream, stream_windows


@dataclass
class _Member:
    """A document of the stream, from token number ``begin`` of the stream on."""

    document: ScoredDocument
    tokens: TokenizedText
    begin: int
    num_chunks: int = 0

    @property
    def end(self) -> int:
        return self.begin + len(self.tokens.ids)

    def row(self, nats: float, num_scored: int, covered: tuple[int, int]) -> Row:
        """Return its next row: a loss, and the span of the stream whose text is covered."""
        begin, end = (min(max(at, self.begin), self.end) - self.begin for at in covered)
        chars, sizes = self.tokens.chars, self.tokens.bytes
        self.num_chunks += 1
        chunk = measured(
            nats, num_scored, int(chars[end] - chars[begin]), int(sizes[end] - sizes[begin])
        )
        return Row(self.document, self.num_chunks - 1, chunk)

    def dropped(self, begin: int) -> Row:
        """Return its last row, of what the stream from ``begin`` on leaves out."""
        row = self.row(0.0, 0, (begin, self.end))
        return row._replace(chunk=row.chunk._replace(nll_nats=math.nan, reason="dropped"))


@dataclass
class StreamRun(Run):
    """All documents as one stream."""

    _ids: Tokens = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _offset: int = 0  # the stream's number of the first token in _ids
    _members: list[_Member] = field(default_factory=list)
    _num_bytes: int = 0
    _is_closed: bool = False
    _of_media: bool = False
    _last: Window | None = None
    _held: list[Row] = field(default_factory=list)  # of the last window: the end may change them
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
        rows = self._append(block)
        windows = []
        while self._next.needed <= self._num_tokens:
            windows.append(self._next.window)
            self._next = next(self._coming)
        for window, own in self._score(windows):
            rows += self._held
            self._held = own
            self._last = window
        self._forget()
        return rows

    def _append(self, block: Block) -> list[Row]:
        """Take documents in; those that the stream has no room for have their rows at once."""
        rows = []
        added = [self._ids]
        end = self._num_tokens
        self._of_media = isinstance(block.documents[0].content, bytes)
        for document, tokens in zip(
            block.documents, block.tokens[Tokenization.of(self.protocol)], strict=True
        ):
            if reason := self._refuse(tokens):
                rows.append(Row(document, 0, unmeasured(document, reason)))
            elif tokens is not None:
                self._members.append(_Member(document, tokens, end))
                added.append(tokens.ids)
                end += len(tokens.ids)
        self._ids = np.concatenate(added)
        return rows

    def _refuse(self, tokens: TokenizedText | None) -> str | None:
        limit = self.protocol.max_stream_bytes
        self._num_bytes += 0 if tokens is None else int(tokens.bytes[-1])  # what joins it included
        self._is_closed |= limit is not None and self._num_bytes > limit
        if self._is_closed:
            return "dropped"
        if tokens is None:
            return "not_measurable"
        return None if len(tokens.ids) else "no_tokens"

    def _score(self, windows: Sequence[Window]) -> Iterator[tuple[Window, list[Row]]]:
        """Yield each window with its rows."""
        jobs = [Job(self._ids, window, self.prefix, self._offset) for window in windows]
        for window, nats in zip(windows, self._losses(jobs, self._of_media), strict=True):
            yield window, list(self._share(window, nats))
            self._covered = window.end

    def _share(self, window: Window, nats: Losses) -> Iterator[Row]:
        """Yield what each document has of a window: scored tokens, covered text, or both."""
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
        """Let go of tokens and documents that no window to come reads or covers."""
        keep = max(self._offset, min(self._next.window.begin, self._covered - self.context))
        self._ids = self._ids[keep - self._offset :].copy()
        self._offset = keep
        # What comes next may score again what it has read, so all of that may still get rows.
        done = bisect_right(self._members, keep, key=lambda member: member.end)
        del self._members[:done]

    def _last_rows(self) -> list[Row]:
        num_prefix = len(self.prefix)
        windows = finish_stream(
            self.protocol, self.context, self._last, self._num_tokens, num_prefix
        )
        rows = self._held + [row for _, own in self._score(windows) for row in own]
        if self.protocol.layout == "pieces" and num_prefix:
            # The peer subtracts the text of the dropped piece, which its BOS is a part of.
            rows = _shortened(rows, self.text_model.start_text or "")
        return rows + [
            member.dropped(self._covered) for member in self._members if member.end > self._covered
        ]


def _shortened(rows: Sequence[Row], text: str) -> list[Row]:
    """Count so much less text as covered, from the last row backwards."""
    num_chars, num_bytes = len(text), len(text.encode())
    shorter = []
    for row in reversed(rows):
        chars, size = min(num_chars, row.chunk.num_chars), min(num_bytes, row.chunk.num_bytes)
        num_chars, num_bytes = num_chars - chars, num_bytes - size
        chunk = row.chunk._replace(
            num_chars=row.chunk.num_chars - chars, num_bytes=row.chunk.num_bytes - size
        )
        shorter.append(row._replace(chunk=chunk))
    return shorter[::-1]
