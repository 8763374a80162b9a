"""Measure by simulation what the views tell of months: gaps, growth, slopes, cutoffs, low months.

Simulated losses land as imported losses; the views are queried. Each world is a protocol of a
warehouse, so that no world corrects the tests of another. The expected bits per byte of model i in
month m are

    1 + theta_i * (shock_m + drift * m + season_m) + break_m + gap_i * ramp_im + noise_im

Shocks have a standard deviation of 0.02, noise 0.008, gaps 0.03. The first model's gap follows the
design; the others have steps, with cutoffs spread over the months. Model control:zstd shares the
shocks, the drift and the break. A declared break (``regime``) differs from curve to curve, the
compressor's included. Figures are of the first model, false alarms of all models.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import signal  # type: ignore[import-untyped]

from benchmarks.statistics.intervals import Tally
from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from warehouse.database.schema import read_sql
from warehouse.database.writer import connected
from warehouse.estimates.cutoffs import ramp
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

Floats = NDArray[np.float64]
SHOCK, NOISE, GAP, SEEN, BREAK = 0.02, 0.008, 0.03, 0.1, 0.1
FIRST, CONTROL = Month("2021-01"), "control:zstd"
_MEAN_LOG_BYTES = 7.0
_PARTITION = {
    "source": "news", "partition_digest": "", "partition_version": 1, "num_documents": 0,
    "num_bytes": 0,
}  # fmt: skip


@dataclass(frozen=True)
class Design:
    """One kind of world. Months count from 0; a ramp reaches from ``start`` to ``end``."""

    start: int = 17
    end: int = 18
    num_months: int = 36
    num_models: int = 8
    gap: float = GAP
    growth: float = 0  # of the first model's gap, a month
    second: int | None = None  # last month before a second step of the same gap
    memory: float = 0  # autocorrelation of the noise
    shock_memory: float = 0
    tail: float | None = None  # degrees of freedom of the shocks
    is_shared: bool = True  # False: the compressor has no shocks and no drift
    drift: float = 0  # a month; with sensitivities from 0.7 to 1.3
    season: float = 0  # amplitude over 12 months
    site_break: float = 0  # in all curves, after the first model's cutoff
    regime: int | None = None  # first month of a regime, with a break of size BREAK (deviation)
    missing: float = 0
    hole: tuple[int, int] = (0, 0)
    scatter: float = 1  # of the noise after each model's cutoff, by a factor
    seen: int | None = None  # month that the first model has seen
    num_documents: int = 3
    document_sd: float = 0.005  # of their difficulty for all models; of each model's own, a tenth
    length_sd: float = 1  # of the logarithm of a document's bytes
    lacking: float = 0  # share of documents that a model lacks

    @property
    def cutoffs(self) -> Floats:
        """Return the last month before each model's step, as (models,)."""
        cutoffs = np.linspace(4, self.num_months - 5, self.num_models).round()
        cutoffs[0] = self.end - 1
        return cutoffs

    def expect(self) -> Floats:
        """Return the first model's bits per byte without shocks and noise, as (months,)."""
        months = np.arange(self.num_months)
        y = 1 + self.drift * months + self.season * np.sin(months * np.pi / 6)
        y += self.site_break * (months >= self.end) + self.gap * ramp(months, self.start, self.end)
        y += self.growth * np.maximum(months - self.end + 1, 0)
        if self.second is not None:
            y += self.gap * (months > self.second)
        return y

    def draw(self, rng: np.random.Generator) -> Floats:
        """Return bits per byte (models + 1, months), the compressor's last; NaN if missing."""
        shape, months = (self.num_models, self.num_months), np.arange(self.num_months)
        draws = rng.normal(size=self.num_months + 20)
        if self.tail:
            draws = rng.standard_t(self.tail, len(draws)) / np.sqrt(self.tail / (self.tail - 2))
        shock = signal.lfilter([1], [1, -self.shock_memory], draws)[20:]
        common = SHOCK * shock * np.sqrt(1 - self.shock_memory**2) + self.drift * months
        common += self.season * np.sin(months * np.pi / 6)
        spread = np.linspace(0.7, 1.3, shape[0]) if self.drift else np.ones(shape[0])
        noise = rng.normal(size=(shape[0], self.num_months + 20)) * np.sqrt(1 - self.memory**2)
        noise = NOISE * signal.lfilter([1], [1, -self.memory], noise)[:, 20:]
        is_after, theta = months > self.cutoffs[:, None], rng.permutation(spread)
        theta[0] = 1
        y = 1 + theta[:, None] * common + noise * np.where(is_after, self.scatter, 1)
        y[1:] += max(GAP, self.gap) * is_after[1:] + self.site_break * (months >= self.end)
        y[0] += self.expect() - 1 - self.drift * months - self.season * np.sin(months * np.pi / 6)
        if self.seen is not None:
            y[0, self.seen] -= SEEN
        control = 2 + common * self.is_shared + self.site_break * (months >= self.end)
        y = np.vstack([y, control + NOISE * rng.normal(size=self.num_months)])
        if self.regime is not None:
            y += BREAK * rng.normal(size=(len(y), 1)) * (months >= self.regime)
        y[:-1][rng.random(shape) < self.missing] = np.nan
        y[:, slice(*self.hole)] = np.nan
        return y

    @property
    def names(self) -> list[str]:
        """Return the names of the rows of ``draw``."""
        return [*(f"model-{number}" for number in range(self.num_models)), CONTROL]


