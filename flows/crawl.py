"""The flow that crawls the months of one source, one after the other."""

from __future__ import annotations

from collections.abc import Iterable

from prefect import flow

from core import progress
from core.corpus.partition import Partition, Seal, read_seal
from core.errors import TidemarkError
from core.month import Period, month_range
from core.periods import parse_period
from core.run_record import Outcome, RunRecord
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.manifest import lack_of
from instruments.crawling import crawl_source
from instruments.planning import plan_crawl
from instruments.runner import Failure
from instruments.running.run_options import NO_OPTIONS, PeriodName, RunOptions
from instruments.running.stopping import stop_with_flow
from tasks.crawling import crawl_month
from tasks.prefect.events import tell_given_up
from tasks.prefect.fan_out import fan_out
from tasks.prefect.server import ended
from tasks.prefect.storage_keys import worker_settings
from tasks.prefect.tracing import traced


@flow(name="crawl", flow_run_name="crawl {source} from {first}")
@traced("crawl")
def crawl(
    source: str,
    first: PeriodName,
    last: PeriodName | None = None,
    run: str | None = None,
    options: RunOptions = NO_OPTIONS,
) -> Outcome:
    """Crawl and seal months of a source. A failed month becomes a hole (missing work).

    Args:
        source: name of the source.
        first: the first month, YYYY-MM, or period, such as 2024-03a of a source of half-months.
        last: the last month or period, inclusive; default: ``first``.
        run: name of the run that this crawl belongs to; its record has the options, and stores
            the outcome.
        options: what differs from the worker's settings.
    """
    settings = options.applied_to(worker_settings())
    record = RunRecord(Store(settings.home), run) if run else None
    if record:
        settings = settings.model_copy(update=record.request().options)
    months = list(month_range(parse_period(first), parse_period(last or first)))
    outcome = crawl_in_order(source, months, settings)
    if record:
        record.settle("crawl", source, outcome)
    return ended(outcome, outcome.holes)


def crawl_in_order(source: str, months: list[Period], settings: Settings) -> Outcome:
    """Crawl months one by one, as tasks; see ``crawl_source``."""
    months = [month for _, month in plan_crawl([source], months)[0]]
    results = []
    with stop_with_flow():
        work = crawl_source(source, months, settings, crawl_as_task)
        for month, result in zip(months, work, strict=True):
            tell(source, month, result)
            results.append(result)
            num_failed = sum(isinstance(each, Failure) for each in results)
            num_done = len(results) - num_failed
            progress.report(f"crawl {source}", num_done, len(months), num_failed)
    return crawled(results)


def crawl_as_task(source: str, month: Period, settings: Settings) -> Seal | Failure:
    """Crawl and seal one month as a task run."""
    given = {"source": source, "month": month, "settings": settings}
    result: Seal | Failure
    [result] = fan_out(crawl_month, [(f"crawl {source} {month}", given)], step=None)
    return result


def find_sealed(source: str, months: list[Period], store: Store) -> Outcome | None:
    """Return the outcome of a source whose months are sealed and lack nothing; else None."""
    try:
        partitions = plan_crawl([source], months)[0]
    except TidemarkError:  # the flow ``crawl`` reports it
        return None
    seals = [read_seal(store, Partition(*each)) for each in partitions]
    done = [seal for seal in seals if seal is not None and not seal.is_partial]
    return crawled(done) if len(done) == len(seals) else None


def crawled(results: Iterable[Seal | Failure]) -> Outcome:
    """Return the outcome of a source from the results of its months."""
    results = list(results)
    seals = [result for result in results if isinstance(result, Seal)]
    return Outcome(
        done=len(seals),
        holes=tuple(str(result) for result in results if isinstance(result, Failure)),
        partial=tuple(f"{seal.partition}: {lack_of(seal)}" for seal in seals if seal.is_partial),
    )


def tell(source: str, month: Period, result: Seal | Failure) -> None:
    """Send an event if the crawl of a month failed; ``crawl_month`` reports sealed months."""
    if isinstance(result, Failure):
        tell_given_up(Partition(source, month), result.why)
