"""Steps that the flows of forecasts and of puzzles share; call them inside a flow."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from core.cells.answers import AnswerCell
from core.cells.failures import CellFailure, read_failures
from core.cells.puzzles import PuzzleCell
from core.gpus import read_fleet
from core.settings import Settings
from core.storage.store import Store, name_of_part
from flows.finish import finish
from flows.rounds import Pending, Rounds
from instruments.backlog import name_of
from instruments.pools import Pool, pool_of
from instruments.running.stopping import stop_with_flow
from instruments.summary import RunSummary
from tasks.prefect.cancelling import ends_if_cancelled
from tasks.prefect.server import ended, run_log

_ROOTS = {"answer": AnswerCell.ROOT, "solve": PuzzleCell.ROOT}


def ask_models(
    verb: Literal["answer", "solve"],
    run: str,
    models: Sequence[str],
    parameters: Mapping[str, Any],
    settings: Settings,
    summary: RunSummary,
) -> RunSummary:
    """Let workers ask models, land the answers, publish and report; what fails becomes a hole.

    A model behind a server belongs to the pool ``api``. Its models are asked by one flow run, as
    they share a budget, and only workers of this pool need the keys.
    """
    store = Store(settings.home)
    pools = {model: pool_of(model, read_fleet(store), settings, is_asked=True) for model in models}

    def list_pending(completed: Collection[str]) -> dict[Pool, Pending]:
        pending: dict[Pool, Pending] = {}
        for model, pool in pools.items():
            keys = frozenset() if model in completed else frozenset({model})
            pending.setdefault(pool, Pending()).keys[model] = keys
        return pending

    if not models:
        run_log().warning("nothing to do: no model of TIDEMARK_MODELS can write")
    given = {**parameters, "verb": verb, "run": run}
    rounds = Rounds(list_pending, given, settings)
    with ends_if_cancelled(), stop_with_flow():
        rounds.drain(is_over=lambda: True)
    summary.holes += rounds.problems
    for model in models:
        failures = read_failures(store, _ROOTS[verb], name_of(model, settings))
        summary.holes += [
            f"{verb} {failure}"
            for stem, failure in failures.items()
            if concerns(stem, failure, given)
        ]
    finish(summary, models, settings, has_losses=False, has_answers=True)
    return ended(summary, summary.holes)


def concerns(stem: str, failure: CellFailure, given: Mapping[str, Any]) -> bool:
    """Return True if a failure is of this run, or of a cell that it left as it would fail again.

    ``given`` are the parameters of the run's flow runs of workers.
    """
    if failure.run == given["run"]:
        return True
    if failure.may_pass:
        return False
    folders = dict(part.split("=", 1) for part in stem.split("/") if "=" in part)
    source, puzzle, month = (folders.get(name) for name in ("source", "puzzle", "month"))
    if source and given.get("sources") and name_of_part(source) not in given["sources"]:
        return False
    if puzzle and given.get("puzzles") and name_of_part(puzzle) not in given["puzzles"]:
        return False
    return month is None or "first" not in given or given["first"] <= month <= given["last"]
