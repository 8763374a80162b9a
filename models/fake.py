"""A scorer whose losses can be worked out by hand, for the tests of what stands on scorers."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import pyarrow as pa

from models.losses import (
    Chunk,
    ScoredDocument,
    iterate_documents,
    losses_table,
    unmeasured,
)
from models.protocols import ScoringProtocol
from models.tally import ScorerFacts, Tally
from models.windows import plan_windows


def two_bits(month: dt.date | None) -> float:
    """Charge every byte two bits, whatever its month."""
    return 2.0


class FakeScorer:
    """Its tokens are bytes, and each costs what its month costs.

    Args:
        name: the ``model`` column.
        bits_per_byte: of the text of a month (None: undated).
        context: its maximum of tokens; None takes windows of any length.
    """

    def __init__(
        self,
        name: str = "fake",
        bits_per_byte: Callable[[dt.date | None], float] = two_bits,
        context: int | None = None,
    ) -> None:
        self.name = name
        self.revision = "fake"
        self._bits_per_byte = bits_per_byte
        self._context = context

    def scoring_id(self, protocol: ScoringProtocol) -> str:
        """Return a hash over the protocol and the effective context."""
        definition = f"{protocol.digest} {protocol.effective_context(self._context)}"
        return hashlib.sha256(definition.encode()).hexdigest()[:8]

    @property
    def facts(self) -> ScorerFacts:
        """Nothing much: no device, no tokenizer."""
        return ScorerFacts("fake", "", None, {}, None)

    def score(
        self, documents: Iterable[pa.RecordBatch], protocol: ScoringProtocol
    ) -> Iterator[pa.Table]:
        """Score documents under one protocol; as ``score_together``."""
        for (table,) in self.score_together(documents, [protocol], [Tally()]):
            yield table

    def score_together(
        self,
        documents: Iterable[pa.RecordBatch],
        protocols: Sequence[ScoringProtocol],
        tallies: Sequence[Tally],
    ) -> Iterator[tuple[pa.Table, ...]]:
        """Score documents, one table each; see ``Scorer.score_together``."""
        for document in iterate_documents(documents):
            yield tuple(self._table(document, protocol) for protocol in protocols)

    def _table(self, document: ScoredDocument, protocol: ScoringProtocol) -> pa.Table:
        context = protocol.effective_context(self._context)
        chunks = self._chunks(document, protocol, context)
        return losses_table((self.name, self.revision), protocol.name, [document], [chunks])

    def _chunks(
        self, document: ScoredDocument, protocol: ScoringProtocol, context: int
    ) -> list[Chunk]:
        raw = document.raw
        nats = self._bits_per_byte(document.month) * math.log(2)
        chunks = []
        covered = 0
        for window in plan_windows(
            len(raw), protocol, context, num_prefix=int(protocol.prefix != "none")
        ):
            piece = raw[covered : window.end]
            # A character counts where its last byte is: where the next byte begins another.
            following = raw[covered + 1 : window.end + 1] + b" " * (window.end == len(raw))
            chars = sum(byte & 0xC0 != 0x80 for byte in following)
            chunks.append(Chunk(nats * window.num_scored, window.num_scored, chars, len(piece)))
            covered = window.end
        return chunks or [unmeasured(document, "no_tokens")]
