"""Benchmark of the estimates of one publication: 100 models x 84 months x 8 sources."""

from __future__ import annotations

import contextlib
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.losses import losses_table
from benchmarks.measure import Contender, Report, measure
from core.month import Month
from core.settings import Settings
from warehouse.database.writer import connect_file, transaction
from warehouse.estimates.estimate import estimate
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

NUM_MODELS, NUM_MONTHS, NUM_SOURCES = 100, 84, 8
_FIRST, _NUM_BYTES = Month("2018-01"), 1_000_000


def measure_estimates(rounds: int) -> Report:
    """Time all estimates of a snapshot, with a tenth of the cells missing in every other source."""
    with TemporaryDirectory(prefix="tidemark-bench-") as home:
        given = Settings(home=home)
        snapshot = _published(given)
        with contextlib.closing(connect_file(snapshot, given)) as connection:
            each = Contender("estimates of a snapshot", lambda _: estimate_in(connection), {})
            timings = measure([each], rounds)
    conditions = (
        f"{NUM_MODELS} models x {NUM_MONTHS} months x {NUM_SOURCES} sources and their mean: "
        "panels, cutoffs and low months, read from a snapshot and written to it. At most 20 s on "
        "2 cores."
    )
    return Report("warehouse: estimates", conditions, timings)


def estimate_in(connection: duckdb.DuckDBPyConnection) -> None:
    """Replace the estimates of a snapshot."""
    with transaction(connection, "estimate from the snapshot"):
        estimate(connection)


def _published(settings: Settings) -> Path:
    """Land one document a cell, and publish; return the snapshot's path."""
    names = [f"model-{number:03}" for number in range(NUM_MODELS)]
    rng, months = np.random.default_rng(0), np.arange(NUM_MONTHS)
    cutoffs = rng.integers(-6, NUM_MONTHS - 6, NUM_MODELS)
    with open_warehouse(settings) as warehouse:
        for number in range(NUM_SOURCES):
            shocks = rng.normal(0, 0.02, NUM_MONTHS) + 0.002 * months
            gaps = 0.03 * (months > cutoffs[:, None])
            bits = 1 + rng.uniform(0.7, 1.3, (NUM_MODELS, 1)) * shocks + gaps
            bits += rng.normal(0, 0.008, bits.shape)
            bits[rng.random(bits.shape) < 0.1 * (number % 2)] = np.nan
            control = 2 + shocks + rng.normal(0, 0.008, NUM_MONTHS)
            curves = np.vstack([bits, control])
            losses = _losses(curves, [*names, "control:zstd"], f"source-{number}")
            warehouse.land_losses(losses, "generated")
        warehouse.upsert_models(
            [
                {"name": name, "cutoff": _FIRST + int(cutoff), "cutoff_provenance": "stated"}
                for name, cutoff in zip(names, cutoffs, strict=True)
            ]
        )
    return Path(publish(settings))


def _losses(curves: NDArray[np.float64], names: list[str], source: str) -> pa.Table:
    """Return a chunk for each figure of ``curves`` (models, months) that is not NaN."""
    model, month = np.nonzero(~np.isnan(curves))
    days = pa.array([(_FIRST + number).first_day for number in range(NUM_MONTHS)])
    return losses_table(
        model=pa.array(names).take(pa.array(model)),
        source=source,
        month=days.take(pa.array(month)),
        document_id=[f"{source}-{number}" for number in month],
        nll_nats=curves[model, month] * _NUM_BYTES * np.log(2),
        **dict.fromkeys(("num_tokens", "num_chars", "num_bytes"), _NUM_BYTES),
    )
