"""The flow of forecasts: crawl questions, have models answer them, write the report."""

from __future__ import annotations

from typing import Annotated

from prefect import flow, task
from prefect.runtime import flow_run
from pydantic import Field

from core.corpus.questions import QuestionSeal
from core.month import Month, month_range
from core.settings import Settings
from crawlers.questions.plan import plan_question_crawl
from extras.scheduled_questions.asking import ask_models
from flows.begin import begin_run
from instruments.forecasts import answering_models
from instruments.runner import Failure
from instruments.running.run_options import AnswerOptions, MonthName
from instruments.running.stopping import stop_with_flow
from instruments.summary import RunSummary
from models.options.protocols import list_answer_protocols
from tasks.crawling import add_tokens, crawl_questions_claimed
from tasks.prefect.fan_out import run_tasks
from tasks.prefect.given import worker_settings
from tasks.prefect.observe import observe
from tasks.prefect.retries import OF_CRAWLS

AnswerProtocolName = Annotated[
    str, Field(json_schema_extra={"enum": [each.name for each in list_answer_protocols()]})
]


def month_due() -> Month:
    """Return the last month that had ended at the scheduled start of this flow run (UTC)."""
    return Month.last_complete(flow_run.scheduled_start_time)


def _name() -> str:
    return f"forecast {flow_run.parameters['first'] or month_due()}"


@flow(name="forecast", flow_run_name=_name)
def forecast(
    first: MonthName | None = None,
    last: MonthName | None = None,
    sources: list[str] | None = None,
    models: list[str] | None = None,
    protocol: AnswerProtocolName | None = None,
    options: AnswerOptions = AnswerOptions(),
) -> RunSummary:
    """Have models answer the questions resolved in some months, and publish the answers.

    Args:
        first: first month of resolution, YYYY-MM; default: the last month that had ended at the
            scheduled start of this run (UTC).
        last: last month of resolution, YYYY-MM, inclusive; default: ``first``.
        sources: sources of questions; default: all sources that permissions and tokens allow.
        models: names of models; default: the setting ``models``, without compressors.
        protocol: name of the answer protocol; default: the setting ``answer_protocol``.
        options: what differs from the worker's settings.
    """
    settings = options.applied_to(worker_settings())
    begin = Month(first) if first else month_due()
    months = list(month_range(begin, Month(last) if last else begin))
    plan, left_out = plan_question_crawl(sources, months, settings, add_tokens)
    run = begin_run(left_out, first=str(begin))
    summary = RunSummary()
    crawl_questions(plan, settings, summary)
    given = {
        "first": str(months[0]), "last": str(months[-1]), "sources": sources,
        "protocol": protocol, "options": options.given(),
    }  # fmt: skip
    return ask_models("answer", run, models or answering_models(settings), given, settings, summary)


def crawl_questions(plan: dict[str, list[Month]], settings: Settings, summary: RunSummary) -> None:
    """Crawl the questions of each source; failed sources become holes of ``summary``."""
    calls = [
        (f"questions {source}", {"source": source, "months": months, "settings": settings})
        for source, months in plan.items()
    ]
    with stop_with_flow():
        results = dict(run_tasks(crawl_question_source, calls))
    for number, source in enumerate(plan):
        seals = results[number]
        if isinstance(seals, Failure):
            summary.holes.append(str(seals))
            continue
        summary.partitions += len(seals)
        partial = [str(seal.month) for seal in seals if seal.is_partial]
        if partial:
            summary.holes.append(f"questions {source}: partial: {', '.join(partial)}")


@task(task_run_name="crawl questions of {source}", **OF_CRAWLS)
def crawl_question_source(
    source: str, months: list[Month], settings: Settings
) -> list[QuestionSeal]:
    """Crawl and seal the questions of a source, by month; skip sealed months."""
    observe()
    return crawl_questions_claimed(source, months, settings)
