"""A scorer whose losses can be computed by hand, for tests of modules that use scorers."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from core.settings import Settings
from models.catalogue import ModelEntry
from models.scoring.protocol import ScoringProtocol
from models.scoring.scorer import (
    Chunk,
    Row,
    ScoredDocument,
    ScorerFacts,
    Scoring,
    Tally,
    iterate_documents,
    rows_table,
    unmeasured,
)
from models.scoring.windows import plan_windows


class FakeScorer(Scoring):
    """A scorer whose tokens are bytes; the cost of a byte depends on the document's month."""

    def __init__(
        self,
        name: str = "fake",
        bits_per_byte: Callable[[dt.date | None], float] = lambda month: 2.0,
        context: int | None = None,
    ) -> None:
        self.name = name
        self.revision = "fake"
        self._bits_per_byte = bits_per_byte
        self._context = context

    def scoring_id(self, protocol: ScoringProtocol, has_control: bool = False) -> str:
        """Return a hash over the protocol and the effective context."""
        definition = f"{protocol.digest} {protocol.effective_context(self._context)}"
        return hashlib.sha256(definition.encode()).hexdigest()[:8]

    @property
    def facts(self) -> ScorerFacts:
        """Facts with a fake device, and without a tokenizer."""
        return ScorerFacts("fake", "", None, {}, None)

    def score_together(
        self,
        documents: Iterable[pa.RecordBatch],
        protocols: Sequence[ScoringProtocol],
        tallies: Sequence[Tally],
    ) -> Iterator[tuple[pa.Table, ...]]:
        """Yield one table per protocol for each document; see ``Scorer.score_together``."""
        for document in iterate_documents(documents):
            yield tuple(self._table(document, protocol) for protocol in protocols)

    def _table(self, document: ScoredDocument, protocol: ScoringProtocol) -> pa.Table:
        context = protocol.effective_context(self._context)
        chunks = self._chunks(document, protocol, context)
        rows = [Row(document, index, chunk) for index, chunk in enumerate(chunks)]
        return rows_table((self.name, self.revision), protocol.name, rows)

    def _chunks(
        self, document: ScoredDocument, protocol: ScoringProtocol, context: int
    ) -> list[Chunk]:
        """Return the loss of each window of a document; each byte costs the same."""
        raw = document.raw
        nats = self._bits_per_byte(document.month) * math.log(2)
        chunks = []
        covered = 0
        for window in plan_windows(
            len(raw), protocol, context, num_prefix=int(protocol.prefix != "none")
        ):
            piece = raw[covered : window.end]
            # A character is counted at its last byte, after which another character starts.
            following = raw[covered + 1 : window.end + 1] + b" " * (window.end == len(raw))
            chars = sum(byte & 0xC0 != 0x80 for byte in following)  # no continuation byte of UTF-8
            chunks.append(Chunk(nats * window.num_scored, window.num_scored, chars, len(piece)))
            covered = window.end
        return chunks or [unmeasured(document, "no_tokens")]


def load_fake(entry: ModelEntry, settings: Settings) -> FakeScorer:
    """Return a scorer with the name and the context of an entry."""
    return FakeScorer(entry.name, context=entry.context)
