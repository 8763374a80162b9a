"""Crawling of many months of many sources in one process, with one thread per source.

Sources wait for their sites, not for the processor. The months of a source are crawled in order,
since each month is compared with the earlier sealed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import copy_context
from itertools import chain
from typing import Any

from core import progress
from core.corpus.partition import Partition, Seal, read_seal
from core.errors import SourceUnavailable
from core.month import Period
from core.settings import Settings
from core.storage.claims import hold_alone
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from crawlers.web.pacing import CircuitOpen, Turnstile
from instruments.planning import Request
from instruments.runner import Failure, failure_of
from instruments.running.retries import retrying
from instruments.running.stopping import go_on, stop_with_flow
from instruments.summary import RunSummary

CrawlMonth = Callable[[str, Period, Settings], Seal | Failure]
# Names of the errors after which the other months of a source are not tried.
_UNREACHED = {kind.__name__ for kind in (SourceUnavailable, CircuitOpen)}


@contextmanager
def stoppable(_host: str) -> Iterator[None]:
    """Let requests to a host pass until the run is ending; then raise ``Stopped``."""
    go_on()
    yield


def crawl_claimed(
    source: str, month: Period, settings: Settings, turnstile: Turnstile = stoppable, **choices: Any
) -> Seal:
    """Call ``crawl_partition`` under a claim; if another process holds the claim, wait for it."""
    store = Store(settings.home, settings.scratch)
    with hold_alone(store, Partition(source, month).path, go_on):
        go_on()
        return crawl_partition(source, month, store, settings, turnstile=turnstile, **choices)


def crawl_patiently(
    source: str, month: Period, settings: Settings, crawl: CrawlMonth = crawl_claimed
) -> Seal | Failure:
    """Crawl and seal a month; retry after transient errors."""
    return retrying(f"crawl {source} {month}", lambda: crawl(source, month, settings))


def crawl_source(
    source: str, months: Sequence[Period], settings: Settings, crawl: CrawlMonth = crawl_patiently
) -> Iterator[Seal | Failure]:
    """Crawl months of a source, and yield the result of each.

    If the site does not answer for one month, the later months are not tried, because each would
    take as long to fail. For those that are sealed, the seal is yielded.
    """
    outage: Failure | None = None  # why the site was given up
    for month in months:
        go_on()
        what = f"crawl {source} {month}"
        if outage is not None:
            seal = read_seal(Store(settings.home), Partition(source, month))
            yield seal or Failure(what, f"not tried, since {outage}", error=outage.error)
            continue
        try:
            result = crawl(source, month, settings)
        except Exception as error:  # noqa: BLE001 - other sources and months go on after any error
            result = failure_of(what, error)
        if isinstance(result, Failure) and result.error in _UNREACHED:
            outage = result
        yield result


def crawl_all(
    request: Request, settings: Settings, crawl: CrawlMonth = crawl_patiently
) -> RunSummary:
    """Crawl all months of a request; return the counts, and the failures as holes."""
    partitions = request.partitions()
    months: dict[str, list[Period]] = {source: [] for source in request.sources}
    for source, month in partitions:
        months[source].append(month)
    results: dict[str, list[Seal | Failure]] = {source: [] for source in months}

    def crawl_months(source: str) -> None:
        """Crawl the months of one source in order, and report the progress of all sources."""
        for result in crawl_source(source, months[source], settings, crawl):
            results[source].append(result)
            so_far = chain.from_iterable(results.values())
            num_sealed = sum(isinstance(each, Seal) for each in so_far)
            progress.report("crawl", num_sealed, len(partitions))

    # If a signal ends the inner block, the threads stop before their next request.
    with ThreadPoolExecutor(max(1, len(months)), "crawl") as pool, stop_with_flow():
        # Each thread gets a copy of the context, so that a flow run is known in it.
        futures = [pool.submit(copy_context().run, crawl_months, source) for source in months]
        for future in as_completed(futures):
            future.result()  # raises what ends the process
    summary = RunSummary()
    for result in chain.from_iterable(results.values()):
        summary.add(result)
    return summary
