"""Steps that the flows of forecasts and of puzzles share; call them inside a flow.

A deployed run asks each model that needs a GPU in a child flow run, so that several GPUs are used.
It asks all models behind servers in one child flow run of the pool ``api``. They share its budget,
and only workers of this pool need the keys.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from prefect import Task
from prefect.runtime import flow_run

from core.errors import TidemarkError, UsageError
from core.progress import counted
from core.run_record import Outcome, RunRecord, RunRequest, Stage
from core.settings import Settings
from core.storage.store import Store
from flows.dispatch import Coordinator, records_of
from flows.gpus import take_gpus
from instruments.assignment import pool_to_ask
from instruments.driver import run_plan
from instruments.runner import Failure, Plan, failure_of
from instruments.running.stopping import stop_with_flow
from tasks.landing import land_plan, publications_due, publish_warehouse
from tasks.prefect.fan_out import as_tasks, fan_out
from tasks.prefect.server import is_deployed, run_log
from tasks.prefect.tracing import name_of_run


@dataclass
class Holes:
    """A list of holes (missing work, with the reason); base class of the outcomes of flows."""

    holes: list[str] = field(default_factory=list)

    def keep_holes(self, results: Iterable[Any]) -> list[Any]:
        """Add each Failure in ``results`` to the list of holes, and return the other results."""
        results = list(results)
        self.holes += [str(result) for result in results if isinstance(result, Failure)]
        return [result for result in results if not isinstance(result, Failure)]


@dataclass
class InstrumentSummary(Holes):
    """The numbers of sealed months of questions, of answered items, and of landed cells."""

    months: int = 0
    items: int = 0
    landed: int = 0
    report: str = ""

    def __str__(self) -> str:
        items, cells = counted(self.items, "item"), counted(self.landed, "cell")
        return f"{items} answered, {cells} landed, report {self.report}"


def run_model(
    verb: str,
    model: str,
    make_plan: Callable[[], Plan[Any]],
    work: Task[..., Any],
    settings: Settings,
    summary: InstrumentSummary,
) -> None:
    """Compute the pending cells of one model as tasks, and land the results.

    The task ``work`` computes one cell. Failures, also of ``make_plan``, become holes (missing
    work) of ``summary``. The text of each hole begins with ``verb``.
    """
    try:
        plan = make_plan()
    except UsageError:
        raise
    except TidemarkError as error:
        summary.holes.append(f"{verb} {model}: {failure_of(model, error).why}")
        return
    with stop_with_flow():
        take_gpus(plan, settings)
        done = run_plan(plan, settings, as_tasks(work))
    summary.items += done.num_items
    summary.holes += [f"{verb} {failure}" for failure in done.failures]
    for remark in done.remarks:
        run_log().warning("%s", remark)
    landing = [(f"land {model}", {"plan": plan, "settings": settings})]
    summary.landed += sum(summary.keep_holes(fan_out(land_plan, landing, step=None)))


def ask_models(
    stage: Stage,
    models: Sequence[str],
    ask: Callable[[str, InstrumentSummary], None],
    settings: Settings,
    summary: InstrumentSummary,
    parameters: Mapping[str, Any],
) -> None:
    """Ask models with ``ask``; in a deployed run, those that need a GPU or key in child flow runs.

    ``parameters`` are those of the child flow runs.
    """
    apart = [model for model in models if is_deployed() and _is_apart(model, settings)]
    if not apart:
        for model in models:
            ask(model, summary)
        return
    flow = str(flow_run.flow_name)
    records = records_of(name := name_of_run(flow, flow_run.id), Store(settings.home))
    record = RunRecord(Store(settings.home), f"{name}-{len(records) + 1}" if records else name)
    record.begin(
        RunRequest(
            run=record.run,
            started_at=dt.datetime.now(dt.UTC),
            months=tuple(parameters[end] for end in ("first", "last") if end in parameters),
            sources=(),
            models=tuple(apart),
            protocol="",
            stages=(stage,),
            parameters=dict(parameters),
        )
    )
    coordinator = Coordinator(record, settings)
    coordinator.look()
    for model in models:
        if model not in apart:
            ask(model, summary)
    coordinator.wait_for_models()
    for outcome in record.outcomes(stage).values():
        summary.landed += outcome.done
        summary.items += outcome.items
        summary.holes += outcome.holes
    record.finish("")


def _is_apart(model: str, settings: Settings) -> bool:
    try:
        return pool_to_ask(model, settings) is not None
    except TidemarkError:
        return False  # an unknown or scripted model; ``ask`` reports the former


def ask_for_run(
    stage: Stage,
    models: Sequence[str],
    ask: Callable[[str, InstrumentSummary], None],
    record: RunRecord,
    summary: InstrumentSummary,
) -> None:
    """Ask models for a run, and store the outcome of each; do nothing if the run has ended."""
    for model in models:
        if record.result() is None:
            own = InstrumentSummary()
            ask(model, own)
            outcome = Outcome(done=own.landed, items=own.items, holes=tuple(own.holes))
            record.settle(stage, model, outcome)
            summary.landed += own.landed
            summary.items += own.items
            summary.holes += own.holes


def publish_and_report(
    write_page: Task[..., Any], settings: Settings, summary: InstrumentSummary
) -> None:
    """Publish the warehouse, and write the report page with task ``write_page``."""
    summary.keep_holes(fan_out(publish_warehouse, publications_due(settings), step=None))
    calls = [(str(write_page.name), {"settings": settings})]
    for address in summary.keep_holes(fan_out(write_page, calls, step=None)):
        summary.report = str(address)
