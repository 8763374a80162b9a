"""The task that crawls and seals the forecasting questions of one source."""

from __future__ import annotations

from typing import Any

from prefect import task

from core.corpus.questions import QuestionSeal
from core.month import Month
from core.settings import Settings
from core.storage.claims import hold_alone
from core.storage.store import Store
from crawlers.questions.contract import load_question_crawler
from crawlers.questions.crawl import crawl_questions
from instruments.running.stopping import go_on
from tasks.prefect.observe import observe
from tasks.prefect.retries import OF_CRAWLS
from tasks.prefect.sites import take_slot, with_tokens


def add_tokens(source: str, settings: Settings) -> Settings:
    """Return settings with the tokens of a source from the Prefect server, if configured."""
    return with_tokens(load_question_crawler(source).INFO.sites, settings)


def crawl(
    source: str, months: list[Month], settings: Settings, **choices: Any
) -> list[QuestionSeal]:
    """Call ``crawl_questions`` under a claim, with limits and tokens of the Prefect server."""
    store = Store(settings.home, settings.scratch)
    ready = add_tokens(source, settings)
    with hold_alone(store, f"questions/{source}", go_on):
        go_on()
        return crawl_questions(source, months, store, ready, turnstile=take_slot, **choices)


@task(task_run_name="crawl questions of {source}", **OF_CRAWLS)
def crawl_question_source(
    source: str, months: list[Month], settings: Settings
) -> list[QuestionSeal]:
    """Crawl and seal the questions of a source, by month; skip sealed months."""
    observe()
    return crawl(source, months, settings)
