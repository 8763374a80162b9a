"""Export of models' figures as ``model-index`` of Hugging Face's model cards, a YAML file a model.

The front matter of a card (``README.md`` of a model's repository) takes the file as it is. Nothing
is sent anywhere. https://huggingface.co/docs/hub/model-cards#evaluation-results
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from core.settings import Settings
from core.version import own_version
from extras.exchange.lm_eval import safe_name
from extras.exchange.model_figures import (
    CONFIDENCE,
    ModelResult,
    ModelResults,
    read_model_figures,
    require_data_set,
)
from reports.exports.files import exporting, write_manifest

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

_KIND = "model-index"
_TASK = "text-generation"


def export_model_index(settings: Settings, output: Path, data_set: str | None = None) -> int:
    """Write a file for each model with a figure, and return the number of models.

    ``data_set`` is the id of a data set of the hub whose configurations are the sources, as
    ``export hf`` makes them. Exports of the same snapshot are identical. An earlier export in the
    folder is replaced.

    Raises:
        UsageError: ``data_set`` is no id; there is no snapshot, or no model has a figure;
            ``output`` exists and is no export.
        StorageError: writing failed; the earlier export is kept.
    """
    if data_set is not None:
        require_data_set(data_set)
    published = read_model_figures(settings)
    with exporting(output, _KIND) as folder:
        files = {}
        for model in published.models:
            name = f"{safe_name(model.name)}.yaml"
            index = _index(model, data_set, settings.report_url)
            text = yaml.safe_dump({"model-index": index}, sort_keys=False, allow_unicode=True)
            (folder / name).write_text(text, encoding="utf-8")
            files[name] = model.name
        write_manifest(folder, _KIND, {"tidemark": own_version(), "models": files})
    return len(published.models)


def _index(model: ModelResults, data_set: str | None, address: str | None) -> object:
    from huggingface_hub.repocard_data import eval_results_to_model_index

    results = [_result(figure, data_set, address) for figure in model.figures]
    return eval_results_to_model_index(model.name, results)


def _result(figure: ModelResult, data_set: str | None, address: str | None) -> EvalResult:
    """Return a figure as an entry of a model card's ``model-index``."""
    from huggingface_hub import EvalResult

    source = safe_name(figure.source) if figure.source else None
    interval: dict[str, object] = {}
    if figure.interval:
        low, high = figure.interval
        interval = {"low": low, "high": high, "confidence_level": CONFIDENCE}
    direction = {"unit": figure.metric.unit, "lower_is_better": figure.metric.is_lower_better}
    title = f"tidemark: {figure.source or 'all sources'}"
    return EvalResult(
        task_type=_TASK,
        dataset_type=data_set or "-".join(filter(None, ("tidemark", source))),
        dataset_config=source if data_set else None,
        dataset_name=f"{title} (simulated text)" if figure.is_simulated else title,
        metric_type=figure.metric.column,
        metric_name=figure.metric.name,
        metric_value=figure.value,
        metric_args={**direction, **interval, **figure.details},
        source_name="tidemark" if address else None,
        source_url=address,
    )
