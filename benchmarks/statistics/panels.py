"""Simulated worlds of months: models with planted gaps, cutoffs and seen months.

Each world is a protocol of a warehouse, so that no world corrects the tests of another. The
expected bits per byte of model i in month m are

    1 + theta_i * (shock_m + drift * m + season_m) + break_m + gap_i * ramp_im + noise_im

Shocks have a standard deviation of 0.02, noise 0.008, gaps 0.03. The first model's gap follows the
design; the others have steps, with cutoffs spread over the months. Model control:zstd shares the
shocks, the drift and the break. A declared break (``regime``) differs from curve to curve, the
compressor's included; so does that of the first source alone (``recipe``), which is not declared.
Sources have shocks and noise of their own. Names of models, sources and
protocols have the number of the design in their warehouse.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import yaml
from numpy.typing import NDArray
from scipy import signal  # type: ignore[import-untyped]

from benchmarks.losses import losses_table
from benchmarks.statistics.tally import Known
from core.month import Month
from core.settings import Settings
from warehouse.database.statements import Statements
from warehouse.database.writer import connected
from warehouse.estimates.pairs import ramp
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

Floats = NDArray[np.float64]
SHOCK, NOISE, GAP, SEEN, BREAK = 0.02, 0.008, 0.03, 0.1, 0.1
STAGGERED_NOISE = 0.007
FIRST, CONTROL = Month("2021-01"), "control:zstd"
_MEAN_LOG_BYTES = 7.0
_PARTITION = {
    "partition_digest": "", "partition_version": 1, "num_documents": 0,
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
    second: int | None = None  # last month with text, before a second step of the same gap
    memory: float = 0  # autocorrelation of the noise
    shock_memory: float = 0
    tail: float | None = None  # degrees of freedom of the shocks
    is_shared: bool = True  # False: the compressor has no shocks and no drift
    drift: float = 0  # a month
    sensitivity: float = 0  # theta is 1 on average, and differs from it by this at most
    season: float = 0  # amplitude over 12 months
    site_break: float = 0  # in all curves, after the first model's cutoff
    regime: int | None = None  # first month of a regime, with a break of size BREAK (deviation)
    missing: float = 0
    hole: tuple[int, int] = (0, 0)
    scatter: float = 1  # of the noise after each model's cutoff, by a factor
    seen: int | None = None  # month that the first ``seen_by`` models have seen
    seen_by: int = 1
    num_sources: int = 1
    bend: float = 0  # growth a month of the first source alone, from the middle, for models alone
    recipe: int | None = None  # month from which the first source's sets are made in another way
    are_pages: bool = False  # the same documents in all months
    num_documents: int = 3
    document_sd: float = 0.005  # of their difficulty for all models; of each model's own, a tenth
    length_sd: float = 1  # of the logarithm of a document's bytes
    lacking: float = 0  # share of documents that a model lacks
    is_at_edge: bool = False  # cutoffs must be told as "at or after" a month
    untold: Sequence[str] = ()  # figures that must be NULL
    known: Mapping[str, Known] = field(default_factory=dict)  # by figure

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
        spread = self.sensitivity * np.linspace(-1, 1, shape[0] if shape[0] > 1 else 2)
        noise = rng.normal(size=(shape[0], self.num_months + 20)) * np.sqrt(1 - self.memory**2)
        noise = NOISE * signal.lfilter([1], [1, -self.memory], noise)[:, 20:]
        is_after, theta = months > self.cutoffs[:, None], 1 + rng.permutation(spread)[: shape[0]]
        theta[0] = 1 if self.drift else theta[0]  # the drift of the first model is the truth
        y = 1 + theta[:, None] * common + noise * np.where(is_after, self.scatter, 1)
        y[1:] += max(GAP, self.gap) * is_after[1:] + self.site_break * (months >= self.end)
        y[0] += self.expect() - 1 - self.drift * months - self.season * np.sin(months * np.pi / 6)
        if self.seen is not None:
            y[: self.seen_by, self.seen] -= SEEN
        control = 2 + common * self.is_shared + self.site_break * (months >= self.end)
        y = np.vstack([y, control + NOISE * rng.normal(size=self.num_months)])
        if self.regime is not None:
            y += BREAK * rng.normal(size=(len(y), 1)) * (months >= self.regime)
        y[:-1][rng.random(shape) < self.missing] = np.nan
        y[:, slice(*self.hole)] = np.nan
        return y

    def draw_sources(self, rng: np.random.Generator) -> Floats:
        """Return bits per byte (sources, models + 1, months) as ``draw`` does."""
        y = np.array([self.draw(rng) for _ in range(self.num_sources)])
        months = np.arange(self.num_months)
        if self.bend:
            spread = 1 + 0.2 * rng.uniform(-1, 1, (self.num_models, 1))
            y[0, :-1] += self.bend * spread * np.maximum(months - self.num_months // 2, 0)
        if self.recipe is not None:
            y[0] += BREAK * rng.normal(size=(y.shape[1], 1)) * (months >= self.recipe)
        return y

    @property
    def has_change(self) -> bool:
        """Return True if the first model's loss changes within the months."""
        return bool(self.gap or self.growth) and 0 < self.end < self.num_months

    @property
    def is_gradual(self) -> bool:
        """Return True if no single month after the last one with text has all of the change."""
        return self.end > self.start + 1 or self.second is not None or any(self.hole)


