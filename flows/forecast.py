"""The flow of forecasts: crawl questions, have models answer them, write the report."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from prefect import flow
from prefect.runtime import flow_run

from core.month import Month, month_range
from core.run_record import RunRecord
from core.settings import Settings
from core.storage.store import Store
from flows.dispatch import cancel_run
from flows.instrument import (
    InstrumentSummary,
    ask_for_run,
    ask_models,
    publish_and_report,
    run_model,
)
from flows.run import month_due
from instruments.forecasts import answering_models, begin_spending, plan_answers
from instruments.planning import plan_question_crawl
from instruments.running.run_options import (
    NO_ANSWER_OPTIONS,
    AnswerOptions,
    AnswerProtocolName,
    MonthName,
)
from instruments.running.stopping import stop_with_flow
from tasks.cells import answer_month
from tasks.prefect.fan_out import fan_out
from tasks.prefect.server import ended, run_log
from tasks.prefect.storage_keys import worker_settings
from tasks.prefect.tracing import traced
from tasks.questions import add_tokens, crawl_question_source
from tasks.reporting import write_report


def _name() -> str:
    given = flow_run.parameters
    asked = f"answers of {', '.join(given['models'] or ())} in " if given["run"] else ""
    return f"{asked}forecast {given['first'] or month_due()}"


@flow(name="forecast", on_cancellation=[cancel_run], flow_run_name=_name)
@traced("forecast")
def forecast(  # noqa: PLR0913 - fields of the form of the deployment
    first: MonthName | None = None,
    last: MonthName | None = None,
    sources: list[str] | None = None,
    models: list[str] | None = None,
    protocol: AnswerProtocolName | None = None,
    run: str | None = None,
    options: AnswerOptions = NO_ANSWER_OPTIONS,
) -> InstrumentSummary:
    """Have models answer the questions resolved in some months, and publish the answers.

    Args:
        first: first month of resolution, YYYY-MM; default: the last month that had ended at the
            scheduled start of this run (UTC).
        last: last month of resolution, YYYY-MM, inclusive; default: ``first``.
        sources: sources of questions; default: all sources that permissions and tokens allow.
        models: names of models; default: the setting ``models``, without compressors.
        protocol: name of the answer protocol; default: the setting ``answer_protocol``.
        run: name of the run that this one asks models for: it only asks, and stores the outcome.
        options: what differs from the worker's settings.
    """
    settings = options.applied_to(worker_settings())
    begin = Month(first) if first else month_due()
    months = list(month_range(begin, Month(last) if last else begin))
    summary, chosen = InstrumentSummary(), models or answering_models(settings)

    def ask(model: str, summary: InstrumentSummary) -> None:
        plan = partial(plan_answers, model, protocol, sources, months, settings)
        run_model("answer", model, plan, answer_month, settings, summary)

    if run is None:
        crawl_questions_of(sources, months, settings, summary)
    begin_spending(settings)
    if run is not None:
        ask_for_run("answer", chosen, ask, RunRecord(Store(settings.home), run), summary)
        return ended(summary, summary.holes)
    given = {
        "first": str(months[0]), "last": str(months[-1]), "sources": sources,
        "protocol": protocol, "options": options.given(),
    }  # fmt: skip
    ask_models("answer", chosen, ask, settings, summary, given)
    publish_and_report(write_report, settings, summary)
    return ended(summary, summary.holes)


def crawl_questions_of(
    sources: Sequence[str] | None,
    months: list[Month],
    settings: Settings,
    summary: InstrumentSummary,
) -> None:
    """Crawl the questions of each source; ``summary`` lists failed sources as holes."""
    plan, left_out = plan_question_crawl(sources, months, settings, add_tokens)
    for why in left_out:
        run_log().warning("left out: %s", why)
    calls = [
        (f"questions {source}", {"source": source, "months": own, "settings": settings})
        for source, own in plan.items()
    ]
    with stop_with_flow():
        for source, seals in zip(plan, fan_out(crawl_question_source, calls, "crawl"), strict=True):
            if not summary.keep_holes([seals]):
                continue
            summary.months += len(seals)
            if partial := [str(seal.month) for seal in seals if seal.is_partial]:
                summary.holes.append(f"questions {source}: partial: {', '.join(partial)}")
