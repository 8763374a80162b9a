"""Benchmark of reading every view, against the same figures computed by polars."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb
import polars as pl

from benchmarks.measure import Contender, Report, measure
from benchmarks.warehouse.generated_losses import model_names
from core.settings import Settings
from warehouse.database.schema import describe_view, list_views, qualify
from warehouse.database.writer import connected, locked
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

_DOCUMENTS = """
insert into documents by name
select
    document_id, source, month, 'kind-' || min(num_bytes) % 20 as category, 'en' as language,
    'CC0-1.0' as licence, sum(num_chars) as num_chars, sum(num_bytes) as num_bytes
from read_parquet(?)
where model = 'control:zstd'
group by all
"""
_PARTITIONS = """
insert into internal.landed_partitions by name
select
    source, month, 'digest' as partition_digest, 1 as partition_version,
    count(*) as num_documents, sum(num_bytes) as num_bytes
from documents
group by all
"""
_CELL = ["model", "source", "protocol", "month"]


def measure_views(files: Mapping[int, Path], rounds: int) -> Report:
    """Time each view on every file, and polars on the largest; keys are numbers of rows."""
    largest = max(files)
    contenders = []
    with TemporaryDirectory(prefix="tidemark-bench-") as folder:
        for num_rows, file in sorted(files.items(), reverse=True):
            snapshot = _landed(Path(folder) / str(num_rows), file)
            suffix = "" if num_rows == largest else f" at {num_rows:,} rows"
            contenders += [
                Contender(
                    f"{view}{suffix}",
                    _reader(snapshot, view),
                    {},
                    view if suffix else _BASELINES.get(view),
                )
                for view in _names()
            ]
        contenders += [
            Contender(_BASELINES[view], _polars_reader(files[largest], figure), {})
            for view, figure in _PEERS.items()
        ]
        timings = measure(contenders, rounds)
    conditions = (
        f"Every view that analysts read, in full into Arrow tables, of {largest:,} rows, each run "
        "on a connection of its own; the views of the smaller database are compared with those of "
        "the larger. Peers: the same figures by polars "
        f"{pl.__version__} (streaming) from the Parquet file, without intervals."
    )
    return Report("warehouse: views", conditions, timings)


def _names() -> list[str]:
    """Return the views for analysts, without internal views and table macros."""
    return [
        view
        for view, file in list_views().items()
        if not view.endswith("_at") and not describe_view(file).is_internal
    ]


def _landed(home: Path, file: Path) -> Path:
    """Land a file, documents of 20 kinds and cutoffs; publish, and return the snapshot's path."""
    settings = Settings(home=str(home))
    with locked(settings), connected(settings) as connection:
        connection.execute(_DOCUMENTS, [str(file)])
        connection.execute(_PARTITIONS)
    with open_warehouse(settings) as warehouse:
        warehouse.land_file(file)
        warehouse.upsert_models(
            [
                {
                    "name": name,
                    "kind": "control" if name.startswith("control:") else "causal_lm",
                    "cutoff": None if name.startswith("control:") else dt.date(2020 + n % 3, 6, 1),
                    "cutoff_provenance": "stated",
                    "released": dt.date(2020 + n % 3, 10, 1),
                    "parameters": 10**9 * (n + 1),
                }
                for n, name in enumerate(model_names())
            ]
        )
    return Path(publish(settings))


def _reader(snapshot: Path, view: str) -> Callable[[Path], object]:
    def read(_: Path) -> object:
        with duckdb.connect(str(snapshot), read_only=True) as connection:
            return connection.table(qualify(view)).to_arrow_table()

    return read


def _polars_reader(
    file: Path, figure: Callable[[pl.LazyFrame], pl.LazyFrame]
) -> Callable[[Path], object]:
    return lambda _: figure(pl.scan_parquet(file)).collect(engine="streaming")


def _monthly_loss(losses: pl.LazyFrame) -> pl.LazyFrame:
    """Return the same figures as view ``monthly_loss``, computed by polars."""
    sums = [pl.col(name).sum() for name in ("nll_nats", "num_tokens", "num_chars", "num_bytes")]
    return (
        losses.group_by(_CELL)
        .agg(pl.col("document_id").n_unique().alias("num_documents"), pl.len(), *sums)
        .with_columns(
            (pl.col("nll_nats") / (pl.lit(2.0).log() * pl.col("num_bytes"))).alias("bits_per_byte")
        )
    )


def _tbi_likelihood(losses: pl.LazyFrame) -> pl.LazyFrame:
    x = pl.col("month").dt.year() * 12 + pl.col("month").dt.month()
    slope = pl.cov(x, pl.col("bits_per_byte")) / x.var()
    return _monthly_loss(losses).group_by(_CELL[:3]).agg(slope.alias("tbi_per_month"))


def _train_test_gap(losses: pl.LazyFrame) -> pl.LazyFrame:
    is_after = pl.col("month") >= dt.date(2021, 1, 1)
    bits = pl.col("bits_per_byte")
    gap = bits.filter(is_after).mean() - bits.filter(~is_after).mean()
    return _monthly_loss(losses).group_by(_CELL[:3]).agg(gap.alias("gap"))


_PEERS = {
    "monthly_loss": _monthly_loss,
    "tbi_likelihood": _tbi_likelihood,
    "train_test_gap": _train_test_gap,
}
_BASELINES = {view: f"polars: {view}" for view in _PEERS}
