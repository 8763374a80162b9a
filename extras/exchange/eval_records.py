"""Export of models' figures as records of Every Eval Ever (schema 0.3.0, a JSON file a model).

Each figure has a 95 % interval or the reason for its absence.
https://github.com/evaleval/every_eval_ever
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from pathlib import Path

from core.settings import Settings
from core.version import DISTRIBUTION, own_version
from extras.exchange.lm_eval import safe_name
from extras.exchange.model_figures import (
    CONFIDENCE,
    Metric,
    ModelResult,
    ModelResults,
    read_model_figures,
)
from reports.exports.files import exporting, write_manifest

_KIND = "eee"
SCHEMA_VERSION = "0.3.0"
_LOCAL = "local"  # the developer of a model whose name has none; the owner refuses "unknown"
# Folders of the owner's data store, which writes ``_`` for a colon.
_PART = re.compile(r"[A-Za-z0-9](?:[\w.:+-]{0,98}[\w+-])?", re.ASCII)
_RESERVED = re.compile(r"(?i)(?:con|prn|aux|nul|com[1-9]|lpt[1-9])(?:\..*)?|data|unknown")


def export_eval_records(settings: Settings, output: Path) -> int:
    """Write a record for each model with a figure, and return the number of models.

    Exports of the same snapshot are identical. An earlier export in the folder is replaced.

    Raises:
        UsageError: there is no snapshot, or no model has a figure; ``output`` exists and is no
            export.
        StorageError: writing failed; the earlier export is kept.
    """
    published = read_model_figures(settings)
    at = str(int(published.at.timestamp()))
    with exporting(output, _KIND) as folder:
        places = {}
        for model in published.models:
            record = _record(model, at, settings.report_author)
            text = json.dumps(record, indent=2, ensure_ascii=False)
            name = f"record-{safe_name(model.name)}.json"
            (folder / name).write_text(f"{text}\n", encoding="utf-8")
            places[name] = _place(model, str(record["evaluation_id"]))
        facts = {"tidemark": own_version(), "schema": SCHEMA_VERSION, "places": places}
        write_manifest(folder, _KIND, facts)
    return len(published.models)


def _place(model: ModelResults, evaluation_id: str) -> str:
    """Return the path of a record in the owner's data store, which wants a UUID of version 4.

    The folders follow from developer and id alone, as ``datastore_path_components`` of the owner's
    package derives them.
    """
    digest = hashlib.sha256(evaluation_id.encode()).digest()
    own = uuid.UUID(bytes=digest[:16], version=4)
    own_id = _id_of(model)
    name = own_id.removeprefix(f"{_developer_of(own_id)}/").replace("/", "_").replace(":", "_")
    return f"data/tidemark/{_developer_of(own_id).replace(':', '_')}/{name}/{own}.json"


def _id_of(model: ModelResults) -> str:
    """Return a model's id: repository or name, or a name like it that the data store takes."""
    own_id = model.repository or model.name
    if all(_is_folder(part) for part in own_id.split("/")):
        return own_id
    return f"{_LOCAL}/model_{safe_name(model.name).strip('_')}"


def _is_folder(part: str) -> bool:
    return _PART.fullmatch(part) is not None and _RESERVED.fullmatch(part) is None


def _developer_of(own_id: str) -> str:
    developer, slash, _ = own_id.partition("/")
    return developer if slash else _LOCAL


def _bounds(metric: Metric) -> dict[str, object]:
    """Return the lowest and highest possible score, as the schema writes them."""
    lowest = "-Infinity" if metric.is_signed else 0
    return {"min_score": lowest, "max_score": "Infinity" if metric.most is None else metric.most}


def _result(figure: ModelResult) -> dict[str, object]:
    """Return one figure in the schema of Every Eval Ever."""
    metric = figure.metric
    source = figure.source or "all sources"
    score: dict[str, object] = {"score": figure.value, "details": dict(figure.details)}
    if figure.interval:
        low, high = figure.interval
        interval = {"lower": low, "upper": high, "confidence_level": CONFIDENCE}
        score["uncertainty"] = {"confidence_interval": interval}
    return {
        "evaluation_name": f"tidemark {metric.view}: {source}",
        "source_data": {
            "dataset_name": source,
            "source_type": "other",
            "additional_details": {"simulated": str(figure.is_simulated).lower()},
        },
        "metric_config": {
            "metric_id": metric.column,
            "metric_name": metric.name,
            "metric_unit": metric.unit,
            "evaluation_description": metric.about,
            "lower_is_better": metric.is_lower_better,
            "score_type": "continuous",
            **_bounds(metric),
        },
        "score_details": score,
    }


def _record(model: ModelResults, published_at: str, author: str | None) -> dict[str, object]:
    """Return a model's figures in the schema of Every Eval Ever."""
    kind = model.facts.get("kind")
    own_id = _id_of(model)
    facts = {
        key: str(model.facts[key])
        for key in ("kind", "family", "revision", "cutoff", "cutoff_provenance")
        if model.facts.get(key) is not None
    }
    details = {
        "deployment_type": "unknown" if kind in ("api", "remote") else "self_deployed",
        "model_availability": "open_weights" if model.repository else "unknown",
    }
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"tidemark/{model.name}/{published_at}",
        "retrieved_timestamp": published_at,
        "source_metadata": {
            "source_name": "tidemark",
            "source_type": "evaluation_run",
            "source_organization_name": author or "not stated",
            "evaluator_relationship": "other",
        },
        "eval_library": {"name": DISTRIBUTION, "version": own_version()},
        "model_info": {
            "name": model.name,
            "id": own_id,
            "developer": _developer_of(own_id),
            "additional_details": {**facts, **details},
        },
        "evaluation_results": [_result(figure) for figure in model.figures],
    }
