"""What a scorer notes of a cell besides its losses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from core.cell_record import Milestone, TokenizerFacts
from models.accounting import TokenizedText
from models.backend import Losses

# Lengths at which FreshBench (Zhu et al. 2024) looks at the mean loss of a text's beginning.
MILESTONES = (10, 30, 50, 100, 200, 300, 400, 500, 800, 1000, 1200, 1500, 2000)


@dataclass
class Tally:
    """Counts of one cell, filled in while it is scored.

    Attributes:
        seconds: that tokenizing and the model took; what a batch that another protocol has run
            already would have taken is counted, too: what the cell costs by itself.
        num_tokens_read: inputs of the model, prefix and context included, padding not.
        num_lossy_documents: documents that the tokenizer does not give back.
        context: tokens of a window; None for a compressor.
    """

    seconds: float = 0.0
    num_tokens_read: int = 0
    num_lossy_documents: int = 0
    context: int | None = None
    _sums: dict[int, list[float]] = field(default_factory=dict)

    def add_beginnings(self, tokens: TokenizedText, losses: Sequence[Losses]) -> None:
        """Take a document into the milestones.

        Args:
            tokens: of the document.
            losses: of its windows' tokens; together, of its first tokens in order.
        """
        sums = np.cumsum(np.concatenate(losses)[: MILESTONES[-1]])
        for length in MILESTONES:
            if length > len(sums) or not math.isfinite(sums[length - 1]):
                return
            figures = (1, sums[length - 1], tokens.chars[length], tokens.bytes[length])
            known = self._sums.setdefault(length, [0.0] * len(figures))
            self._sums[length] = [a + float(b) for a, b in zip(known, figures, strict=True)]

    def milestones(self) -> tuple[Milestone, ...]:
        """Return the sums at each length that a document has."""
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
    """Where and how a scorer computes.

    Attributes:
        device: kind and name, such as ``cpu: AMD EPYC``.
        dtype: of weights; empty where there are none.
        batch_tokens: budget of a batch at present; None where there are no batches.
        versions: of the libraries that compute, by name.
        tokenizer: None where there is none.
    """

    device: str
    dtype: str
    batch_tokens: int | None
    versions: Mapping[str, str]
    tokenizer: TokenizerFacts | None
