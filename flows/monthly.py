"""The flow of the monthly run: crawl, score, land, publish and report."""

from __future__ import annotations

from prefect import flow

from core.month import Month
from core.settings import Settings
from flows.dispatch import cancel_run
from flows.run import RunSummary, run_months
from instruments.planning import check_request
from tasks.prefect.storage_keys import worker_settings
from tasks.prefect.tracing import traced


@flow(name="monthly", on_cancellation=[cancel_run], flow_run_name="monthly {month}")
@traced("run")
def monthly(
    month: str | None = None,
    sources: list[str] | None = None,
    models: list[str] | None = None,
    settings: Settings | None = None,
) -> RunSummary:
    """Crawl, score, land, publish and report one month; skip finished work.

    Args:
        month: the month, YYYY-MM; default: the last complete month (UTC).
        sources: names of sources; default: all sources.
        models: names of models; default: the setting ``models``.
        settings: the settings; default: read from the worker's environment.
    """
    settings = settings or worker_settings()
    window = Month(month) if month else Month.last_complete()
    return run_months("monthly", check_request([window], sources, models, settings), settings)
