"""The flow that scores sealed partitions with one model, which is loaded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from prefect import flow
from prefect.states import Cancelled

from core.cells.losses import list_losses
from core.errors import OrchestrationError, TidemarkError
from core.month import Period, month_range
from core.periods import parse_period
from core.progress import counted
from core.run_record import Outcome, RunRecord
from core.settings import Settings
from core.storage.store import Store
from flows.gpus import take_gpus
from flows.instrument import Holes
from instruments.driver import run_plan
from instruments.landing import leave
from instruments.losses import ScoringPlan, load_model, plan_scoring
from instruments.runner import Failure
from instruments.running.run_options import NO_OPTIONS, PeriodName, RunOptions
from instruments.running.stopping import stop_with_flow
from models.catalogue import find_model
from tasks.cells import score_cells
from tasks.landing import land_cells, publications_due, publish_warehouse
from tasks.models import run_canary
from tasks.prefect.artifacts import show_scoring
from tasks.prefect.events import tell_landed
from tasks.prefect.fan_out import as_tasks, fan_out
from tasks.prefect.server import ended, is_deployed, run_log
from tasks.prefect.storage_keys import worker_settings
from tasks.prefect.tracing import traced
from warehouse.database.lock import may_write


@dataclass
class ScoreOutcome(Holes):
    """The number of planned cells that this run landed, and the number with a losses file."""

    landed: int = 0
    done: int = 0

    def __str__(self) -> str:
        verb = "has" if self.done == 1 else "have"
        return f"{counted(self.done, 'cell')} {verb} losses, {self.landed:,} landed now"


@flow(name="score", flow_run_name="score {model}")
@traced("score")
def score(  # noqa: PLR0913 - fields of the form of the deployment
    model: str,
    sources: list[str] | None = None,
    first: PeriodName | None = None,
    last: PeriodName | None = None,
    run: str | None = None,
    helps: bool = False,
    options: RunOptions = NO_OPTIONS,
) -> ScoreOutcome:
    """Score and land every pending cell of a model; publish the warehouse.

    Args:
        model: catalogue name, folder, or control (compressor).
        sources: names of sources; default: all sealed sources.
        first: the first month, YYYY-MM, or period, such as 2024-03a; default: all sealed months.
        last: the last month or period, inclusive; default: ``first``.
        run: name of the run to score for; its request sets sources, months and options.
        helps: True for a further flow run of a model that ``run`` scores: it computes cells that
            no other process has begun, and lands nothing.
        options: what differs from the worker's settings.
    """
    settings = options.applied_to(worker_settings())
    if run:
        return score_for_run(model, RunRecord(Store(settings.home), run), settings, helps)
    months = list(month_range(parse_period(first), parse_period(last or first))) if first else None
    outcome = score_model(model, sources, months, settings)
    return ended(outcome, outcome.holes)


def score_for_run(
    model: str, record: RunRecord, settings: Settings, helps: bool = False
) -> ScoreOutcome:
    """Score a model for a run, and store the outcome; do nothing if the run has ended."""
    if is_deployed() and record.result() is not None:
        why = f"the run {record.run} has ended; start another"
        return cast(ScoreOutcome, Cancelled(message=why))
    request = record.request()
    settings = settings.model_copy(update={**request.options, "protocol": request.protocol})
    if helps:
        return help_to_score(model, record, settings)
    run = record.run if is_deployed() else None
    outcome = score_model(model, list(request.sources), request.window(), settings, run)
    if is_deployed() and outcome.landed:  # without deployment, score_models runs the canary
        outcome.holes += check_numerics([model], settings)
    record.settle("score", model, Outcome(done=outcome.done, holes=tuple(outcome.holes)))
    return ended(outcome, outcome.holes)


def help_to_score(model: str, record: RunRecord, settings: Settings) -> ScoreOutcome:
    """Compute cells of a model beside the flow run that scores it; errors are only logged.

    That flow run waits for these cells, computes those that failed here, and lands them all.
    """
    outcome, request = ScoreOutcome(), record.request()
    if model in record.missing("score") and not settings.ray_address:
        try:
            plan, failed = score_here(
                model, list(request.sources), request.window(), settings, record.run, waits=False
            )
            outcome.done = len(plan.pending) - len(failed)
        except TidemarkError as error:
            run_log().warning("no help for %s: %s", model, error)
    return ended(outcome, [])


def score_model(
    model: str,
    sources: list[str] | None,
    months: list[Period] | None,
    settings: Settings,
    run: str | None = None,
) -> ScoreOutcome:
    """Score, land and publish, inside a flow; errors become holes (missing work) in the outcome.

    If only another machine may write the warehouse, the report flow of ``run`` lands the cells.
    """
    outcome = ScoreOutcome()
    score_cells = score_on_cluster if settings.ray_address else score_here
    try:
        plan, failed = score_cells(model, sources, months, settings, run)
    except TidemarkError as error:
        outcome.holes.append(f"score {model}: {error}")
        return outcome
    failed = [*(Failure(model, why) for why in plan.refused), *failed]
    outcome.holes += [f"score {failure}" for failure in failed]
    done = list_losses(Store(settings.home), plan.cells[0].model) if plan.cells else set()
    outcome.done = sum(cell.path in done for cell in plan.cells)
    if run and not may_write(settings):
        leave(run, plan.entry, plan.cells, settings)
    else:
        landing = {"entry": plan.entry, "cells": plan.cells, "settings": settings}
        calls = [(f"land {plan.entry.name}", landing)]
        for landed in outcome.keep_holes(fan_out(land_cells, calls, step=None)):
            outcome.landed = landed
            publishing = publications_due(settings)
            outcome.keep_holes(fan_out(publish_warehouse, publishing, step=None))
    if outcome.landed or outcome.holes:
        show_scoring(plan.entry, plan.cells, {each.what: each.why for each in failed}, settings)
    if outcome.landed:
        tell_landed(model, outcome.landed, len(outcome.holes))
    return outcome


def score_here(
    model: str,
    sources: list[str] | None,
    months: list[Period] | None,
    settings: Settings,
    run: str | None = None,
    waits: bool = True,
) -> tuple[ScoringPlan, list[Failure]]:
    """Plan and score in this process, for a run; return the plan and the failed cells."""
    plan = plan_scoring(model, [settings.protocol], sources, months, settings)
    with stop_with_flow():
        take_gpus(plan, settings)
        load_model(plan, settings)
        return plan, run_plan(plan, settings, as_tasks(score_cells), run, waits).failures


def score_on_cluster(
    model: str,
    sources: list[str] | None,
    months: list[Period] | None,
    settings: Settings,
    run: str | None = None,
) -> tuple[ScoringPlan, list[Failure]]:
    """Plan and score like ``score_here``, but on the nodes of the configured Ray cluster.

    Raises:
        OrchestrationError: Ray is not installed, or ``score_on_ray`` has failed.
    """
    try:
        from flows.on_ray import score_on_ray  # requires the extra ``ray``
    except ImportError as error:
        raise OrchestrationError(
            f"TIDEMARK_RAY_ADDRESS is {settings.ray_address}, but Ray is not installed here "
            f"({error}): install tidemark[ray], or unset it to score in this process"
        ) from error
    return score_on_ray(model, sources, months, settings, run)


def check_numerics(models: Sequence[str], settings: Settings) -> list[str]:
    """Run the canary if not all models are compressors; return its failure or drift as a hole."""
    found = Holes()
    if not all(find_model(model, settings).backend.is_control for model in models):
        calls = [("canary", {"settings": settings})]
        runs = found.keep_holes(fan_out(run_canary, calls, step="canary"))
        found.holes += [f"canary: {run}" for run in runs if not run.is_well]
    return found.holes
