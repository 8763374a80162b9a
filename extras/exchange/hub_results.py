"""Export of models' figures as evaluation results of the Hugging Face hub.

A file of a model goes into ``.eval_results/`` of its repository, and ``eval.yaml`` into the data
set that is the benchmark. The format states no direction (huggingface/hub-docs#2221 was closed), so
each entry's note has it. The hub shows results only of data sets that its staff has listed.
https://huggingface.co/docs/hub/eval-results
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import yaml

from core.errors import UsageError
from core.settings import Settings
from core.version import own_version
from extras.exchange.lm_eval import safe_name
from extras.exchange.model_figures import (
    CONFIDENCE,
    DEFAULT_PROTOCOL,
    GAP,
    LEVEL,
    ModelResult,
    ModelResults,
    read_model_figures,
    require_data_set,
)
from reports.exports.files import exporting, write_manifest

_KIND = "eval-results"
_ABOUT = (
    "Loss of language models on dated text that was published after their training data. "
    "Bits per byte: a lower value is better."
)
_SPLIT = "train"  # the only one of a data set of `export hf`


def export_hub_results(settings: Settings, output: Path, data_set: str) -> int:
    """Write a file for each model of the hub with a figure, and return the number of models.

    The figures are the level and the gaps by source, under the default protocol and on real text.
    ``data_set`` is the id of the data set on the hub. Exports of the same snapshot are identical.
    An earlier export in the folder is replaced.

    Raises:
        UsageError: ``data_set`` is no id; there is no snapshot, or no model of the hub has such a
            figure; ``output`` exists and is no export.
        StorageError: writing failed; the earlier export is kept.
    """
    require_data_set(data_set)
    published = read_model_figures(settings)
    day = published.at.date().isoformat()
    chosen = [model for model in published.models if model.repository and _chosen(model)]
    if not chosen:
        raise UsageError(
            "no model of the hub has a figure on real text under the default protocol; "
            "`tidemark export model-index` writes those of other models"
        )
    with exporting(output, _KIND) as folder:
        files = {}
        num_models = Counter(model.repository for model in chosen)
        for model in chosen:
            own = safe_name(model.name)
            name = f"results-{own}.yaml"
            entries = _entries(_chosen(model), data_set, day, settings.report_url)
            (folder / name).write_text(entries, encoding="utf-8")
            place = "tidemark" if num_models[model.repository] == 1 else f"tidemark-{own}"
            files[name] = f"{model.repository}/.eval_results/{place}.yaml"
        every = (figure for model in chosen for figure in _chosen(model))
        (folder / "eval.yaml").write_text(_benchmark(every), encoding="utf-8")
        files["eval.yaml"] = f"datasets/{data_set}/eval.yaml"
        write_manifest(folder, _KIND, {"tidemark": own_version(), "places": files})
    return len(chosen)


def _chosen(model: ModelResults) -> tuple[ModelResult, ...]:
    return tuple(figure for figure in model.figures if _is_chosen(figure))


def _is_chosen(figure: ModelResult) -> bool:
    """Return True for levels, and for gaps under the default protocol, of real texts."""
    if figure.is_simulated:
        return False
    if figure.metric is GAP:
        return bool(figure.details["protocol"] == DEFAULT_PROTOCOL)
    return figure.metric is LEVEL


def _task(figure: ModelResult) -> str:
    source = safe_name(figure.source) if figure.source else ""
    return "_".join(filter(None, (figure.metric.column, source)))


def _entries(figures: Iterable[ModelResult], data_set: str, day: str, address: str | None) -> str:
    """Return figures in YAML, as the Hub reads evaluation results."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries = [
        EvalResultEntry(
            dataset_id=data_set,
            task_id=_task(figure),
            value=figure.value,
            date=day,
            source_url=address,
            source_name="tidemark" if address else None,
            notes=_note(figure),
        )
        for figure in figures
    ]
    return yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)


def _note(figure: ModelResult) -> str:
    """Return unit, interval and basis of a figure in words."""
    parts = [f"{figure.metric.name} ({figure.metric.unit}); lower is better"]
    if figure.interval:
        low, high = figure.interval
        parts.append(f"{CONFIDENCE:.0%} interval {low:.4f} to {high:.4f}")
    if "basis" in figure.details:
        parts.append(figure.details["basis"])
    return "; ".join(parts)


def _benchmark(figures: Iterable[ModelResult]) -> str:
    """Return the text of ``eval.yaml``: a task for each kind of figure and source."""
    tasks = {
        _task(figure): safe_name(figure.source) if figure.source else None for figure in figures
    }
    listed = [
        {"id": task, **({"config": config} if config else {}), "split": _SPLIT}
        for task, config in sorted(tasks.items())
    ]
    facts = {
        "name": "tidemark",
        "description": _ABOUT,
        "evaluation_framework": "tidemark",
        "tasks": listed,
    }
    return yaml.safe_dump(facts, sort_keys=False, allow_unicode=True)
