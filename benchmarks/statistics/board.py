"""Share of simulated worlds whose board has the right order.

    python -m benchmarks.statistics.board --worlds 120

In each world, the model that is best on fresh text has the oldest cutoff. Text from before a
model's cutoff is easier for it, as if it had been seen. So the order over all months is another
one. A pair of models is outside the resolution if its true difference is larger than the board's
``resolution``. A world is right if the board has all these pairs in their true order. Pairs whose
sets of ranks do not overlap are counted, too: how many of them are in the wrong order.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa

from benchmarks.__main__ import headline
from benchmarks.losses import losses_table
from benchmarks.statistics.panels import CONTROL, Floats
from core.corpus.partition import document_id
from core.month import Month
from core.settings import Settings
from warehouse.database.schema import list_tables, qualify
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse

FIRST = Month("2023-01")
SOURCES = ("news", "posts")
NUM_MODELS, NUM_MONTHS, NUM_DOCUMENTS = 5, 24, 8
FIRST_CUTOFF, APART = 3, 2  # months before the first cutoff, and from one cutoff to the next
_SEEN = 0.25  # how much easier text from before the cutoff is, in bits per byte
_STEP_SD = 0.04  # SD of the difference of neighbours on fresh text, whose sign is set
_MONTH_SD, _OWN_MONTH_SD = 0.04, 0.01  # of a month, and of a month for one model
_DOCUMENT_SD, _PAIR_SD = 0.2, 0.08  # as in worlds.py
_BOARD = "select model, bits_per_byte, rank, rank_low, rank_high, resolution from {} where rank > 0"
_NEW = "headline_at(cast(null as date), cast(null as date))"
_ALL = "headline_at(cast(null as date), cast(null as date), months := 'all')"


@dataclass
class Shares:
    """Numbers of worlds, and of pairs of models in them."""

    worlds: int = 0  # with a pair outside the resolution
    right: int = 0  # of them, with all these pairs in their true order
    right_over_all_months: int = 0  # the same if months that were seen count
    pairs: int = 0
    outside: int = 0
    outside_wrong: int = 0
    claimed: int = 0  # pairs whose sets of ranks do not overlap
    claimed_wrong: int = 0

    @property
    def row(self) -> str:
        """Return the numbers as a row of the table."""
        return (
            f"| {self.worlds} | {self.right} ({self.right / max(self.worlds, 1):.1%}) "
            f"| {self.right_over_all_months} | {self.pairs} | {self.outside} "
            f"| {self.outside_wrong} | {self.claimed} | {self.claimed_wrong} |"
        )


@dataclass(frozen=True)
class World:
    """Levels on fresh text by model, best first, and all losses."""

    levels: dict[str, float]  # bits per byte
    cutoffs: dict[str, Month]
    losses: pa.Table  # schema LOSSES


def draw_world(number: int, seed: int = 0) -> World:
    """Draw the world of a number; it depends on both numbers alone."""
    rng = np.random.default_rng([seed, number])
    levels = 0.9 + np.cumsum(np.abs(rng.normal(0, _STEP_SD, NUM_MODELS)))
    cutoffs = FIRST_CUTOFF - 1 + APART * np.arange(NUM_MODELS)
    names = [f"model-{place}" for place in rng.permutation(NUM_MODELS)]
    shape = (len(SOURCES), NUM_MONTHS)
    shared = rng.normal(0, _MONTH_SD, shape)[..., None]
    documents = rng.normal(0, _DOCUMENT_SD, (*shape, NUM_DOCUMENTS))
    sizes = np.ceil(np.exp(rng.normal(7, 1, documents.shape))).astype(np.int64)
    tables = [_losses(CONTROL, 2.0 + shared + documents, sizes)]
    for name, level, cutoff in zip(names, levels, cutoffs, strict=True):
        seen = np.where(np.arange(NUM_MONTHS) <= cutoff, _SEEN, 0)[:, None]
        own = rng.normal(0, _OWN_MONTH_SD, (*shape, 1))
        noise = rng.normal(0, _PAIR_SD, documents.shape)
        tables.append(_losses(name, level - seen + shared + own + documents + noise, sizes))
    return World(
        {name: float(level) for name, level in zip(names, levels, strict=True)},
        {name: FIRST + int(cutoff) for name, cutoff in zip(names, cutoffs, strict=True)},
        pa.concat_tables(tables),
    )


def _losses(
    model: str, bits: Floats, sizes: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
) -> pa.Table:
    """Return losses of one model on all sources and months, a row for each document."""
    months = [FIRST + place for place in range(NUM_MONTHS)]
    keys = [(s, m, n) for s in SOURCES for m in months for n in range(NUM_DOCUMENTS)]
    num_bytes = sizes.ravel()
    return losses_table(
        model=model,
        source=[source for source, _, _ in keys],
        month=[month.first_day for _, month, _ in keys],
        document_id=[document_id(s, f"{month}/{n}", None) for s, month, n in keys],
        nll_nats=np.maximum(bits, 0).ravel() * np.log(2) * num_bytes,
        num_tokens=np.maximum(num_bytes // 4, 1),
        num_chars=num_bytes,
        num_bytes=num_bytes,
    )


def measure(num_worlds: int, seed: int = 0) -> Shares:
    """Return what the boards of worlds say."""
    shares = Shares()
    with TemporaryDirectory(prefix="tidemark-bench-") as home:
        settings = Settings(home=home)
        with connected(settings) as connection:
            for number in range(num_worlds):
                world = draw_world(number, seed)
                _land(connection, settings, world)
                _count(shares, world, _board(connection, _NEW), _board(connection, _ALL))
                print(f"{number + 1} worlds: {shares.row}", file=sys.stderr, flush=True)
    return shares


def _land(connection: duckdb.DuckDBPyConnection, settings: Settings, world: World) -> None:
    """Land a world's losses in place of those of the former world."""
    for table in list_tables():
        name = qualify(table)
        columns = [column for column, *_ in connection.execute(f"describe {name}").fetchall()]
        if "model" in columns or table == "models":
            connection.execute(f"delete from {name}")
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(world.losses, "generated")
        facts = {"kind": "causal_lm", "cutoff_provenance": "planted"}
        warehouse.upsert_models(
            [{"name": name, "cutoff": cutoff, **facts} for name, cutoff in world.cutoffs.items()]
        )


