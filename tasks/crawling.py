"""The task that seals one month of one source."""

from __future__ import annotations

from typing import Any

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.corpus import Seal
from core.errors import SourceUnavailable
from core.month import Month
from core.settings import Settings
from core.storage import Store
from crawlers.crawl import crawl_partition


async def may_pass(_task: Any, _run: Any, state: Any) -> bool:
    """Retry only what may be well a moment later."""
    failure = await state.aresult(raise_on_failure=False)
    return isinstance(failure, SourceUnavailable)


# Short pauses: the fetcher has already retried each request for minutes.
@task(
    task_run_name="crawl {source} {month}",
    retries=2,
    retry_delay_seconds=[10, 60],
    retry_condition_fn=may_pass,
    cache_policy=NO_CACHE,
    persist_result=False,
)
def crawl_month(source: str, month: Month, settings: Settings) -> Seal:
    """Seal one partition; one that is sealed already is left alone."""
    return crawl_partition(source, month, Store(settings.home), settings)
