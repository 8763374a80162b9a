"""Steps that monthly runs, back-fills and the demo share; call them inside a flow."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.runtime import flow_run

from core import progress
from core.corpus.partition import Seal
from core.errors import OrchestrationError
from core.month import Month, Period
from core.run_record import RunRecord, RunRequest, RunResult
from core.settings import Settings
from core.storage.store import Store
from flows.crawl import crawled, tell
from flows.dispatch import ATTEMPTS, Coordinator, records_of
from flows.instrument import Holes
from flows.score import check_numerics, score
from instruments import runs
from instruments.models import expect_model
from instruments.planning import Request, last_period
from instruments.runner import Failure
from instruments.running.run_options import NO_OPTIONS, RunOptions
from tasks.crawling import crawl_month
from tasks.prefect.fan_out import fan_out
from tasks.prefect.server import ended, is_deployed, run_log, wait_for_server
from tasks.prefect.storage_keys import using
from tasks.prefect.tracing import name_of_run
from tasks.reporting import write_report


@dataclass
class RunSummary(runs.RunSummary, Holes):
    """The result of a run, whose failed steps become holes."""


def month_due() -> Month:
    """Return the last month that had ended at the scheduled start of this flow run (UTC)."""
    return Month.last_complete(flow_run.scheduled_start_time)


def period_due(sources: list[str] | None, resume: str | None = None) -> Period:
    """Return the last period of the sources at the scheduled start of this flow run (UTC).

    ``resume`` is the id of the flow run whose scheduled start counts instead.
    """
    if resume is None:
        return last_period(sources, flow_run.scheduled_start_time)
    with get_client(sync_client=True) as client:
        return last_period(sources, client.read_flow_run(UUID(resume)).expected_start_time)


def run_months(
    flow: str,
    request: Request,
    settings: Settings,
    options: RunOptions = NO_OPTIONS,
    resume: str | None = None,
) -> RunSummary:
    """Crawl, score, land, publish and report, inside the flow named ``flow``.

    ``options`` have been applied to ``settings``. ``resume`` is the id of a crashed flow run.
    """
    record = begin_run(flow, request, settings, options, resume)
    if is_deployed():
        summary = summary_of(Coordinator(record, settings).wait())
    else:
        summary = RunSummary()
        crawl_months(summary, request, settings, record)
        with using(settings):
            score_models(summary, request, settings, record)
        report_on(summary, settings)
        record.finish(summary.report, holes_beside(summary, record))
    return ended(summary, summary.holes)


def begin_run(
    flow: str,
    request: Request,
    settings: Settings,
    options: RunOptions = NO_OPTIONS,
    resume: str | None = None,
) -> RunRecord:
    """Store the request of this flow run, and return the record of the run.

    A run that has crashed is continued with its record, by the flow run ``resume`` or by a new one.
    A flow run that is restarted after its end gets a new record, with a number added to the name.

    Raises:
        OrchestrationError: the run has crashed ``ATTEMPTS`` times.
    """
    for why in request.left_out:
        run_log().warning("left out: %s", why)
    store, name = Store(settings.home), name_of_run(flow, resume or flow_run.id)
    records = records_of(name, store)
    if records and resume and records[-1].count_restart() >= ATTEMPTS:
        raise OrchestrationError(
            f"the run {records[-1].run} has crashed {ATTEMPTS} times, see its logs; start another "
            "one, which finds what this one has done"
        )
    if records and (resume or records[-1].result() is None):
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
            options=options.given(),
        )
    )
    return record


def summary_of(result: RunResult) -> RunSummary:
    """Convert the stored result of a run into a summary."""
    facts = result.model_dump(include={"partitions", "cells", "report"})
    return RunSummary(holes=list(result.holes), partial=list(result.partial), **facts)


def holes_beside(summary: RunSummary, record: RunRecord) -> list[str]:
    """Return the holes that belong to no source or model, such as a drift of the canary."""
    parts = [*record.outcomes("crawl").values(), *record.outcomes("score").values()]
    known = {hole for outcome in parts for hole in outcome.holes}
    return [hole for hole in summary.holes if hole not in known]


def crawl_months(
    summary: RunSummary, request: Request, settings: Settings, record: RunRecord | None = None
) -> None:
    """Crawl and seal every partition; a failed partition becomes a hole (missing work).

    Months are crawled one after the other, because each month is compared with the earlier sealed
    months. Otherwise the comparison would depend on the speed of the sites.
    """
    partitions = request.partitions()
    results_of: dict[str, list[Seal | Failure]] = {source: [] for source in request.sources}
    for month in request.months:
        sources = [source for source, each in partitions if each == month]
        calls = [
            (f"crawl {source} {month}", {"source": source, "month": month, "settings": settings})
            for source in sources
        ]
        for source, result in zip(sources, fan_out(crawl_month, calls, step=None), strict=True):
            tell(source, month, result)
            results_of[source].append(result)
        so_far = [each for own in results_of.values() for each in own]
        done = sum(isinstance(each, Seal) for each in so_far)
        progress.report("crawl", done, len(partitions), len(so_far) - done)
    for source, results in results_of.items():
        outcome = crawled(results)
        summary.partitions += outcome.done
        summary.partial += outcome.partial
        summary.keep_holes(results)
        if record is not None:
            record.settle("crawl", source, outcome)


def score_models(
    summary: RunSummary, request: Request, settings: Settings, record: RunRecord | None = None
) -> None:
    """Score each model in a flow run of its own, so that its weights are loaded only once.

    Call this with the settings in use (``using``).
    """
    newly_scored = []
    for model, following in zip(request.models, [*request.models[1:], None], strict=True):
        if following:
            expect_model(following, settings)
        wait_for_server()  # Prefect's client would give up after a few attempts
        outcome = score(
            model=model,
            sources=list(request.sources),
            first=str(request.months[0]),
            last=str(request.months[-1]),
            run=record.run if record else None,
        )
        summary.cells += outcome.landed
        summary.holes += outcome.holes
        newly_scored += [model] * bool(outcome.landed)
    summary.holes += check_numerics(newly_scored, settings)


def report_on(summary: RunSummary, settings: Settings) -> None:
    """Write the site, and store its address in ``summary``; a failure becomes a hole."""
    calls = [("report", {"settings": settings})]
    for address in summary.keep_holes(fan_out(write_report, calls, step="report")):
        summary.report = str(address)
