"""Whole runs in one process: crawl, score, land, publish, report."""

from __future__ import annotations

from core.errors import TidemarkError
from core.settings import Settings
from instruments.canary import check_canary
from instruments.crawling import CrawlMonth, crawl_all, crawl_patiently
from instruments.driver import Summary, land, work
from instruments.landing import publish_alone
from instruments.losses import scoring_request
from instruments.planning import Request
from instruments.runner import Failure, failure_of
from instruments.summary import RunSummary
from models.catalogue import ModelEntry
from reports.site.build import find_current_site, write_site
from warehouse.database.repair import require_known_databases
from warehouse.read.publish import is_current


def run(
    request: Request,
    settings: Settings,
    crawl: CrawlMonth = crawl_patiently,
    retry_failed: bool = False,
) -> RunSummary:
    """Crawl, score, land, publish and report; failures become holes of the summary.

    Raises:
        NewerVersion: a later version wrote the warehouse here; nothing was done.
    """
    require_known_databases(settings)
    summary = crawl_all(request, settings, crawl)
    scored = score(request, settings, retry_failed)
    finish(summary, scored, settings)
    return summary


def score(request: Request, settings: Settings, retry_failed: bool = False) -> Summary:
    """Score the sealed partitions of a request with each model; check the canary afterwards."""
    sources = list(request.sources)
    months = list(request.months)
    asked = scoring_request(
        request.models, sources, months, [settings.protocol], settings,
        retry_failed=retry_failed, ends_on=(),
    )  # fmt: skip
    summary = work(asked, settings)
    summary.failures += check_numerics(summary.computed, settings)
    return summary


def check_numerics(models: list[ModelEntry], settings: Settings) -> list[Failure]:
    """Check the canary if any of the models, which have computed cells, is not a compressor."""
    if all(model.backend.is_control for model in models):
        return []
    try:
        record = check_canary(settings)
    except TidemarkError as error:
        return [failure_of("canary", error)]
    return [] if record.is_well else [Failure("canary", str(record))]


def finish(summary: RunSummary, done: Summary, settings: Settings) -> None:
    """Land the cells, publish new rows, and write the site; failures become holes."""
    land(done, settings)
    summary.cells += done.num_landed
    summary.holes += [_hole(each) for each in done.failures]
    try:
        if not is_current(settings):
            publish_alone(settings)
        summary.report = find_current_site(settings) or write_site(settings)
    except TidemarkError as error:
        summary.holes.append(f"report: {error}")


def _hole(failure: Failure) -> str:
    """Return a failure as text; the names of cells get their step "score" as a prefix."""
    is_step = failure.what.partition(" ")[0] in ("canary", "land")
    return str(failure) if is_step else f"score {failure}"
