"""The flow that lands the written cells, publishes the warehouse, and writes the site."""

from __future__ import annotations

from prefect import flow

from flows.finish import finish
from instruments.summary import RunSummary
from tasks.prefect.given import worker_settings
from tasks.prefect.server import ended


@flow(name="report", flow_run_name="report")
def report() -> RunSummary:
    """Land what workers have written so far, publish, and write the site."""
    settings = worker_settings()
    summary = RunSummary()
    finish(summary, (), settings, has_answers=True)
    return ended(summary, summary.holes)