def _board(
    connection: duckdb.DuckDBPyConnection, window: str
) -> dict[str, tuple[float, int, int, int, float]]:
    """Return level, rank, ends of the set of ranks, and resolution by ranked model."""
    rows = connection.execute(_BOARD.format(window)).fetchall()
    return {row[0]: (row[1], row[2], row[3], row[4], row[5]) for row in rows}


def _count(
    shares: Shares,
    world: World,
    new: dict[str, tuple[float, int, int, int, float]],
    over_all: dict[str, tuple[float, int, int, int, float]],
) -> None:
    """Count a world's pairs of models, better one first."""
    outside = []
    for better, worse in _pairs(world):
        first = new[better]
        second = new[worse]
        shares.pairs += 1
        if world.levels[worse] - world.levels[better] > first[4]:
            outside.append((better, worse))
        if first[3] < second[2] or second[3] < first[2]:
            shares.claimed += 1
            shares.claimed_wrong += second[3] < first[2]
    wrong = sum(new[better][0] >= new[worse][0] for better, worse in outside)
    wrong_over_all = sum(over_all[better][0] >= over_all[worse][0] for better, worse in outside)
    shares.outside += len(outside)
    shares.outside_wrong += wrong
    shares.worlds += bool(outside)
    shares.right += bool(outside) and not wrong
    shares.right_over_all_months += bool(outside) and not wrong_over_all


def _pairs(world: World) -> Iterator[tuple[str, str]]:
    """Yield pairs of models, that with the lower true level first."""
    return itertools.combinations(sorted(world.levels, key=lambda name: world.levels[name]), 2)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=120, help="simulated worlds (default: 120)")
    parser.add_argument("--seed", type=int, default=0, help="other worlds of the same kind")
    given = parser.parse_args()
    command = ["python", "-m", "benchmarks.statistics.board", "--worlds", str(given.worlds),
               "--seed", str(given.seed)]  # fmt: skip
    print("\n".join([
        headline(command),
        "",
        "| worlds | right order | over all months | pairs | outside the resolution | wrong "
        "| sets apart | wrong |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|",
        measure(given.worlds, given.seed).row,
    ]))  # fmt: skip


if __name__ == "__main__":
    main()
