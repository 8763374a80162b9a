"""The monthly run for a range of months."""

from __future__ import annotations

from prefect import flow

from core.month import Month, month_range
from core.settings import Settings
from flows.run import RunSummary, run_months
from tasks.planning import check_request
from tasks.storage_keys import worker_settings


@flow(name="backfill", flow_run_name="backfill {first} to {last}")
def backfill(
    first: str,
    last: str,
    sources: list[str] | None = None,
    models: list[str] | None = None,
    settings: Settings | None = None,
) -> RunSummary:
    """Do the monthly run for every month from ``first`` to ``last`` (YYYY-MM, included).

    Each model is loaded once for all months. A killed back-fill goes on where it was.
    """
    settings = settings or worker_settings()
    months = list(month_range(Month(first), Month(last)))
    return run_months(check_request(months, sources, models, settings), settings)