@functools.cache
def designs() -> dict[str, Design]:
    """Return all designs by name."""
    text = Path(__file__).with_name("designs.yml").read_text(encoding="utf-8")
    found = {}
    for name, fields in yaml.safe_load(text).items():
        known = {figure: Known(**facts) for figure, facts in fields.pop("known", {}).items()}
        found[name] = Design(**fields, known=known)
    return found


def land(names: Sequence[str], num_worlds: int, seed: int, settings: Settings) -> None:
    """Land worlds, and publish them; a world depends on its number, its design and the seed."""
    models: list[dict[str, object]] = []
    with open_warehouse(settings) as warehouse:
        for key, name in enumerate(names):
            design = designs()[name]
            for first in range(0, num_worlds, 50):
                numbers = range(first, min(first + 50, num_worlds))
                chances = [(seed, zlib.crc32(name.encode()), number) for number in numbers]
                tables = [losses_of(design, key, chance) for chance in chances]
                warehouse.land_losses(pa.concat_tables(tables), "worlds")
            for number, cutoff in enumerate(design.cutoffs):
                month = FIRST + int(cutoff)
                dates = {"cutoff": month.first_day, "released": (month + 1).first_day}
                facts = {"cutoff_provenance": "planted", **dates}
                models.append({"name": f"model-{key}-{number}", **facts})
        warehouse.upsert_models(models)
    with connected(settings) as connection:
        statements = Statements(connection)
        rows = [_PARTITION | row for row in _partitions(names)]
        columns = statements.columns("landed_partitions")
        with statements.given(partitions=pa.Table.from_pylist(rows, schema=columns)):
            statements.insert("landed_partitions", "partitions")
    publish(settings)


def _partitions(names: Sequence[str]) -> Iterator[dict[str, object]]:
    """Yield the months of sources with a regime."""
    for key, name in enumerate(names):
        design = designs()[name]
        if design.regime is not None:
            for number in range(design.num_months):
                month, regime = (FIRST + number).first_day, f"{number >= design.regime}"
                yield {"source": f"news-{key}-0", "month": month, "regime": regime}


def losses_of(design: Design, key: int, chance: tuple[int, int, int]) -> pa.Table:
    """Return one world's losses (schema LOSSES), a chunk for each document."""
    rng, protocol = np.random.default_rng(chance), f"{key}-{chance[-1]}"
    y = design.draw_sources(rng)
    shape = (*y.shape, design.num_documents)
    one_for_all = (shape[0], 1 if design.are_pages else shape[2], shape[3])
    sizes = np.ceil(np.exp(rng.normal(_MEAN_LOG_BYTES, design.length_sd, one_for_all)))[:, None]
    bits = y[..., None] + design.document_sd * rng.normal(size=one_for_all)[:, None]
    bits += design.document_sd / 10 * rng.normal(size=shape)
    is_there = ~np.isnan(bits) & (rng.random(shape) >= design.lacking)
    source, model, month, document = np.nonzero(is_there)
    version = 0 if design.are_pages else month
    texts = np.ravel_multi_index((source, version + 0 * month, document), (*y.shape[::2], shape[3]))
    num_bytes = np.broadcast_to(sizes, shape)[is_there].astype(np.int64)
    months = pa.array([(FIRST + number).first_day for number in range(design.num_months)])
    models = [*(f"model-{key}-{number}" for number in range(design.num_models)), CONTROL]
    sources = [f"news-{key}-{number}" for number in range(design.num_sources)]
    ids = pa.array([f"{protocol}-{text}" for text in range(np.max(texts) + 1)])
    return losses_table(
        model=pa.array(models).take(pa.array(model)),
        source=pa.array(sources).take(pa.array(source)),
        month=months.take(pa.array(month)),
        protocol=protocol,
        document_id=ids.take(pa.array(texts)),
        nll_nats=bits[is_there] * num_bytes * np.log(2),
        **dict.fromkeys(("num_tokens", "num_chars", "num_bytes"), num_bytes),
    )


