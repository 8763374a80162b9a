"""The back-fill: the work of the monthly run for a range of months."""

from __future__ import annotations

from prefect import flow

from core.month import month_range
from core.periods import parse_period
from flows.begin import begin_run
from flows.run import run_months
from instruments.planning import check_request
from instruments.running.run_options import PeriodName, RunOptions
from instruments.summary import RunSummary
from tasks.prefect.given import worker_settings


@flow(name="backfill", flow_run_name="backfill {first} to {last}")
def backfill(
    first: PeriodName,
    last: PeriodName,
    sources: list[str] | None = None,
    models: list[str] | None = None,
    options: RunOptions = RunOptions(),
) -> RunSummary:
    """Do the monthly run for all months from ``first`` to ``last`` (inclusive).

    Each model is loaded once for all months. Workers look at all models: cells of a former version
    of the scorer are computed again.

    Args:
        first: the first month, YYYY-MM, or period, such as 2024-03a.
        last: the last month or period, inclusive.
        sources: names of sources; default: all sources.
        models: names of models; default: the setting ``models``.
        options: what differs from the worker's settings.
    """
    settings = options.applied_to(worker_settings())
    months = list(month_range(parse_period(first), parse_period(last)))
    request = check_request(months, sources, models, settings)
    return run_months(begin_run(request.left_out), request, settings, options, always=True)
