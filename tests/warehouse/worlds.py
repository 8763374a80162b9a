"""Worlds whose truth is known: documents of log-normal lengths, a model's losses and a control's.

Difficulty has a document's own part, a month's and a drift. A compressor is more sensitive to a
document's than a model is, and shares a month's, but only half of the drift.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from core.month import Month
from core.schemas import LOSSES

FIRST = Month("2019-01")
SOURCES = ("news", "wikipedia_new")


@dataclass(frozen=True)
class Kind:
    """What a world has; in bits per byte, and bits per byte a month."""

    drift: float = 0.0
    jump: float = 0.0
    decay: float = 0.0


KINDS = {
    "none": Kind(),
    "drifting": Kind(drift=0.004),
    "stale": Kind(jump=0.1, decay=0.004),
    "both": Kind(drift=0.004, jump=0.1, decay=0.004),
}


@dataclass
class World:
    """One model on sources of its own; ``contaminated`` is the month half of which it has seen."""

    name: str
    kind: Kind
    rng: np.random.Generator
    is_contaminated: bool = False
    num_months: int = field(init=False)
    num_documents: int = field(init=False)
    cutoff: Month = field(init=False)
    contaminated: Month = field(init=False)

    def __post_init__(self) -> None:
        self.num_months = int(self.rng.integers(24, 49))
        self.num_documents = int(np.exp(self.rng.uniform(np.log(30), np.log(200))))
        before = int(self.rng.integers(self.num_months // 4, 3 * self.num_months // 4 + 1))
        self.cutoff = FIRST + (before - 1)
        self.contaminated = FIRST + int(self.rng.integers(before, self.num_months))

    def losses(self) -> list[pa.Table]:
        """Return the losses of the model and of control:zstd, schema LOSSES."""
        weather = self.rng.normal(0, 0.02, self.num_months)
        return [
            table
            for source in SOURCES
            for index in range(self.num_months)
            for table in self._month(f"{self.name}-{source}", index, weather[index])
        ]

    def _month(self, source: str, index: int, weather: float) -> list[pa.Table]:
        rng, size, month = self.rng, self.num_documents, FIRST + index
        num_bytes = (rng.lognormal(8, 1, size) + 20).astype(np.int64)
        ease, own, other = rng.normal(0, 1, (3, size))
        since = max(0, month.months_since(self.cutoff))
        drift = self.kind.drift * index
        stale = self.kind.jump * (since > 0) + self.kind.decay * since
        bits = 0.9 + drift + weather + stale + 0.16 * ease + 0.12 * own + rng.normal(0, 0.005)
        if self.is_contaminated and month == self.contaminated:
            bits = np.where(rng.permutation(size) < size // 2, 0.7, 1) * bits
        control = 3.2 + drift / 2 + weather + 0.24 * ease + 0.18 * other
        return [
            _table(model, source, month, num_bytes, np.maximum(rate, 0.05) * num_bytes)
            for model, rate in ((self.name, bits), ("control:zstd", control))
        ]


def worlds(kind: str, num_worlds: int = 50, is_contaminated: bool = False) -> list[World]:
    """Return worlds of a kind, the same ones each time."""
    return [
        World(f"{kind}-{number}", KINDS[kind], np.random.default_rng([7, number]), is_contaminated)
        for number in range(num_worlds)
    ]


def _table(model: str, source: str, month: Month, num_bytes: Any, bits: Any) -> pa.Table:
    size = len(num_bytes)
    day: dt.date = month.first_day
    columns = {
        "model": pa.repeat(model, size),
        "revision": pa.repeat("r1", size),
        "source": pa.repeat(source, size),
        "month": pa.repeat(pa.scalar(day, pa.date32()), size),
        "document_id": pa.array([f"{source}-{day}-{number}" for number in range(size)]),
        "chunk_index": pa.array(np.zeros(size, np.int32)),
        "protocol": pa.repeat("default", size),
        "nll_nats": pa.array(bits * np.log(2)),
        "num_tokens": pa.array(num_bytes),
        "num_chars": pa.array(num_bytes),
        "num_bytes": pa.array(num_bytes),
        "reason": pa.nulls(size, pa.string()),
    }
    return pa.table([columns[f.name] for f in LOSSES], schema=LOSSES)
