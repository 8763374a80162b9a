"""Export of models' figures as records of Every Eval Ever (schema 0.3.0, a JSON file a model).

A record has the model's level on text after all cutoffs, its gap by source, and its accuracy on
questions after its cutoff. Each has a 95 % interval or the reason for its absence. Figures that
others have published are left out. https://github.com/evaleval/every_eval_ever
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from core.errors import UsageError
from core.settings import Settings
from core.version import DISTRIBUTION, own_version
from reports.exports.files import exporting, write_manifest
from reports.exports.lm_eval import safe_name
from warehouse.read.query import local_snapshot, opened, run_statement

_KIND = "eee"
SCHEMA_VERSION = "0.3.0"
CONFIDENCE = 0.95
Row = Mapping[str, Any]


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

    @property
    def bounds(self) -> dict[str, object]:
        """The lowest and highest possible score, as the schema writes them."""
        lowest = "-Infinity" if self.is_signed else 0
        return {"min_score": lowest, "max_score": "Infinity" if self.most is None else self.most}


METRICS = (
    Metric(
        "headline", "bits_per_byte", "bits per byte of new text", "bits per byte",
        "Loss on months after the latest cutoff of the models compared; mean over sources.",
    ),
    Metric(
        "train_test_gap", "bits_per_byte_gap", "gap after the cutoff", "bits per byte",
        "Bits per byte after the model's cutoff less those before it.", is_signed=True,
    ),
    Metric(
        "forecast_accuracy", "accuracy", "accuracy on later questions", "proportion",
        "Share of right answers to questions that were opened after the model's cutoff.",
        is_lower_better=False, most=1,
    ),
)  # fmt: skip


def export_eval_records(settings: Settings, output: Path) -> int:
    """Write a record for each model with a figure, and return the number of models.

    Exports of the same snapshot are identical. An earlier export in the folder is replaced.

    Raises:
        UsageError: there is no snapshot, or no model has a figure; ``output`` exists and is no
            export.
        StorageError: writing failed; the earlier export is kept.
    """
    with local_snapshot(settings) as path, opened(path, threads=1) as connection:
        published_at = str(int(path.stat().st_mtime))
        models = {row["model"]: row for row in _rows(connection, _MODELS)}
        simulated = {row["source"] for row in _rows(connection, "from simulated_sources")}
        results: dict[str, list[dict[str, object]]] = {}
        for metric in METRICS:
            for row in _rows(connection, _figures(metric)):
                source = row.get("source")
                is_simulated = bool(simulated) if source is None else source in simulated
                results.setdefault(row["model"], []).append(_result(metric, row, is_simulated))
    if not results:
        raise UsageError("no model has a figure; `tidemark sql 'from unmeasured'` says why")
    with exporting(output, _KIND) as folder:
        for model, found in sorted(results.items()):
            facts = models.get(model, {"model": model})
            record = _record(facts, found, published_at, settings.report_author)
            text = json.dumps(record, indent=2, ensure_ascii=False)
            (folder / f"{safe_name(model)}.json").write_text(f"{text}\n", encoding="utf-8")
        write_manifest(folder, _KIND, {"tidemark": own_version(), "schema": SCHEMA_VERSION})
    return len(results)


_DETAILS = ("protocol", "basis", "split_date", "num_months", "num_questions", "reason")
_MODELS = "select model, kind, family, revision, cutoff, cutoff_provenance, location from models"


def _rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = run_statement(connection, sql).read_all().to_pylist()
    return rows


def _figures(metric: Metric) -> str:
    """Return a query for the rows of a metric of own runs; NULL figures are left out."""
    own = "" if metric.view == "headline" else "and protocol <> 'published'"
    return f"from {metric.view} where {metric.column} is not null {own} order by all"


def _result(metric: Metric, row: Row, is_simulated: bool) -> dict[str, object]:
    source = row.get("source") or "all sources"
    details = {name: str(row[name]) for name in _DETAILS if row.get(name) is not None}
    score: dict[str, object] = {"score": row[metric.column], "details": details}
    low = row[f"{metric.column}_low"]
    high = row[f"{metric.column}_high"]
    if low is not None and high is not None:
        interval = {"lower": low, "upper": high, "confidence_level": CONFIDENCE}
        score["uncertainty"] = {"confidence_interval": interval}
    return {
        "evaluation_name": f"tidemark {metric.view}: {source}",
        "source_data": {
            "dataset_name": source,
            "source_type": "other",
            "additional_details": {"simulated": str(is_simulated).lower()},
        },
        "metric_config": {
            "metric_id": metric.column,
            "metric_name": metric.name,
            "metric_unit": metric.unit,
            "evaluation_description": metric.about,
            "lower_is_better": metric.is_lower_better,
            "score_type": "continuous",
            **metric.bounds,
        },
        "score_details": score,
    }


def _record(
    model: Row, results: Sequence[dict[str, object]], published_at: str, author: str | None
) -> dict[str, object]:
    name = model["model"]
    is_on_hub = model.get("kind") == "causal_lm" and model.get("location") == name
    facts = {
        key: str(model[key])
        for key in ("kind", "family", "revision", "cutoff", "cutoff_provenance")
        if model.get(key) is not None
    }
    details = {
        "deployment_type": "unknown" if model.get("kind") in ("api", "remote") else "self_deployed",
        "model_availability": "open_weights" if is_on_hub else "unknown",
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"tidemark/{name}/{published_at}",
        "retrieved_timestamp": published_at,
        "source_metadata": {
            "source_name": "tidemark",
            "source_type": "evaluation_run",
            "source_organization_name": author or "not stated",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": DISTRIBUTION, "version": own_version()},
        "model_info": {"name": name, "id": name, "additional_details": {**facts, **details}},
        "evaluation_results": results,
    }
