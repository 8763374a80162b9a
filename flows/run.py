"""What monthly runs, back-fills and the demo have in common; called inside a flow."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from core import progress
from core.settings import Settings
from crawlers.manifest import lack_of
from flows.score import score
from models.catalogue import find_model
from tasks.canary import run_canary
from tasks.crawling import crawl_month
from tasks.fan_out import Hole, fan_out
from tasks.planning import Request
from tasks.reporting import write_report


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
        state = f"partial, {len(self.holes)} holes" if self.holes else "complete"
        partitions = f"{self.partitions} partitions"
        if self.partial:
            partitions += f" ({len(self.partial)} of them partial)"
        return f"{state}: {partitions}, {self.cells} cells, report {self.report}"


def run_months(request: Request, settings: Settings) -> RunSummary:
    """Crawl, score, land, publish and report. What is done already is skipped."""
    summary = RunSummary()
    crawl_months(summary, request, settings)
    score_models(summary, request, settings)
    report_on(summary, settings)
    return summary


def crawl_months(summary: RunSummary, request: Request, settings: Settings) -> None:
    """Seal every partition; one that fails is a hole and its neighbours go on.

    One month after the other: a month is compared with those of its source that are sealed, so
    which they are must not depend on how fast a site answers.
    """
    partitions, done = request.partitions(), 0
    for month in request.months:
        calls = [
            (f"crawl {source} {month}", {"source": source, "month": month, "settings": settings})
            for source, each in partitions
            if each == month
        ]
        seals = summary.keep_holes(fan_out(crawl_month, calls, step=None))
        summary.partitions += len(seals)
        lacks = ((seal.partition, lack_of(seal)) for seal in seals)
        summary.partial += [f"{partition}: {lack}" for partition, lack in lacks if lack]
        done += len(calls)
        progress.report("crawl", done, len(partitions))


def score_models(summary: RunSummary, request: Request, settings: Settings) -> None:
    """One flow run a model, so that its weights are loaded once."""
    check_numerics(summary, request, settings)
    for model in request.models:
        outcome = score(
            model=model,
            sources=list(request.sources),
            first=str(request.months[0]),
            last=str(request.months[-1]),
            settings=settings,
        )
        summary.cells += outcome.landed
        summary.holes += outcome.holes


def check_numerics(summary: RunSummary, request: Request, settings: Settings) -> None:
    """See that models are computed as ever; a drift is a hole. Compressors have no such doubts."""
    if all(find_model(model, settings).kind == "control" for model in request.models):
        return
    calls = [("canary", {"settings": settings})]
    for run in summary.keep_holes(fan_out(run_canary, calls, step="canary")):
        if not run.is_well:
            summary.holes.append(Hole("canary", str(run)))


def report_on(summary: RunSummary, settings: Settings) -> None:
    """Write the page; a run that published nothing has none."""
    calls = [("report", {"settings": settings})]
    for address in summary.keep_holes(fan_out(write_report, calls, step="report")):
        summary.report = str(address)