_STEPS = {
    f"step after month {end} of 36": Design(end - 1, end)
    for end in (1, 2, 3, 6, 12, 24, 33, 34, 35)
}
DESIGNS = {
    "no change": Design(gap=0),
    "no change, shocks AR(0.3)": Design(gap=0, shock_memory=0.3),
    "no change, shocks AR(0.5)": Design(gap=0, shock_memory=0.5),
    "no change, shocks of models alone": Design(gap=0, is_shared=False),
    "no change, t3 shocks": Design(gap=0, tail=3),
    "no change, noise AR(0.5)": Design(gap=0, memory=0.5),
    "no change, drift 0.003": Design(gap=0, drift=0.003),
    "no change, drift of models alone": Design(gap=0, drift=0.003, is_shared=False),
    "no change, seasons": Design(gap=0, season=0.02),
    "no change, site break": Design(gap=0, site_break=0.1),
    "no change, 25 % missing": Design(gap=0, missing=0.25),
    "no change, 5 documents of any length": Design(
        gap=0, num_documents=5, document_sd=0.2, length_sd=1.8
    ),
    "no change, a fifth of documents lacking": Design(gap=0, num_documents=10, lacking=0.2),
    "no change, cutoff before the window": Design(-5, -4, gap=0),
    "no change, a regime with other breaks": Design(gap=0, regime=10),
    "no change, a regime after the cutoff": Design(gap=0, regime=18),
    "no change, a regime, compressor alone": Design(gap=0, regime=10, num_models=1),
    "step": Design(),
    "step, shocks AR(0.5) of models alone": Design(shock_memory=0.5, is_shared=False),
    "step, noise AR(0.5)": Design(memory=0.5),
    "step, drift 0.003": Design(drift=0.003),
    "step, site break": Design(site_break=0.1),
    "step, a regime with other breaks": Design(regime=28),
    "step of 0.2, a regime, compressor alone": Design(gap=0.2, regime=28, num_models=1),
    "step, 25 % missing": Design(missing=0.25),
    "step, a fifth of documents lacking": Design(num_documents=10, lacking=0.2),
    "step, then growth 0.001": Design(growth=0.001),
    "step, 3 models": Design(num_models=3),
    "step, 12 months": Design(6, 7, num_months=12),
    "step of 2, noise tenfold after": Design(gap=2, scatter=10, num_models=3, num_months=24),
    **_STEPS,
    "two steps": Design(11, 12, second=23),
    "ramp of 6 months": Design(15, 21),
    "ramp of 12 months": Design(12, 24),
    "step in a hole of 4 months": Design(hole=(16, 20)),
    "growth 0.002 without a step": Design(gap=0, growth=0.002),
    "a seen month": Design(seen=25),
    "a seen month, 3 models": Design(seen=25, num_models=3),
}


