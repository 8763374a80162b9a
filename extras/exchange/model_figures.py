"""The figures of models that exports for other people's registries state, with their intervals.

A model has a level on text after all cutoffs, a gap by source, and an accuracy on questions after
its cutoff. Figures that others have published are left out.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import duckdb

from core.errors import UsageError
from core.settings import Settings
from warehouse.database.statements import Row
from warehouse.read.query import local_snapshot, opened, run_statement

CONFIDENCE = 0.95
DEFAULT_PROTOCOL = "default"
_DETAILS = ("protocol", "basis", "split_date", "num_months", "num_questions", "reason")
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_MODELS = "select model, kind, family, revision, cutoff, cutoff_provenance, location from models"


@dataclass(frozen=True)
class Metric:
    """A column of a view as a metric; it has an interval in columns ``…_low`` and ``…_high``."""

    view: str
    column: str
    name: str
    unit: str
    about: str
    is_lower_better: bool = True
    is_signed: bool = False  # it may be below 0
    most: float | None = None  # None: there is no upper limit


LEVEL = Metric(
    "headline", "bits_per_byte", "bits per byte of new text", "bits per byte",
    "Loss on months after the latest cutoff of the models compared; mean over sources.",
)  # fmt: skip
GAP = Metric(
    "train_test_gap", "bits_per_byte_gap", "gap after the cutoff", "bits per byte",
    "Bits per byte after the model's cutoff less those before it.", is_signed=True,
)  # fmt: skip
ACCURACY = Metric(
    "forecast_accuracy", "accuracy", "accuracy on later questions", "proportion",
    "Share of right answers to questions that were opened after the model's cutoff.",
    is_lower_better=False, most=1,
)  # fmt: skip


@dataclass(frozen=True)
class ModelResult:
    """A value of a metric; ``source`` is None for a figure over all sources."""

    metric: Metric
    source: str | None
    value: float
    interval: tuple[float, float] | None  # at CONFIDENCE over time; None: it cannot be told
    details: Mapping[str, str]  # protocol, basis and others that the view states
    is_simulated: bool  # a program has made up the text, or some of it


@dataclass(frozen=True)
class ModelResults:
    """A model with its figures; ``facts`` are those of the catalogue."""

    name: str
    facts: Row
    figures: tuple[ModelResult, ...]

    @property
    def repository(self) -> str | None:
        """Id of the hub's repository with the weights; None if they are not of the hub."""
        location = str(self.facts.get("location"))
        is_id = _REPOSITORY.fullmatch(location) is not None and not Path(location).is_dir()
        return location if is_id and self.facts.get("kind") == "causal_lm" else None


@dataclass(frozen=True)
class AllResults:
    """The models of a snapshot that have a figure, by name."""

    at: dt.datetime  # when the snapshot was published, to the second (UTC)
    models: tuple[ModelResults, ...]


def require_data_set(name: str) -> None:
    """Raise UsageError unless a name can be the id of a data set on the hub."""
    if not _REPOSITORY.fullmatch(name):
        raise UsageError(f"{name!r} is no data set of the hub; expected OWNER/NAME")


def read_model_figures(settings: Settings) -> AllResults:
    """Return the figures of the published snapshot.

    Raises:
        UsageError: there is no snapshot, or no model has a figure.
    """
    with local_snapshot(settings) as path, opened(path, threads=1) as connection:
        published_at = dt.datetime.fromtimestamp(int(path.stat().st_mtime), dt.UTC)
        facts = {row["model"]: row for row in _rows(connection, _MODELS)}
        simulated = {row["source"] for row in _rows(connection, "from simulated_sources")}
        found: dict[str, list[ModelResult]] = {}
        for metric in (LEVEL, GAP, ACCURACY):
            for row in _rows(connection, _query(metric)):
                found.setdefault(row["model"], []).append(_figure(metric, row, simulated))
    if not found:
        raise UsageError("no model has a figure; `tidemark sql 'from unmeasured'` says why")
    models = (
        ModelResults(name, facts.get(name, {"model": name}), tuple(figures))
        for name, figures in sorted(found.items())
    )
    return AllResults(published_at, tuple(models))


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[Row]:
    rows: list[Row] = run_statement(connection, sql).read_all().to_pylist()
    return rows


def _query(metric: Metric) -> str:
    """Return a query for the rows of a metric of own runs; NULL figures are left out."""
    own = "" if metric.view == "headline" else "and protocol <> 'published' and source is not null"
    return f"from {metric.view} where {metric.column} is not null {own} order by all"


def _figure(metric: Metric, row: Row, simulated: set[str]) -> ModelResult:
    """Return a figure of a view's row, with its interval if both ends are known."""
    source = row.get("source")
    low = row[f"{metric.column}_low"]
    high = row[f"{metric.column}_high"]
    return ModelResult(
        metric,
        source,
        row[metric.column],
        None if low is None or high is None else (low, high),
        {name: str(row[name]) for name in _DETAILS if row.get(name) is not None},
        bool(simulated) if source is None else source in simulated,
    )
