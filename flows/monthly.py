"""The flow of the monthly run: crawl, score, land, publish and report."""

from __future__ import annotations

from prefect import flow
from prefect.runtime import flow_run

from core.month import Month
from flows.dispatch import cancel_run
from flows.run import RunSummary, month_due, run_months
from instruments.planning import check_request
from instruments.run_options import NO_OPTIONS, RunOptions
from tasks.prefect.storage_keys import worker_settings
from tasks.prefect.tracing import traced


def _name() -> str:
    given = flow_run.parameters
    month = given["month"] or month_due(given["resume"])
    return f"monthly {month}" + (", after a crash" if given["resume"] else "")


@flow(name="monthly", on_cancellation=[cancel_run], flow_run_name=_name)
@traced("run")
def monthly(
    month: str | None = None,
    sources: list[str] | None = None,
    models: list[str] | None = None,
    options: RunOptions = NO_OPTIONS,
    resume: str | None = None,
) -> RunSummary:
    """Crawl, score, land, publish and report one month; skip finished work.

    Args:
        month: the month, YYYY-MM; default: the last month that had ended at the scheduled start
            of this run (UTC), however late it starts.
        sources: names of sources; default: all sources.
        models: names of models; default: the setting ``models``.
        options: what differs from the worker's settings.
        resume: id of the flow run that has crashed and whose work this run continues.
    """
    settings = options.applied_to(worker_settings())
    window = Month(month) if month else month_due(resume)
    request = check_request([window], sources, models, settings)
    return run_months("monthly", request, settings, options, resume)
