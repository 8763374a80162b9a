"""What a scorer is: a model that gives losses to documents under a protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa

from models.protocols import ScoringProtocol
from models.tally import ScorerFacts, Tally


class Identity(Protocol):
    """What a model's cells are named after, known before any weights are loaded."""

    @property
    def name(self) -> str:
        """The ``model`` column."""

    @property
    def revision(self) -> str:
        """Commit of the hub, or digest of the files."""

    def scoring_id(self, protocol: ScoringProtocol) -> str:
        """Return a short stable hash of all else that decides the figures.

        That is the protocol's definition, the effective context, the dtype and the version of the
        scorer's code.

        Raises:
            NotMeasurable: this model cannot be scored under this protocol.
        """


class Scorer(Identity, Protocol):
    """A loaded model."""

    @property
    def facts(self) -> ScorerFacts:
        """Where and how it computes."""

    def score_together(
        self,
        documents: Iterable[pa.RecordBatch],
        protocols: Sequence[ScoringProtocol],
        tallies: Sequence[Tally],
    ) -> Iterator[tuple[pa.Table, ...]]:
        """Score documents as they stream in, under several protocols in one go.

        Args:
            documents: batches with document_id, source, month, and text or (of media) media and
                width.
            protocols: windows, start token and scored span.
            tallies: one a protocol, to be filled in.

        Yields:
            One table a protocol, of schema LOSSES, perhaps without rows; the chunks of a document
            are in order. ``nll_nats`` is NaN with a ``reason`` where a chunk could not be measured.

        Raises:
            NotMeasurable: this model cannot be scored under one of the protocols.
            BatchTooLarge: the device's memory was full; it will not be if scored again.
        """
