"""What a scorer is: a model that gives losses to documents under a protocol."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import pyarrow as pa

from models.protocols import ScoringProtocol


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

    def score(
        self, documents: Iterable[pa.RecordBatch], protocol: ScoringProtocol
    ) -> Iterator[pa.Table]:
        """Score documents as they stream in.

        Args:
            documents: batches with at least document_id, source, month and text.
            protocol: windows, start token and scored span.

        Yields:
            Tables of schema LOSSES, chunks of a document together and in order, documents in the
            order they came. ``nll_nats`` is NaN with a ``reason`` where a chunk could not be
            measured.

        Raises:
            NotMeasurable: this model cannot be scored under this protocol.
        """
