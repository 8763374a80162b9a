"""Crawl the months of one source, one after the other."""

from __future__ import annotations

import datetime as dt

from prefect import flow

from core.month import Month, month_range
from core.run_record import Outcome, RunRecord
from core.settings import Settings
from core.storage import Store
from flows.stages import crawled, end_part, ended, tell
from tasks.crawling import crawl_month
from tasks.fan_out import fan_out
from tasks.planning import plan_crawl
from tasks.stopping import stop_with_flow
from tasks.storage_keys import worker_settings
from tasks.tracing import traced


@flow(name="crawl", flow_run_name="crawl {source} from {first}")
@traced("crawl")
def crawl(
    source: str,
    first: str,
    last: str | None = None,
    run: str | None = None,
    settings: Settings | None = None,
) -> Outcome:
    """Seal the months of a source that it has; one that fails is a hole, and the others go on.

    Args:
        source: name of a crawler.
        first: YYYY-MM.
        last: YYYY-MM, included; default: ``first``.
        run: the run that this is a part of.
        settings: default: read from the environment of the worker.
    """
    settings = settings or worker_settings()
    months = list(month_range(Month(first), Month(last or first)))
    outcome = crawl_in_order(source, months, settings)
    if run:
        end_part(RunRecord(Store(settings.home), run), "crawl", source, outcome)
    return ended(outcome, outcome.holes)


def crawl_in_order(source: str, months: list[Month], settings: Settings) -> Outcome:
    """Crawl one month after the other: each is compared with those that are sealed before it."""
    months = [month for _, month in plan_crawl([source], months)[0]]
    calls = [
        (f"crawl {source} {month}", {"source": source, "month": month, "settings": settings})
        for month in months
    ]
    results, since = [], dt.datetime.now(dt.UTC)
    with stop_with_flow():
        work = fan_out(crawl_month, calls, step=f"crawl {source}", in_flight=1)
        for month, result in zip(months, work, strict=True):
            tell(source, month, result, since)
            results.append(result)
    return crawled(results)
