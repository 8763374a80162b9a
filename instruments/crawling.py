"""Crawling of many months of many sources in one process, a thread a source.

Sources wait for their sites, not for the processor. The months of a source are crawled in order,
since each month is compared with the earlier sealed ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from typing import Any

from core import progress
from core.corpus.partition import Partition, Seal, read_seal
from core.errors import SourceUnavailable, TidemarkError
from core.month import Month, Period
from core.settings import Settings
from core.storage.claims import hold_alone
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from crawlers.crawling.manifest import lack_of
from crawlers.questions.crawl import crawl_questions
from crawlers.web.pacing import CircuitOpen, Turnstile
from instruments.planning import Request
from instruments.runner import Failure, failure_of
from instruments.running.retries import retrying
from instruments.running.stopping import go_on, stop_with_flow

CrawlMonth = Callable[[str, Period, Settings], Seal | Failure]
# Names of the errors after which the other months of a source are not tried.
_UNREACHED = {kind.__name__ for kind in (SourceUnavailable, CircuitOpen)}


@dataclass
class Crawled:
    """The outcome of crawling: number of sealed months, and what is missing, with reasons."""

    num_sealed: int = 0
    partial: list[str] = field(default_factory=list)  # sealed months that lack items
    holes: list[str] = field(default_factory=list)

    def add(self, result: Seal | Failure) -> None:
        """Count the result of one month."""
        if isinstance(result, Failure):
            self.holes.append(str(result))
            return
        self.num_sealed += 1
        if result.is_partial:
            self.partial.append(f"{result.partition}: {lack_of(result)}")


@contextmanager
def stoppable(_host: str) -> Iterator[None]:
    """Let requests to a host pass until the run is ending; then raise ``Stopped``."""
    go_on()
    yield


def crawl_claimed(
    source: str,
    month: Period,
    settings: Settings,
    turnstile: Turnstile = stoppable,
    **choices: Any,
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

    Once the source does not answer for one month, its other months are not tried: each would take
    as long to fail. Months that are sealed stay as they are.
    """
    dead: Failure | None = None
    for month in months:
        go_on()
        what = f"crawl {source} {month}"
        if dead is not None:
            seal = read_seal(Store(settings.home), Partition(source, month))
            yield seal or Failure(what, f"not tried, since {dead}", error=dead.error)
            continue
        try:
            result = crawl(source, month, settings)
        except Exception as error:  # noqa: BLE001 - other sources and months go on after any error
            result = failure_of(what, error)
        if isinstance(result, Failure) and result.error in _UNREACHED:
            dead = result
        yield result


def crawl_all(request: Request, settings: Settings, crawl: CrawlMonth = crawl_patiently) -> Crawled:
    """Crawl all months of a request, and return what was sealed and what is missing."""
    partitions = request.partitions()
    months: dict[str, list[Period]] = {source: [] for source in request.sources}
    for source, month in partitions:
        months[source].append(month)
    crawled = Crawled()
    num_done = 0

    def crawl_months(source: str) -> list[Seal | Failure]:
        nonlocal num_done
        results = []
        for result in crawl_source(source, months[source], settings, crawl):
            results.append(result)
            num_done += not isinstance(result, Failure)
            progress.report("crawl", num_done, len(partitions))
        return results

    # If a signal ends the inner block, the threads stop before their next request.
    with ThreadPoolExecutor(max(1, len(months)), "crawl") as pool, stop_with_flow():
        # Each thread gets a copy of the context, so that a flow run is known in it.
        futures = {
            source: pool.submit(copy_context().run, crawl_months, source) for source in months
        }
        for future in as_completed(futures.values()):
            future.result()  # raises what ends the process
    for future in futures.values():
        for result in future.result():
            crawled.add(result)
    return crawled


def crawl_question_sources(
    sources: Sequence[str], months: Sequence[Month], settings: Settings
) -> list[str]:
    """Crawl the questions of each source; return what failed, with reasons."""
    store = Store(settings.home, settings.scratch)
    failures = []
    for source in sources:
        try:
            crawl_questions(source, list(months), store, settings)
        except TidemarkError as error:
            failures.append(str(failure_of(f"questions {source}", error)))
    return failures
