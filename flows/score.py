"""Score sealed partitions with one model: the model is loaded once, cells fan out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from prefect import flow
from prefect.states import Cancelled

from core.cells import list_losses
from core.errors import OrchestrationError, TidemarkError
from core.month import Month, month_range
from core.run_record import Outcome, RunRecord
from core.settings import Settings
from core.storage import Store
from flows.stages import end_part, ended
from models.catalogue import find_model
from tasks.artifacts import show_scoring
from tasks.canary import run_canary
from tasks.events import emit_landed
from tasks.fan_out import Hole, fan_out
from tasks.landing import land_cells, publish_warehouse
from tasks.left_to_land import leave
from tasks.scoring import ScoringPlan, load_model, plan_scoring, score_all
from tasks.server import is_deployed
from tasks.stopping import stop_with_flow
from tasks.storage_keys import worker_settings
from tasks.tracing import traced
from warehouse.one_writer import may_write


@dataclass
class ScoreOutcome:
    """How many cells landed in this run, how many have losses by now, and what did not."""

    landed: int = 0
    done: int = 0
    holes: list[Hole] = field(default_factory=list)


@flow(name="score", flow_run_name="score {model}")
@traced("score")
def score(
    model: str,
    sources: list[str] | None = None,
    first: str | None = None,
    last: str | None = None,
    run: str | None = None,
    settings: Settings | None = None,
) -> ScoreOutcome:
    """Score and land every cell of a model that is not done; publish the warehouse.

    Args:
        model: catalogue name, folder, or control.
        sources: default: all that are sealed.
        first: YYYY-MM; default: all months that are sealed.
        last: YYYY-MM, included; default: ``first``.
        run: the run that this is a part of; its request says which sources, months and protocol.
        settings: default: read from the environment of the worker.
    """
    settings = settings or worker_settings()
    if run:
        return score_for_run(model, RunRecord(Store(settings.home), run), settings)
    months = list(month_range(Month(first), Month(last or first))) if first else None
    outcome = score_model(model, sources, months, settings)
    return ended(outcome, outcome.holes)


def score_for_run(model: str, record: RunRecord, settings: Settings) -> ScoreOutcome:
    """Score what a run was asked for, and settle how it ended; nothing where the run is over."""
    if is_deployed() and record.result() is not None:
        why = f"the run {record.run} has ended; start another"
        return cast(ScoreOutcome, Cancelled(message=why))
    request = record.request()
    settings = settings.model_copy(update={"protocol": request.protocol})
    run = record.run if is_deployed() else None
    outcome = score_model(model, list(request.sources), request.window(), settings, run)
    if is_deployed() and outcome.done:  # in one process, the run sees to that once
        outcome.holes += check_numerics([model], settings)
    lacks = tuple(map(str, outcome.holes))
    end_part(record, "score", model, Outcome(done=outcome.done, holes=lacks))
    return ended(outcome, outcome.holes)


def score_model(
    model: str,
    sources: list[str] | None,
    months: list[Month] | None,
    settings: Settings,
    run: str | None = None,
) -> ScoreOutcome:
    """Score, land and publish, inside a flow; what goes wrong is a hole.

    Where the warehouse is written from another machine, landing is left to the report of ``run``.
    """
    outcome = ScoreOutcome()
    score_cells = score_on_cluster if settings.ray_address else score_here
    try:
        plan, failed = score_cells(model, sources, months, settings)
    except TidemarkError as error:
        outcome.holes.append(Hole(f"score {model}", str(error)))
        return outcome
    outcome.holes += [*(Hole(f"score {model}", why) for why in plan.refused), *failed]
    done = list_losses(Store(settings.home), plan.cells[0].model) if plan.cells else set()
    outcome.done = sum(cell.path in done for cell in plan.cells)
    if run and not may_write(settings):
        leave(run, plan.entry, plan.cells, settings)
    else:
        outcome.landed, lacking = land_and_publish(plan, settings)
        outcome.holes += lacking
    failures = {hole.what.removeprefix("score "): hole.why for hole in outcome.holes}
    show_scoring(plan.entry, plan.cells, failures, settings)
    if outcome.landed:
        emit_landed(model, outcome.landed, len(outcome.holes))
    return outcome


def land_and_publish(plan: ScoringPlan, settings: Settings) -> tuple[int, list[Hole]]:
    """Land a plan's cells and publish; return how many have landed anew, and what went wrong."""
    landing = {"entry": plan.entry, "cells": plan.cells, "settings": settings}
    [landed] = fan_out(land_cells, [(f"land {plan.entry.name}", landing)], step=None)
    if isinstance(landed, Hole):
        return 0, [landed]
    publishing = fan_out(publish_warehouse, [("publish", {"settings": settings})], step=None)
    return landed, [result for result in publishing if isinstance(result, Hole)]


def score_here(
    model: str, sources: list[str] | None, months: list[Month] | None, settings: Settings
) -> tuple[ScoringPlan, list[Hole]]:
    """Plan and score in this process; return what was to do, and what failed of it."""
    plan = plan_scoring(model, [settings.protocol], sources, months, settings)
    load_model(plan, settings)
    with stop_with_flow():
        return plan, score_all(plan, settings)


def score_on_cluster(
    model: str, sources: list[str] | None, months: list[Month] | None, settings: Settings
) -> tuple[ScoringPlan, list[Hole]]:
    """Do as ``score_here`` on the nodes of the Ray cluster of the settings.

    Raises:
        OrchestrationError: Ray is not installed, or as ``score_on_ray``.
    """
    try:
        from flows.on_ray import score_on_ray  # an extra
    except ImportError as error:
        raise OrchestrationError(
            f"TIDEMARK_RAY_ADDRESS is {settings.ray_address}, but Ray is not installed here "
            f"({error}): install tidemark[ray], or unset it to score in this process"
        ) from error
    return score_on_ray(model, sources, months, settings)


def check_numerics(models: Sequence[str], settings: Settings) -> list[Hole]:
    """See that models are computed as ever; a drift is a hole. Compressors have no such doubts."""
    if all(find_model(model, settings).kind == "control" for model in models):
        return []
    results = list(fan_out(run_canary, [("canary", {"settings": settings})], step="canary"))
    holes = [result for result in results if isinstance(result, Hole)]
    runs = [result for result in results if not isinstance(result, Hole)]
    return holes + [Hole("canary", str(run)) for run in runs if not run.is_well]
