"""The flow of the monthly run: crawl, score, land, publish and report."""

from __future__ import annotations

from prefect import flow
from prefect.runtime import flow_run

from core.periods import parse_period
from flows.begin import begin_run, period_due
from flows.run import run_months
from instruments.planning import check_request
from instruments.running.run_options import PeriodName, RunOptions
from instruments.summary import RunSummary
from tasks.prefect.given import worker_settings


def _name() -> str:
    given = flow_run.parameters
    return f"monthly {given['month'] or period_due(given['sources'])}"


@flow(name="monthly", flow_run_name=_name)
def monthly(
    month: PeriodName | None = None,
    sources: list[str] | None = None,
    models: list[str] | None = None,
    options: RunOptions = RunOptions(),
) -> RunSummary:
    """Crawl, score, land, publish and report one month; skip finished work.

    Args:
        month: the month, YYYY-MM, or period, such as 2024-03a; default: the last that had ended at
            the scheduled start of this run (UTC), however late it starts.
        sources: names of sources; default: all sources.
        models: names of models; default: the setting ``models``.
        options: what differs from the worker's settings.
    """
    settings = options.applied_to(worker_settings())
    window = parse_period(month) if month else period_due(sources)
    request = check_request([window], sources, models, settings)
    run = begin_run(request.left_out, month=str(window))
    return run_months(run, request, settings, options)
