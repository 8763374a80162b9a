"""Simulated worlds: tables of losses with known true values, to check intervals.

A world has 24 months, three models and two sources. Model "gap" has a higher loss after its cutoff,
model "steady" does not, and "control" is a compressor. Source ``fresh`` has new documents every
month; source ``pages`` has the same monitored pages. Document lengths are log-normal (sigma 1),
because intervals often fail for long tails. The monthly bits per byte change by a drift and by
shocks that last into the next month. The difficulty of a document is mostly the same for all
models. A page keeps its length and difficulty, apart from noise and a drift of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.losses import losses_table
from core.month import Month

NUM_MONTHS, NUM_BEFORE = 24, 12
FIRST = Month("2023-01")
MODELS = ("gap", "steady", "control")
SOURCES = ("fresh", "pages")
CONTROL = "control:zstd"

_GAP = 0.05  # rise of model "gap" after its cutoff, in bits per byte
_LEVELS = (0.9, 1.0, 2.0)
_MONTH_SD, _MONTH_MEMORY = 0.04, 0.3
_DOCUMENT_SD = 0.2  # SD of a document's difficulty (bits per byte), the same for all models
_PAIR_SD = 0.08  # SD of noise (bits per byte) per model and document, and per page and month
_PAGE_DRIFT_SD = 0.002  # SD of a page's own drift, in bits per byte per month
_MEAN_LOG_BYTES = 7.0

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class World:
    """The true values of one simulated world; ``number`` identifies the world.

    ``monthly`` holds the expected bits per byte by model, source and month. ``drift`` holds the
    growth by source, in bits per byte per month.
    """

    number: int
    monthly: Floats
    drift: Floats

    def name(self, what: str) -> str:
        """Return the name of a model or source in this world."""
        return f"world-{self.number:04d}-{what}"


def simulate(numbers: Sequence[int], num_documents: int) -> tuple[list[World], pa.Table]:
    """Draw one world per number of ``numbers``; a world depends only on its number.

    Return the worlds and their losses (schema LOSSES), one chunk per document. Each source and
    month has ``num_documents`` documents. The compressor is ``control:zstd`` in all worlds.
    """
    worlds, tables = [], []
    for number in numbers:
        rng = np.random.default_rng([number, num_documents])
        world = _draw_world(number, rng)
        num_bytes, bits = _draw_documents(world, num_documents, rng)
        worlds.append(world)
        tables.append(_losses(world, num_bytes, bits))
    return worlds, pa.concat_tables(tables)


def catalogue(worlds: Sequence[World]) -> list[dict[str, object]]:
    """Return rows of table ``models``: cutoff after NUM_BEFORE months, release a month later."""
    cutoff = FIRST + (NUM_BEFORE - 1)
    released = (cutoff + 1).first_day
    facts = {"cutoff": cutoff, "cutoff_provenance": "planted", "released": released}
    return [{"name": world.name(model), **facts} for world in worlds for model in MODELS[:2]]


def _draw_world(number: int, rng: np.random.Generator) -> World:
    """Return random levels, shocks and drifts of all months; one model has a gap."""
    drift = rng.normal(0, 0.003, len(SOURCES))
    noise = rng.normal(0, _MONTH_SD, (len(SOURCES), NUM_MONTHS + 1))
    shocks = noise[:, 1:] + _MONTH_MEMORY * noise[:, :-1]
    gaps = np.zeros((len(MODELS), 1, NUM_MONTHS))
    gaps[0, :, NUM_BEFORE:] = _GAP
    levels = np.array(_LEVELS).reshape(-1, 1, 1)
    monthly = levels + gaps + drift[:, None] * np.arange(NUM_MONTHS) + shocks
    return World(number, monthly, drift)


def _draw_documents(
    world: World, num_documents: int, rng: np.random.Generator
) -> tuple[NDArray[np.int64], Floats]:
    """Draw lengths (bytes) by source, month and document; bits per byte also by model."""
    shape = (NUM_MONTHS, num_documents)
    sizes = np.exp(rng.normal(_MEAN_LOG_BYTES, 1, (len(SOURCES), *shape)))
    hardness = rng.normal(0, _DOCUMENT_SD, (len(SOURCES), *shape))
    months = np.arange(NUM_MONTHS)[:, None] - (NUM_MONTHS - 1) / 2
    pages = SOURCES.index("pages")
    sizes[pages] = sizes[pages, :1] * np.exp(rng.normal(0, 0.1, shape))
    hardness[pages] = (
        hardness[pages, :1]
        + rng.normal(0, _PAGE_DRIFT_SD, num_documents) * months
        + rng.normal(0, _PAIR_SD, shape)
    )
    own = rng.normal(0, _PAIR_SD, (len(MODELS), len(SOURCES), *shape))
    bits = world.monthly[..., None] + hardness + own
    return np.ceil(sizes).astype(np.int64), np.maximum(bits, 0)


def _losses(world: World, num_bytes: NDArray[np.int64], bits: Floats) -> pa.Table:
    """Return the losses of one simulation as a table."""
    shape = bits.shape
    index = np.indices(shape).reshape(len(shape), -1)
    names = [world.name(model) for model in MODELS[:2]] + [CONTROL]
    bytes_of_all = np.broadcast_to(num_bytes, shape).ravel()
    months = [(FIRST + number).first_day for number in range(NUM_MONTHS)]
    return losses_table(
        model=pa.array(names).take(pa.array(index[0])),
        source=pa.array([world.name(source) for source in SOURCES]).take(pa.array(index[1])),
        month=pa.array(months).take(pa.array(index[2])),
        document_id=_document_ids(world, shape),
        nll_nats=bits.ravel() * bytes_of_all * np.log(2),
        **dict.fromkeys(("num_tokens", "num_chars", "num_bytes"), bytes_of_all),
    )


def _document_ids(world: World, shape: tuple[int, ...]) -> pa.Array:
    """Return document ids; a page has one id in all months, so that its losses form one cluster."""
    _, _, num_months, num_documents = shape
    fresh = [
        f"{world.number}-{month}-{number}"
        for month in range(num_months)
        for number in range(num_documents)
    ]
    pages = [f"{world.number}-page-{number}" for number in range(num_documents)] * num_months
    return pa.array((fresh + pages) * len(MODELS))
