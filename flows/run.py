"""What monthly runs, back-fills and the demo have in common; called inside a flow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.runtime import flow_run

from core import progress
from core.corpus import Seal
from core.run_record import RunRecord, RunRequest, RunResult
from core.settings import Settings
from core.storage import Store
from flows.dispatch import Coordinator, has_crashed, name_of_run, records_of
from flows.score import check_numerics, score
from flows.stages import crawled, end_part, ended, num_of, tell
from tasks.crawling import crawl_month
from tasks.fan_out import Hole, fan_out
from tasks.planning import Request
from tasks.reporting import write_report
from tasks.server import is_deployed, run_log, wait_for_server


@dataclass
class RunSummary:
    """What a run did; a run with holes is partial, and doing it again fills them.

    A partition that is partial is no hole: what could be had is sealed and scored, and the next
    run asks for the rest.
    """

    partitions: int = 0
    cells: int = 0
    report: str = ""
    holes: list[Hole] = field(default_factory=list)
    partial: list[str] = field(default_factory=list)  # partitions that lack items, and why

    def keep_holes(self, results: Iterable[Any]) -> list[Any]:
        """Take the holes out of a fan-out's results and return the others."""
        results = list(results)
        self.holes += [result for result in results if isinstance(result, Hole)]
        return [result for result in results if not isinstance(result, Hole)]

    def __str__(self) -> str:
        state = f"partial, {num_of(self.holes)}" if self.holes else "complete"
        partitions = f"{self.partitions} partitions"
        if self.partial:
            partitions += f" ({len(self.partial)} of them partial)"
        return f"{state}: {partitions}, {self.cells} cells, report {self.report}"


def run_months(flow: str, request: Request, settings: Settings) -> RunSummary:
    """Crawl, score, land, publish and report. What is done already is skipped.

    Args:
        flow: name of the flow that this is called in.
        request: what to do.
        settings: the data root and more; deployed runs have theirs from their workers.
    """
    record = begin_run(flow, request, settings)
    if is_deployed():
        summary = summary_of(Coordinator(record, settings).wait())
    else:
        summary = RunSummary()
        crawl_months(summary, request, settings, record)
        score_models(summary, request, settings, record)
        report_on(summary, settings)
        record.finish(summary.report, holes_beside(summary, record))
    return ended(summary, summary.holes)


def begin_run(flow: str, request: Request, settings: Settings) -> RunRecord:
    """Keep what the run was asked for that this flow run is.

    One that was killed goes on, and one that has ended meanwhile stays as it is; one that had ended
    before it was started again is done again, under a number.

    Raises:
        OrchestrationError: it has been killed too often.
    """
    has_to_go_on = goes_on()
    for why in request.left_out:
        run_log().warning("left out: %s", why)
    store, name = Store(settings.home), name_of_run(flow, flow_run.id)
    records = records_of(name, store)
    if records and (has_to_go_on or records[-1].result() is None):
        return records[-1]
    record = RunRecord(store, f"{name}-{len(records) + 1}" if records else name)
    record.begin(
        RunRequest(
            run=record.run,
            started_at=dt.datetime.now(dt.UTC),
            months=tuple(map(str, request.months)),
            sources=request.sources,
            models=request.models,
            protocol=settings.protocol,
        )
    )
    return record


def goes_on() -> bool:
    """Whether this flow run was started again because it had crashed.

    Raises:
        OrchestrationError: it has crashed too often to go on.
    """
    if not is_deployed():
        return False
    wait_for_server()
    with get_client(sync_client=True) as client:
        return has_crashed(client, UUID(flow_run.id))


def summary_of(result: RunResult) -> RunSummary:
    """Return what a run did that several processes have done."""
    return RunSummary(
        partitions=result.partitions,
        cells=result.cells,
        report=result.report,
        holes=[Hole(what, why) for what, _, why in (h.partition(": ") for h in result.holes)],
        partial=list(result.partial),
    )


def holes_beside(summary: RunSummary, record: RunRecord) -> list[str]:
    """Return the holes that are no part's, such as a drift of the canary."""
    parts = [*record.outcomes("crawl").values(), *record.outcomes("score").values()]
    known = {hole for outcome in parts for hole in outcome.holes}
    return [str(hole) for hole in summary.holes if str(hole) not in known]


def crawl_months(
    summary: RunSummary, request: Request, settings: Settings, record: RunRecord | None = None
) -> None:
    """Seal every partition; one that fails is a hole and its neighbours go on.

    One month after the other: a month is compared with those of its source that are sealed, so
    which they are must not depend on how fast a site answers.
    """
    partitions, done, since = request.partitions(), 0, dt.datetime.now(dt.UTC)
    results_of: dict[str, list[Seal | Hole]] = {source: [] for source in request.sources}
    for month in request.months:
        sources = [source for source, each in partitions if each == month]
        calls = [
            (f"crawl {source} {month}", {"source": source, "month": month, "settings": settings})
            for source in sources
        ]
        for source, result in zip(sources, fan_out(crawl_month, calls, step=None), strict=True):
            tell(source, month, result, since)
            results_of[source].append(result)
        done += len(calls)
        progress.report("crawl", done, len(partitions))
    for source, results in results_of.items():
        outcome = crawled(results)
        summary.partitions += outcome.done
        summary.partial += outcome.partial
        summary.keep_holes(results)
        if record is not None:
            end_part(record, "crawl", source, outcome)


def score_models(
    summary: RunSummary, request: Request, settings: Settings, record: RunRecord | None = None
) -> None:
    """One flow run a model, so that its weights are loaded once."""
    summary.holes += check_numerics(request.models, settings)
    for model in request.models:
        wait_for_server()  # Prefect itself asks it a few times in a row, and gives up
        outcome = score(
            model=model,
            sources=list(request.sources),
            first=str(request.months[0]),
            last=str(request.months[-1]),
            run=record.run if record else None,
            settings=settings,
        )
        summary.cells += outcome.landed
        summary.holes += outcome.holes


def report_on(summary: RunSummary, settings: Settings) -> None:
    """Write the page; a run that published nothing has none."""
    calls = [("report", {"settings": settings})]
    for address in summary.keep_holes(fan_out(write_report, calls, step="report")):
        summary.report = str(address)
