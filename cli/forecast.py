"""Commands `tidemark forecast`: crawl questions, have models answer them, write the report."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from cli.terminal.console import do_each, err, fail_with, out, progress_bars
from cli.terminal.options import (
    FirstMonth,
    GivenMonth,
    LastMonth,
    ModelNames,
    Sources,
    month_window,
    settings_for_tasks,
)
from core.errors import UsageError
from core.month import Month
from core.progress import counted

if TYPE_CHECKING:
    from core.corpus.questions import QuestionSeal

forecast_app = typer.Typer(
    help="Crawl forecasting questions, have models answer them, report.", no_args_is_help=True
)


@forecast_app.command("crawl")
def forecast_crawl(
    context: typer.Context,
    source: Sources = None,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    replace: Annotated[
        bool, Option("--replace", help="Crawl again, and replace questions that differ.")
    ] = False,
) -> None:
    """Crawl the questions that sites resolved in some months; default: the last complete month.

    A source is skipped if it needs a permission (`tidemark sources permit`) or a token that is
    missing. If --source names such a source, the command fails.
    """
    settings = settings_for_tasks(context)
    from crawlers.questions.plan import plan_question_crawl
    from tasks.crawling import add_tokens, crawl_questions_claimed

    months = month_window(month, first, last) or [Month.last_complete()]
    plan, left_out = plan_question_crawl(source, months, settings, add_tokens)
    for why in left_out:
        err.print(f"left out: {why}", soft_wrap=True)

    def crawl_source(name: str) -> None:
        print_seals(crawl_questions_claimed(name, plan[name], settings, replace=replace))

    fail_with(do_each("crawl", {name: partial(crawl_source, name) for name in plan}))


def print_seals(seals: list[QuestionSeal]) -> None:
    """Print the number of questions of each sealed month, and whether it is partial."""
    for seal in seals:
        lack = " (partial)" if seal.is_partial else ""
        out.print(f"{seal}: {counted(seal.num_questions, 'question')}{lack}", soft_wrap=True)


@forecast_app.command("answer")
def forecast_answer(
    context: typer.Context,
    model: ModelNames = None,
    source: Sources = None,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    protocol: Annotated[
        list[str] | None,
        Option(
            "--protocol",
            "-p",
            help="Such as letter, text, text-byte or letter-rotated-chat; repeat for several. "
            "Default: TIDEMARK_ANSWER_PROTOCOL; for models behind an API: generate.",
            metavar="NAME",
        ),
    ] = None,
) -> None:
    """Have models answer the sealed questions, land the answers and publish the warehouse.

    Answered questions are not asked again. --month is the month of resolution (default: all).
    """
    settings = settings_for_tasks(context)
    from instruments.forecasts import answer_and_land, answering_models, spent_by

    months = month_window(month, first, last)
    models = model or answering_models(settings)
    if not models:
        raise UsageError(
            "no model that can answer: name one with --model, in models.yaml or in TIDEMARK_MODELS"
        )
    with progress_bars():
        answered, landed, failures = answer_and_land(
            settings, models, protocol or [None], source, months
        )
    out.print(f"{counted(answered, 'question')} answered, {counted(landed, 'cell')} landed")
    for name, spent in spent_by(models, settings).items():
        out.print(f"{name} has taken so far: {spent}", soft_wrap=True)
    fail_with(failures)


@forecast_app.command("report")
def forecast_report(context: typer.Context) -> None:
    """Write the report from the published snapshot, and print the address of its forecasts."""
    settings = settings_for_tasks(context)
    from reports.site.build import page_of, write_site

    out.print(f"report    {page_of(write_site(settings), 'forecasts.html')}", soft_wrap=True)
