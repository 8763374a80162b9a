"""Scoring by tokens: any model that says how surprised it is by tokens that follow others.

Documents stream through in blocks. A block is tokenized (in parallel threads, while the device
works on the one before), cut into windows as each protocol says, and the windows are batched by
length. Blocks and batches follow from the documents and the token budget alone, so that scoring
twice gives the same bits; protocols that come to the same batch share one pass.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from models.backend import Backend
from models.batches import Batches
from models.blocks import read_blocks
from models.protocols import ScoringProtocol
from models.runs import DocumentRun, Run
from models.streams import StreamRun
from models.tally import ScorerFacts, Tally
from models.text_model import TextModel
from models.windows import check_prefix

_VERSION = "2"  # raised when a change here, or in what it stands on, changes losses


@dataclass(frozen=True)
class TokenIdentity:
    """What a model's cells are named after; known before its weights are read.

    Attributes:
        name: the ``model`` column.
        revision: commit of the hub, or digest of the files.
        context: most tokens that it takes at once; None where it has no maximum.
        numerics: dtype, attention and what else decides its figures.
    """

    name: str
    revision: str
    context: int | None
    numerics: str

    def scoring_id(self, protocol: ScoringProtocol) -> str:
        """Return a hash over protocol, effective context, numerics and this code's version.

        Raises:
            NotMeasurable: the protocol's windows are longer than the model takes.
        """
        context = protocol.effective_context(self.context)
        definition = f"{_VERSION} {protocol.digest} {context} {self.numerics}"
        return hashlib.sha256(definition.encode()).hexdigest()[:8]


class TokenScorer:
    """A model with the interface of ``models.scorer.Scorer``; of threads if its backend is.

    Args:
        identity: what its cells are named after.
        text_model: its tokenizer.
        backend: runs it.
        facts: where and how; ``batch_tokens`` is the budget to begin with.

    Attributes:
        name: the ``model`` column.
        revision: commit of the hub, or digest of the files.
        context: most tokens that it takes at once; None where it has no maximum.
        text_model: its tokenizer.
        backend: runs it.
        identity: what its cells are named after.
    """

    def __init__(
        self, identity: TokenIdentity, text_model: TextModel, backend: Backend, facts: ScorerFacts
    ) -> None:
        self.identity = identity
        self.backend = backend
        self.name = identity.name
        self.revision = identity.revision
        self.context = identity.context
        self.text_model = text_model
        self._facts = facts
        wanted = facts.batch_tokens or 1
        budget = min(wanted, backend.max_batch_tokens or wanted)
        self._batches = Batches(self.name, backend, text_model.vocabulary_size, budget)

    @property
    def facts(self) -> ScorerFacts:
        """Where and how it computes; the budget is the present one."""
        return self._facts._replace(batch_tokens=self._batches.budget)

    def scoring_id(self, protocol: ScoringProtocol) -> str:
        """As ``TokenIdentity.scoring_id``."""
        return self.identity.scoring_id(protocol)

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
        """Score documents under several protocols; see ``Scorer.score_together``.

        Chunks are windows; of a stream, what a window has of each document. ``reason`` is
        ``no_tokens`` for a text that the tokenizer leaves nothing of, ``non_finite`` where the
        model gives no finite loss, ``not_measurable`` for media where the tokenizer has no byte
        tokens, ``dropped`` for what the end of a stream leaves out.

        Raises:
            NotMeasurable: a protocol's windows are longer than the model takes, it needs tokens
                that the tokenizer does not have, or one window does not fit into the memory.
            BatchTooLarge: a batch did not fit; score again from the beginning.
        """
        batches = self._batches.anew()
        runs = [self._start(*each, batches) for each in zip(protocols, tallies, strict=True)]
        try:
            for block in read_blocks(documents, self.text_model, protocols):
                yield tuple(run.take(block) for run in runs)
                batches.forget()
            yield tuple(run.finish() for run in runs)
        finally:
            self._batches.budget = min(self._batches.budget, batches.budget)

    def _start(self, protocol: ScoringProtocol, tally: Tally, batches: Batches) -> Run:
        context = protocol.effective_context(self.context)
        prefix = self.text_model.prefix(protocol)
        check_prefix(protocol, context, len(prefix))
        tally.context = context
        kind = StreamRun if protocol.is_stream else DocumentRun
        return kind(
            model=(self.name, self.revision),
            protocol=protocol,
            context=context,
            prefix=prefix,
            text_model=self.text_model,
            batches=batches,
            tally=tally,
        )
