"""A run: one partition under one protocol, block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from models.backend import Losses
from models.batches import Batches, Job
from models.blocks import Block, Tokenization
from models.losses import Chunk, Row, measured, rows_table, unmeasured
from models.protocols import ScoringProtocol
from models.tally import Tally
from models.text_model import TextModel
from models.windows import Window, plan_windows


@dataclass
class Run(ABC):
    """What runs over documents and over streams have in common.

    Attributes:
        model: name and revision.
        protocol: the one.
        context: its effective context.
        prefix: the tokens before each window's text.
        text_model: the tokenizer; its byte tokens are the alphabet of media.
        batches: run the windows.
        tally: of the cell.
    """

    model: tuple[str, str]
    protocol: ScoringProtocol
    context: int
    prefix: tuple[int, ...]
    text_model: TextModel
    batches: Batches
    tally: Tally

    def take(self, block: Block) -> pa.Table:
        """Score a block; returns the rows that are known by now."""
        self.tally.seconds += block.seconds
        for tokens in block.tokens[Tokenization.of(self.protocol)]:
            self.tally.num_lossy_documents += tokens is not None and not tokens.is_lossless
        return rows_table(self.model, self.protocol.name, self._rows(block))

    def finish(self) -> pa.Table:
        """Return the rows that only the end of the partition decides."""
        return rows_table(self.model, self.protocol.name, self._last_rows())

    @abstractmethod
    def _rows(self, block: Block) -> list[Row]:
        """Score a block."""

    @abstractmethod
    def _last_rows(self) -> list[Row]:
        """Score what is left."""

    def _losses(self, jobs: Sequence[Job], of_media: bool) -> list[Losses]:
        return self.batches.run(jobs, self.text_model.byte_tokens if of_media else None, self.tally)


class DocumentRun(Run):
    """Each document by itself; its chunks are its windows."""

    def _rows(self, block: Block) -> list[Row]:
        tokens = block.tokens[Tokenization.of(self.protocol)]
        plans = [
            plan_windows(len(each.ids), self.protocol, self.context, len(self.prefix))
            if each
            else []
            for each in tokens
        ]
        jobs = [
            Job(each.ids, window, self.prefix)
            for each, plan in zip(tokens, plans, strict=True)
            if each
            for window in plan
        ]
        losses = iter(self._losses(jobs, isinstance(block.documents[0].content, bytes)))
        rows = []
        for number, (document, plan) in enumerate(zip(block.documents, plans, strict=True)):
            own = [next(losses) for _ in plan]
            chunks = self._chunks(block, number, plan, own)
            rows += [Row(document, index, chunk) for index, chunk in enumerate(chunks)]
        return rows

    def _chunks(
        self, block: Block, number: int, plan: Sequence[Window], losses: Sequence[Losses]
    ) -> list[Chunk]:
        """Give each window the text from the end of the one before it to its own end."""
        tokens = block.tokens[Tokenization.of(self.protocol)][number]
        if tokens is None or not plan:
            reason = "no_tokens" if tokens else "not_measurable"
            return [unmeasured(block.documents[number], reason)]
        if self.protocol.charges_every_token:
            self.tally.add_beginnings(tokens, losses)
        chunks, covered = [], 0
        for window, nats in zip(plan, losses, strict=True):
            chunks.append(
                measured(
                    nats=float(nats.sum()),
                    num_tokens=window.num_scored,
                    num_chars=int(tokens.chars[window.end] - tokens.chars[covered]),
                    num_bytes=int(tokens.bytes[window.end] - tokens.bytes[covered]),
                )
            )
            covered = window.end
        return chunks

    def _last_rows(self) -> list[Row]:
        return []
