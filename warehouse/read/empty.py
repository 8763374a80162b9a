"""Reasons why a statement of an analyst gives no row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from core.errors import UsageError, did_you_mean
from core.progress import counted
from warehouse.database.schema import list_views
from warehouse.read.query import run_statement

_CALL = re.compile(r"\b(?:from|join)\s+((?:\w+\.)?(\w+)(?:\([^()]*\))?)", re.IGNORECASE)
_MODEL = re.compile(r"\bmodel\s*(?:=|in)\s*\(?\s*'((?:[^']|'')*)'", re.IGNORECASE)
_SPLIT = "`from train_test_gap_at(date '2024-01-01')` splits at a day"
# The beginning of a reason in ``unmeasured``, and what to do.
_REMEDIES = {
    "cutoff unknown": f"state it: `tidemark models edit NAME --cutoff YYYY-MM`; or {_SPLIT}",
    "release unknown": "state it: `tidemark models edit NAME --released YYYY-MM-DD`",
    "no month before the cutoff": f"crawl and score months up to it; or {_SPLIT}",
    "no month after the cutoff": f"crawl and score later months; or {_SPLIT}",
    "compressor": f"compressors have no cutoff; {_SPLIT}",
    "undated": "texts without a month are in papers.corpus_loss (extra `papers`)",
    "no month with a figure": "score a month: `tidemark score`",
}
_LIKELIHOOD = (
    "`tidemark scylla run -m MODEL --prompt mixed-8-likelihood` (extra `scylla`) asks a causal "
    "language model for likelihoods"
)
_PROBE = "`tidemark scylla run -m MODEL -p add_days` (extra `scylla`) asks a puzzle without a level"
_UNDATED = (
    "`tidemark import texts FILE --undated`, then `tidemark score`, gives figures of texts without "
    "a month"
)
_SCORES = (
    "`tidemark land benchmarks FILE` (extra `imported_results`) loads scores; at least three "
    "of the models that answer questions need them"
)
# A view or its folder, and the command that makes its first rows.
_COMMANDS = {
    "corpus_difference": _UNDATED,
    "corpus_loss": _UNDATED,
    "corpus_rank": _UNDATED,
    "forecast_benchmark_correlation": _SCORES,
    "scylla_human_difficulty": "`tidemark land ratings FILE` (extra `imported_results`) loads them",
    "scylla_normalised_accuracy": _LIKELIHOOD,
    "scylla_step_accuracy": _PROBE,
    "scylla_likelihood": _LIKELIHOOD,
    "scylla_divergence": _LIKELIHOOD,
    "scylla_probes": _PROBE,
    "benchmarks": "`tidemark land benchmarks FILE` (extra `imported_results`) loads scores",
    "forecast_bias": "`tidemark forecast answer` asks models forecasting questions",
    "forecasts": "`tidemark forecast answer` asks models forecasting questions",
    "scylla": "`tidemark scylla run` (extra `scylla`) has models solve puzzles",
    "tasks": "`tidemark tasks make` and `tidemark tasks answer` (extra `real_tasks`) make them",
    "text": "`tidemark corpus compare` (extra `text_comparisons`) compares the months' texts",
    "uncompared_models": "`headline` compares all models",
}
_KNOWN = "select model from main.models where model = $model"
_LEFT_OUT = """
    select
        reason,
        count(distinct model) as num_models,
        min(model) as model
    from main.unmeasured
    where left_out_of = $view and ($model is null or model = $model)
    group by reason
    order by bool_and(protocol = 'published'), num_models desc, reason
    limit 3
"""


def explain_empty(connection: duckdb.DuckDBPyConnection, sql: str) -> list[str]:
    """Return the reasons, as sentences, why each view of a statement gave no row.

    The list is empty for a statement that reads no view.
    """
    calls = {call: view for call, view in _CALL.findall(sql) if view in list_views()}
    models = [name.replace("''", "'") for name in _MODEL.findall(sql)]
    unknown = [name for name in models if not _rows(connection, _KNOWN, {"model": name})]
    if calls and unknown:
        known = [name for (name,) in _rows(connection, "select model from main.models")]
        return [
            f"no losses or answers of a model {name} are landed; {did_you_mean(name, known)}"
            "view models has the names"
            for name in unknown
        ]
    sentences: list[str] = []
    for call, name in calls.items():
        sentences += _explain(connection, call, name, models)
    return sentences


def _explain(
    connection: duckdb.DuckDBPyConnection, call: str, name: str, models: list[str]
) -> Iterator[str]:
    """Yield sentences that say why a view (``name``) has no rows, or no rows of ``models``."""
    try:
        [(num_rows,)] = _rows(connection, f"from {call} select count(*)")
    except UsageError:  # the call of a macro depends on the rest of the statement
        return
    wanted: list[str | None] = [*models]
    if not models and not num_rows:
        wanted = [None]  # all models
    reasons: dict[tuple[Any, ...], None] = {}  # used as a set that keeps the order
    for model in wanted:
        reasons |= dict.fromkeys(_rows(connection, _LEFT_OUT, {"view": name, "model": model}))
    for reason, num_models, model in reasons:
        who = model if num_models == 1 else f"{num_models} models, such as {model}"
        remedy = next((text for key, text in _REMEDIES.items() if reason.startswith(key)), None)
        yield f"{name} leaves out {who}: {reason}" + (f"; {remedy}" if remedy else "")
    if reasons:
        yield f"all reasons: `from unmeasured where left_out_of = '{name}'`"
    elif num_rows:
        yield f"{call} has {counted(num_rows, 'row')}, and none meets the conditions"
    else:
        mart = list_views()[name].parent.name
        command = _COMMANDS.get(name) or _COMMANDS.get(mart)
        yield f"{call} has no rows; {command or '`from coverage` lists what was scored'}"


def _rows(
    connection: duckdb.DuckDBPyConnection, sql: str, values: Mapping[str, object] | None = None
) -> list[tuple[Any, ...]]:
    table = run_statement(connection, sql, values or ()).read_all()
    return [tuple(row.values()) for row in table.to_pylist()]
