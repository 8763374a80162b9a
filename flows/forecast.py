"""The second instrument: crawl forecasting questions, have models answer them, report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from prefect import flow

from core.errors import TidemarkError
from core.month import Month, month_range
from core.settings import Settings
from flows.stages import ended
from tasks.answering import (
    answer_month,
    answering_models,
    begin_spending,
    land_model_answers,
    plan_answers,
)
from tasks.fan_out import Hole, fan_out
from tasks.landing import publish_warehouse
from tasks.questions import crawl_question_source, plan_question_crawl
from tasks.reporting import write_forecasts
from tasks.server import run_log
from tasks.stopping import stop_with_flow
from tasks.storage_keys import worker_settings
from tasks.tracing import traced


@dataclass
class ForecastSummary:
    """What a run did: months sealed, questions answered, cells landed; and what it lacks."""

    months: int = 0
    answers: int = 0
    landed: int = 0
    report: str | None = None
    holes: list[Hole] = field(default_factory=list)


@flow(name="forecast", flow_run_name="forecast")
@traced("forecast")
def forecast(
    first: str | None = None,
    last: str | None = None,
    sources: list[str] | None = None,
    models: list[str] | None = None,
    protocol: str | None = None,
    settings: Settings | None = None,
) -> ForecastSummary:
    """Ask models the questions that were resolved in some months, and publish what came of it.

    Args:
        first: YYYY-MM, month of resolution; default: the last complete month (UTC).
        last: YYYY-MM, included; default: ``first``.
        sources: of questions; default: all that may be crawled.
        models: default: the ``models`` setting, without compressors.
        protocol: of answering; default: the ``answer_protocol`` setting.
        settings: default: read from the environment of the worker.
    """
    settings = settings or worker_settings()
    begin = Month(first) if first else Month.last_complete()
    months = list(month_range(begin, Month(last) if last else begin))
    summary = ForecastSummary()
    crawl_questions_of(sources, months, settings, summary)
    begin_spending(settings)
    for model in models or answering_models(settings):
        answer_with(model, protocol, sources, months, settings, summary)
    finish(settings, summary)
    return ended(summary, summary.holes)


def crawl_questions_of(
    sources: Sequence[str] | None,
    months: list[Month],
    settings: Settings,
    summary: ForecastSummary,
) -> None:
    """Seal the months; a source that fails is a hole and the others go on."""
    plan, left_out = plan_question_crawl(sources, months, settings)
    for why in left_out:
        run_log().warning("left out: %s", why)
    calls = [
        (f"questions {source}", {"source": source, "months": own, "settings": settings})
        for source, own in plan.items()
    ]
    with stop_with_flow():
        for source, seals in zip(plan, fan_out(crawl_question_source, calls, "crawl"), strict=True):
            if isinstance(seals, Hole):
                summary.holes.append(seals)
                continue
            summary.months += len(seals)
            partial = [str(seal.month) for seal in seals if seal.is_partial]
            if partial:
                summary.holes.append(Hole(f"questions {source}", f"partial: {', '.join(partial)}"))


def answer_with(
    model: str,
    protocol: str | None,
    sources: list[str] | None,
    months: list[Month],
    settings: Settings,
    summary: ForecastSummary,
) -> None:
    """Have one model answer and land what it has answered; what goes wrong is a hole."""
    try:
        plan = plan_answers(model, protocol, sources, months, settings)
    except TidemarkError as error:
        summary.holes.append(Hole(f"answer {model}", str(error)))
        return
    calls = [
        (f"answer {cell}", {"entry": plan.entry, "cell": cell, "seal": seal, "settings": settings})
        for cell, seal in plan.pending
    ]
    with stop_with_flow():
        results = fan_out(answer_month, calls, step=f"answer {model}", in_flight=1)
        for (what, _), result in zip(calls, results, strict=True):
            if isinstance(result, Hole):
                summary.holes.append(result)
                continue
            summary.answers += result.num_answers
            if result.lack is not None:
                summary.holes.append(Hole(what, result.lack))
    landing = {
        "model": model,
        "protocol": protocol,
        "sources": sources,
        "months": months,
        "settings": settings,
    }
    for landed in fan_out(land_model_answers, [(f"land {model}", landing)], step=None):
        if isinstance(landed, Hole):
            summary.holes.append(landed)
        else:
            summary.landed += landed


def finish(settings: Settings, summary: ForecastSummary) -> None:
    """Publish, and write the page of forecasts."""
    for work in (publish_warehouse, write_forecasts):
        for result in fan_out(work, [(str(work.name), {"settings": settings})], step=None):
            if isinstance(result, Hole):
                summary.holes.append(result)
            elif work is write_forecasts:
                summary.report = str(result)