def land(design: Design, num_worlds: int, settings: Settings) -> None:
    """Land worlds, and publish them; a world depends on its number and its design alone."""
    facts = {"cutoff_provenance": "planted"}
    models = [
        {"name": name, "cutoff": (FIRST + int(month)).first_day, **facts}
        for name, month in zip(design.names, design.cutoffs, strict=False)
    ]
    with open_warehouse(settings) as warehouse:
        for first in range(0, num_worlds, 50):
            numbers = range(first, min(first + 50, num_worlds))
            tables = [_losses(design, number) for number in numbers]
            warehouse.land_losses(pa.concat_tables(tables), "worlds")
        warehouse.upsert_models(models)
    if design.regime is not None:
        with connected(settings) as connection:
            for number in range(design.num_months):
                regime = "after" if number >= design.regime else "before"
                month = {"month": (FIRST + number).first_day, "regime": regime}
                connection.execute(read_sql("land/sql", "insert_partition"), _PARTITION | month)
    publish(settings)


def _losses(design: Design, number: int) -> pa.Table:
    """Return one world's losses (schema LOSSES), a chunk for each document."""
    rng = np.random.default_rng(number)
    y = design.draw(rng)
    shape = (*y.shape, design.num_documents)
    sizes = np.ceil(np.exp(rng.normal(_MEAN_LOG_BYTES, design.length_sd, shape[1:])))
    bits = y[..., None] + design.document_sd * rng.normal(size=shape[1:])
    bits += design.document_sd / 10 * rng.normal(size=shape)
    is_there = ~np.isnan(bits) & (rng.random(shape) >= design.lacking)
    model, month, document = np.nonzero(is_there)
    num_bytes = np.broadcast_to(sizes, shape)[is_there].astype(np.int64)
    months = pa.array([(FIRST + number).first_day for number in range(design.num_months)])
    ids = pa.array([f"{number}-{each}" for each in range(shape[1] * shape[2])])
    columns = {
        "model": pa.array(design.names).take(pa.array(model)),
        "source": pa.repeat("news", len(model)),
        "month": months.take(pa.array(month)),
        "protocol": pa.repeat(f"world-{number}", len(model)),
        "document_id": ids.take(pa.array(month * shape[2] + document)),
        "chunk_index": pa.array(np.zeros(len(model), np.int32)),
        "nll_nats": pa.array(bits[is_there] * num_bytes * np.log(2)),
        **dict.fromkeys(("num_tokens", "num_chars", "num_bytes"), pa.array(num_bytes)),
        "revision": pa.repeat("r1", len(model)),
        "reason": pa.nulls(len(model), pa.string()),
    }
    return pa.table([columns[field.name].cast(field.type) for field in LOSSES], schema=LOSSES)


def truths(design: Design) -> dict[tuple[str, str], float]:
    """Return the true value of each view's figure; left out where it has none.

    A ramp has no single gap by the panel; a slope is that of a straight line. A seen month changes
    all figures. A break of the first model alone counts as gap, except in the panel.
    """
    if design.seen is not None or design.num_models == 1:
        return {}
    y, months = design.expect(), np.arange(design.num_months)
    is_after = months > design.cutoffs[0]
    is_step, is_flat = design.end == design.start + 1 and design.second is None, not design.gap
    found = {}
    if is_after.any() and not is_after.all():
        if not design.missing and not any(design.hole) and design.regime is None:
            gap = y[is_after].mean() - y[~is_after].mean()
            found["train_test_gap", "bits_per_byte_gap"] = gap
        if is_step:
            own = design.gap + design.growth * (months - design.end + 1)[is_after].mean()
            found["control_adjusted_gap", "adjusted_gap"] = own
            found["ageing", "growth_per_month"] = design.growth
            found["effect_difference", "difference"] = own - max(GAP, design.gap)
    if is_flat and not (design.growth or design.site_break or design.season or design.regime):
        found["tbi_likelihood", "tbi_per_month"] = design.drift
    return found


@dataclass
class Shares:
    """Figures of the views in the worlds of one design."""

    intervals: dict[tuple[str, str], Tally]  # by view and figure; without the truth: see truths
    cutoffs: list[dict[str, Any]]  # rows of estimated_cutoff, of the first model
    suspects: list[set[tuple[str, Any]]]  # by world: models and months
    seen: tuple[str, Any]

    def share(self, name: str, month: Month) -> float:
        """Return how many found intervals of a month (``estimated_cutoff``) have ``month``."""
        day = month.first_day
        found = [row for row in self.cutoffs if row["estimated_cutoff"]]
        inside = [
            not ((row[f"{name}_low"] or day) > day or (row[f"{name}_high"] or day) < day)
            for row in found
        ]
        return float(np.mean(inside)) if found else np.nan

    @property
    def found(self) -> float:
        """Return the share of worlds with a cutoff."""
        return float(np.mean([row["estimated_cutoff"] is not None for row in self.cutoffs]))

    @property
    def at_edge(self) -> float:
        """Return the share of cutoffs that are told as "at or after" a month."""
        found = [row for row in self.cutoffs if row["estimated_cutoff"]]
        ends = [row["estimated_cutoff_high"] is None for row in found]
        return float(np.mean(ends)) if found else np.nan

    @property
    def false_alarms(self) -> float:
        """Return the share of worlds in which an unseen month is suspected."""
        return float(np.mean([bool(suspects - {self.seen}) for suspects in self.suspects]))

    @property
    def found_seen(self) -> float:
        """Return the share of worlds in which the seen month is suspected."""
        return float(np.mean([self.seen in suspects for suspects in self.suspects]))


