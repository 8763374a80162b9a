"""Publish the warehouse, write the page, and end a run."""

from __future__ import annotations

from prefect import flow

from core.run_record import RunRecord
from core.settings import Settings
from core.storage import Store
from flows.run import RunSummary, report_on, summary_of
from flows.stages import ended
from tasks.fan_out import fan_out
from tasks.landing import publish_warehouse
from tasks.storage_keys import worker_settings
from tasks.tracing import traced


@flow(name="report")
@traced("report")
def report(run: str | None = None, settings: Settings | None = None) -> RunSummary:
    """Publish what has landed and write the report; a run has its result then.

    Args:
        run: the run that ends with this report; default: none.
        settings: default: read from the environment of the worker.
    """
    settings = settings or worker_settings()
    summary = RunSummary()
    calls = [("publish", {"settings": settings})]
    summary.keep_holes(fan_out(publish_warehouse, calls, step="publish"))
    report_on(summary, settings)
    if run:
        record = RunRecord(Store(settings.home), run)
        summary = summary_of(record.finish(summary.report, list(map(str, summary.holes))))
    return ended(summary, summary.holes)
