"""The monthly run for a range of months."""

from __future__ import annotations

from typing import cast

from prefect import flow

from core.month import Month, month_range
from core.settings import Settings
from flows.dispatch import cancel_run
from flows.dry_run import announce_dry_run
from flows.run import RunSummary, goes_on, run_months
from tasks.planning import check_request
from tasks.storage_keys import worker_settings
from tasks.tracing import traced


@flow(name="backfill", on_cancellation=[cancel_run], flow_run_name="backfill {first} to {last}")
@traced("run")
def backfill(
    first: str,
    last: str,
    sources: list[str] | None = None,
    models: list[str] | None = None,
    dry_run: bool = False,
    settings: Settings | None = None,
) -> RunSummary:
    """Do the monthly run for every month from ``first`` to ``last`` (YYYY-MM, included).

    Each model is loaded once for all months. A killed back-fill goes on where it was. A dry run
    only says what it would do and what that would take: as the state's message and an artifact.
    """
    settings = settings or worker_settings()
    months = list(month_range(Month(first), Month(last)))
    request = check_request(months, sources, models, settings)
    if dry_run:
        goes_on()  # unless it has crashed too often: a model may be too large for this machine
        return cast(RunSummary, announce_dry_run(request, settings))
    return run_months("backfill", request, settings)