def measure(design: Design, num_worlds: int) -> Shares:
    """Land worlds; return what the views tell of them."""
    with tempfile.TemporaryDirectory(prefix="tidemark-worlds-") as home:
        settings = Settings(home=home)
        land(design, num_worlds, settings)
        first = f"where model = '{design.names[0]}'"
        intervals = {}
        for (view, column), true in truths(design).items():
            rows = query(settings, f"from {view} {first} and source is not null").to_pylist()
            if view == "effect_difference":
                pair = {"effect": "gap", "other_model": design.names[1]}
                rows = [row for row in rows if row | pair == row]
            intervals[view, column] = _tally(rows, column, true)
        cutoffs = query(settings, f"from estimated_cutoff {first}").to_pylist()
        rows = query(settings, "from suspected_contamination where is_suspected").to_pylist()
    suspects: list[set[tuple[str, Any]]] = [set() for _ in range(num_worlds)]
    for row in rows:
        suspects[int(row["protocol"].removeprefix("world-"))].add((row["model"], row["month"]))
    seen = "none" if design.seen is None else (FIRST + design.seen).first_day
    return Shares(intervals, cutoffs, suspects, (design.names[0], seen))


def _tally(rows: Iterable[Mapping[str, Any]], column: str, truth: float) -> Tally:
    tally = Tally()
    for row in rows:
        low, high = row[f"{column}_low"], row[f"{column}_high"]
        if low is not None:
            tally.covered.append(low <= truth <= high)
            tally.widths.append(high - low)
    return tally


_FIGURES = (
    ("train_test_gap", "bits_per_byte_gap"),
    ("control_adjusted_gap", "adjusted_gap"),
    ("ageing", "growth_per_month"),
    ("effect_difference", "difference"),
    ("tbi_likelihood", "tbi_per_month"),
)


def row_of(name: str, design: Design, shares: Shares) -> str:
    """Return one row of the Markdown table; coverages with Wilson's 95 % interval."""
    cells = [name]
    for figure in _FIGURES:
        tally = shares.intervals.get(figure)
        if tally is None or not tally.covered:
            cells.append("–")
            continue
        low, high = tally.wilson()
        cells.append(f"{100 * tally.coverage:.1f} ({100 * low:.0f}–{100 * high:.0f})")
    cutoff = FIRST + (design.end - 1)
    onset = FIRST + min(design.start + 1, design.end - 1)
    has_change = bool(design.gap or design.growth)
    dated = [shares.share("estimated_cutoff", cutoff), shares.share("cutoff_onset", onset)]
    dated = [*dated, shares.at_edge] if has_change else [np.nan] * 3
    for share in [shares.found, *dated, shares.false_alarms]:
        cells.append("–" if np.isnan(share) else f"{100 * share:.1f}")
    cells.append("–" if design.seen is None else f"{100 * shares.found_seen:.1f}")
    return f"| {' | '.join(cells)} |"


def main() -> int:
    """Print a Markdown table with a row for each design, in per cent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=300)
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=list(DESIGNS))
    arguments = parser.parse_args()
    print(f"{arguments.worlds} worlds a design; all figures in %; a dash: nothing to count.\n")
    print(
        "| world | train_test_gap | control_adjusted_gap | ageing | effect_difference "
        "| tbi_likelihood | cutoff found | cutoff in interval | onset in interval | at or after "
        "| false alarms | seen month |"
    )
    print("|---|" + "--:|" * 11)
    for name in arguments.designs:
        shares = measure(DESIGNS[name], arguments.worlds)
        print(row_of(name, DESIGNS[name], shares), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
