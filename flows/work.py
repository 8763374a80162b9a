"""The flow of a worker: compute pending cells of models until none is left."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from prefect import flow
from prefect.runtime import flow_run

from core.errors import OrchestrationError
from core.gpus import FOLDER, hold_gpus, usable_gpus
from core.month import Month, Period, month_range
from core.periods import parse_period
from core.plugins import import_parts
from core.progress import counted
from core.settings import Settings
from flows.begin import name_of_run
from instruments import driver
from instruments.backlog import backlogs_of
from instruments.driver import Summary, WorkRequest
from instruments.forecasts import answer_request
from instruments.losses import scoring_request
from instruments.models import held
from instruments.pools import Pool, list_models_of
from instruments.puzzles import solve_request
from instruments.runner import Plan
from instruments.running.run_options import PeriodName, WorkOptions
from instruments.running.stopping import rest, stop_with_flow
from instruments.runs import check_numerics
from tasks.cells import as_tasks
from tasks.prefect.cancelling import ends_if_cancelled
from tasks.prefect.given import worker_settings
from tasks.prefect.server import ended, run_log

Verb = Literal["score", "answer", "solve"]
_held = ExitStack()  # until the process ends, as the memory of a GPU is free only then


def _name() -> str:
    given = flow_run.parameters
    models: list[str] = given["models"] or []
    of = models[0] if len(models) == 1 else f"{len(models) or 'all'} models"
    return f"{given['verb']} {of} on {given['pool']}"


@flow(name="work", flow_run_name=_name)
def work(  # noqa: PLR0913 - fields of the form of the deployment
    pool: Pool = "gpu",
    verb: Verb = "score",
    models: list[str] | None = None,
    sources: list[str] | None = None,
    first: PeriodName | None = None,
    last: PeriodName | None = None,
    puzzles: list[str] | None = None,
    protocol: str | None = None,
    run: str | None = None,
    options: WorkOptions = WorkOptions(),
) -> str:
    """Compute the cells of models that lack results; claims divide them among such flow runs.

    Args:
        pool: name of this worker's pool.
        verb: what to compute: losses, answers to questions, or answers to puzzles.
        models: names of models; default: those of the setting ``models`` that belong to the pool.
        sources: names of sources, of texts or of questions; default: all sealed sources.
        first: the first month, YYYY-MM, or period; default: all sealed months.
        last: the last month or period, inclusive; default: ``first``.
        puzzles: names of puzzles; default: all puzzles.
        protocol: name of the answer protocol; default: the setting ``answer_protocol``.
        run: name of the run that this work belongs to; cells that failed in it are left.
        options: what differs from the worker's settings.
    """
    settings = options.applied_to(worker_settings())
    months = list(month_range(parse_period(first), parse_period(last or first))) if first else None
    names = models or list_models_of(pool, settings, is_asked=verb != "score")
    run = run or name_of_run()
    # An error of one model ends no other's work.
    given: dict[str, Any] = {"run": run, "prepare": partial(hold_for, settings), "ends_on": ()}
    if verb == "score":
        given["backlog"] = backlogs_of(sources, months, run, settings)
        protocols = [settings.protocol]
        request = scoring_request(names, sources, months, protocols, settings, **given)
    elif verb == "solve":
        held.begin(settings)
        request = solve_request(names, puzzles, settings, **given)
    else:
        held.begin(settings)
        dated = [month for month in months if isinstance(month, Month)] if months else None
        request = answer_request(names, [protocol], sources, dated, settings, **given)
    with ends_if_cancelled(), stop_with_flow():
        done = compute(request, verb, sources, months, settings)
        done.failures += check_numerics(done.computed, settings) if verb == "score" else []
    for remark in done.remarks:
        run_log().warning("%s", remark)
    computed = f"{counted(done.num_cells, 'cell')} complete, {counted(done.num_items, 'item')}"
    return ended(computed, [f"{verb} {failure}" for failure in done.failures])


def compute(
    request: WorkRequest,
    verb: Verb,
    sources: list[str] | None,
    months: list[Period] | None,
    settings: Settings,
) -> Summary:
    """Work in this process, or on the configured cluster.

    Raises:
        OrchestrationError: a cluster is configured, but the extra that connects to it is missing.
    """
    if verb != "score" or not settings.ray_address:
        return driver.work(request, settings, as_tasks)
    for part in import_parts("clusters"):
        summary: Summary = part.work_on_cluster(request, sources, months, settings)
        return summary
    raise OrchestrationError(
        f"TIDEMARK_RAY_ADDRESS is {settings.ray_address}, but the folder extras/ray is missing: "
        "install tidemark with it, or unset the former to score in this process"
    )


def hold_for(settings: Settings, plan: Plan[Any]) -> None:
    """Wait for the GPUs of this worker if a plan needs one; hold them until the process ends."""
    if plan.entry.backend.on_device and settings.device.startswith(("auto", "cuda")):
        _hold_until_end(settings.scratch / FOLDER)


@cache
def _hold_until_end(folder: Path) -> None:
    _held.enter_context(hold_gpus(usable_gpus(), folder, rest))