@dataclass(frozen=True)
class Staggered:
    """A panel in which all models' text thins out, over ``length`` months before each cutoff."""

    num_models: int = 8
    num_months: int = 36
    apart: int = 3  # months between cutoffs
    length: int = 8  # 0: a sudden end
    gap: float = 0.08
    is_stated: bool = True  # the catalogue has the cutoffs
    source: str = ""  # drift, break or bend of the source, in all curves
    is_shared: bool = True  # False: compressors have no part in the months' difficulty
    is_felt: bool = True  # False: models alone feel drift, break or bend, each by its own size
    thermometers: int = 0  # further models, whose cutoff is before the months
    memory: float = 0  # autocorrelation of the models' noise
    lasting: float = 1  # share of the noise's variance that has it; the rest is white
    wrong: int = 0  # months by which stated cutoffs are later than the true ones
    num_wrong: int | None = None  # the first models alone; None: all

    @property
    def cutoffs(self) -> NDArray[np.int64]:
        """Return the models' last months with text, around the middle of the months that fit."""
        first, last = self.length + 4, self.num_months - 4
        places = np.arange(self.num_models) - (self.num_models - 1) / 2
        middle = (last - first) / 2 + self.apart * places
        return first + np.round(middle).astype(int) % (last - first + 1)

    def draw(self, *chance: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return bits per byte, stated cutoffs, the mean of two compressors, and the cutoffs."""
        rng = np.random.default_rng(chance)
        months = np.arange(self.num_months)
        common = SHOCK * rng.normal(size=self.num_months)
        half = self.num_months // 2
        courses = {
            "": 0.0 * months,
            "drift": 0.003 * months,
            "break": np.where(months >= half, BREAK, 0.0),
            "bend": 0.004 * np.maximum(months - half, 0),
        }
        course = courses[self.source]
        if self.is_felt:
            common = common + course
        theta = 1 + 0.2 * rng.uniform(-1, 1, self.num_models)
        shape = (self.num_models, self.num_months)
        noise = rng.normal(size=shape)
        noise[:, 1:] *= np.sqrt(1 - self.memory**2)
        noise = signal.lfilter([1], [1, -self.memory], noise)
        if self.lasting < 1:
            white = np.random.default_rng((*chance, 1)).normal(size=shape)
            noise = np.sqrt(self.lasting) * noise + np.sqrt(1 - self.lasting) * white
        y = 1 + theta[:, None] * common + STAGGERED_NOISE * noise
        if not self.is_felt:
            sizes = np.random.default_rng((*chance, 2)).uniform(0.8, 1.2, self.num_models)
            y += sizes[:, None] * course
        starts = self.cutoffs - self.length
        for row, start, cutoff in zip(y, starts, self.cutoffs, strict=True):
            row += self.gap * ramp(months, start, cutoff + 1)
        compressors = 2 + common * self.is_shared
        compressors = compressors + STAGGERED_NOISE * rng.normal(size=(2, self.num_months))
        old = 1 + common + STAGGERED_NOISE * rng.normal(size=(self.thermometers, self.num_months))
        truth = self.cutoffs.astype(float)
        stated = truth.copy() if self.is_stated else np.full(self.num_models, np.nan)
        stated[: self.num_wrong] += self.wrong
        before = np.full(self.thermometers, -5.0)
        return np.vstack([y, old]), np.append(stated, before), compressors.mean(axis=0), truth
