"""The back-fill: the work of the monthly run for a range of months."""

from __future__ import annotations

from typing import cast

from prefect import flow
from prefect.artifacts import create_markdown_artifact
from prefect.client.schemas.objects import State
from prefect.states import Completed

from core.month import month_range
from core.periods import parse_period
from flows.dispatch import cancel_run
from flows.run import RunSummary, run_months
from instruments.planning import check_request
from instruments.running.run_options import NO_OPTIONS, FlowRunId, PeriodName, RunOptions
from instruments.running.run_plan import PlanTable, RunPlan, plan_run
from tasks.prefect.artifacts import plain, plain_cell
from tasks.prefect.storage_keys import worker_settings
from tasks.prefect.tracing import traced


@flow(name="backfill", on_cancellation=[cancel_run], flow_run_name="backfill {first} to {last}")
@traced("run")
def backfill(  # noqa: PLR0913 - fields of the form of the deployment
    first: PeriodName,
    last: PeriodName,
    sources: list[str] | None = None,
    models: list[str] | None = None,
    dry_run: bool = False,
    options: RunOptions = NO_OPTIONS,
    resume: FlowRunId | None = None,
) -> RunSummary:
    """Do the monthly run for all months from ``first`` to ``last`` (inclusive).

    Each model is loaded once for all months.

    Args:
        first: the first month, YYYY-MM, or period, such as 2024-03a.
        last: the last month or period, inclusive.
        sources: names of sources; default: all sources.
        models: names of models; default: the setting ``models``.
        dry_run: only publish the plan, as the message of the run's state and as an artifact.
        options: what differs from the worker's settings.
        resume: id of the flow run that has crashed and whose work this run continues.
    """
    settings = options.applied_to(worker_settings())
    months = list(month_range(parse_period(first), parse_period(last)))
    request = check_request(months, sources, models, settings)
    if dry_run:
        return cast(RunSummary, _announce(plan_run(request, settings)))
    return run_months("backfill", request, settings, options, resume)


def _announce(plan: RunPlan) -> State[str]:
    total = plan.total()
    parts = [f"## {table.title}\n\n{_markdown(table)}" for table in plan.tables()]
    create_markdown_artifact(
        "\n\n".join([plain(total), *parts]), key="backfill-dry-run", description=total
    )
    return Completed(name="Completed (dry run)", message=total, data=total)


def _markdown(table: PlanTable) -> str:
    shown = [[plain_cell(str(cell)) for cell in row] for row in (table.columns, *table.rows)]
    lines = [f"| {' | '.join(row)} |" for row in shown]
    return "\n".join([lines[0], "|---" * len(table.columns) + "|", *lines[1:]])
