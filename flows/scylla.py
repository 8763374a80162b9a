"""The third instrument: have models solve Scylla's puzzles, land what came of it, report."""

from __future__ import annotations

from dataclasses import dataclass, field

from prefect import flow

from core.errors import TidemarkError
from core.settings import Settings
from flows.stages import ended
from tasks.answering import answering_models
from tasks.fan_out import Hole, fan_out
from tasks.landing import publish_warehouse
from tasks.puzzle_models import begin_puzzles
from tasks.puzzles import (
    PuzzlePlan,
    ended_without_answer,
    land_model_puzzles,
    plan_puzzles,
    solve_puzzle,
)
from tasks.reporting import write_puzzles
from tasks.server import run_log
from tasks.stopping import stop_with_flow
from tasks.storage_keys import worker_settings
from tasks.tracing import traced


@dataclass
class ScyllaSummary:
    """What a run did: items asked, cells landed; and what it lacks."""

    items: int = 0
    landed: int = 0
    report: str | None = None
    holes: list[Hole] = field(default_factory=list)


@flow(name="scylla", flow_run_name="scylla")
@traced("scylla")
def scylla(
    models: list[str] | None = None,
    puzzles: list[str] | None = None,
    settings: Settings | None = None,
) -> ScyllaSummary:
    """Have models solve the puzzles that they have not yet, and publish what came of it.

    Args:
        models: default: the ``models`` setting, without compressors.
        puzzles: default: all.
        settings: default: read from the environment of the worker.
    """
    settings = settings or worker_settings()
    summary = ScyllaSummary()
    begin_puzzles(settings)
    chosen = models or answering_models(settings)
    for model in chosen:
        solve_with(model, puzzles, settings, summary)
    if chosen:
        finish(settings, summary)
    else:
        run_log().warning("nothing to do: no model of TIDEMARK_MODELS can write")
    return ended(summary, summary.holes)


def solve_with(
    model: str, puzzles: list[str] | None, settings: Settings, summary: ScyllaSummary
) -> None:
    """Have one model solve, a task a puzzle, and land what it has; what goes wrong is a hole."""
    try:
        plan = plan_puzzles(model, puzzles, settings)
    except TidemarkError as error:
        summary.holes.append(Hole(f"puzzles {model}", str(error)))
        return
    _solve(plan, settings, summary)
    landing = {"model": model, "puzzles": puzzles, "settings": settings}
    for landed in fan_out(land_model_puzzles, [(f"land {model}", landing)], step=None):
        if isinstance(landed, Hole):
            summary.holes.append(landed)
        else:
            summary.landed += landed


def _solve(plan: PuzzlePlan, settings: Settings, summary: ScyllaSummary) -> None:
    calls = [
        (str(cell), {"entry": plan.entry, "cell": cell, "settings": settings})
        for cell in plan.pending
    ]
    step = f"puzzles {plan.entry.name}"
    with stop_with_flow():
        for (what, _), result in zip(
            calls, fan_out(solve_puzzle, calls, step, plan.in_flight), strict=True
        ):
            if isinstance(result, Hole):
                summary.holes.append(result)
                continue
            summary.items += result.num_items
            if why := ended_without_answer(result):
                run_log().warning("%s: %s", what, why)
            if result.num_errors:
                summary.holes.append(Hole(what, f"{result.num_errors} items have no answer"))


def finish(settings: Settings, summary: ScyllaSummary) -> None:
    """Publish, and write the page of puzzles."""
    for work in (publish_warehouse, write_puzzles):
        for result in fan_out(work, [(str(work.name), {"settings": settings})], step=None):
            if isinstance(result, Hole):
                summary.holes.append(result)
            elif work is write_puzzles:
                summary.report = str(result)
