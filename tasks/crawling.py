"""The task that crawls one month of texts, and functions that crawl texts or questions."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

from prefect import task

from core.corpus.partition import Seal
from core.corpus.questions import QuestionSeal
from core.month import Month, Period
from core.settings import Settings
from core.storage.claims import hold_alone
from core.storage.store import Store
from crawlers.questions.contract import load_question_crawler
from crawlers.questions.crawl import crawl_questions
from crawlers.registry import load_crawler
from crawlers.web.pacing import Turnstile
from instruments.crawling import crawl_claimed
from instruments.running.stopping import go_on
from tasks.prefect.observe import observe
from tasks.prefect.retries import OF_CRAWLS
from tasks.prefect.sites import SLOT_TRIES, take_slot, with_tokens
from tasks.prefect.telling import tell


@task(task_run_name="crawl {source} {month}", **OF_CRAWLS)
def crawl_month(source: str, month: Period, settings: Settings) -> Seal:
    """Crawl and seal one month of a source; do nothing if it is sealed already."""
    observe()
    began = dt.datetime.now(dt.UTC)
    seal = crawl(source, month, settings, partial(take_slot, tries=SLOT_TRIES))
    tell("sealed", seal, began)
    return seal


def crawl(
    source: str, month: Period, settings: Settings, turnstile: Turnstile = take_slot, **choices: Any
) -> Seal:
    """Call ``crawl_claimed``, with limits and tokens of a configured Prefect server.

    Tokens in ``settings`` take precedence.
    """
    sites = load_crawler(source).INFO.all_sites(settings.languages.get(source, ()))
    return crawl_claimed(source, month, with_tokens(sites, settings), turnstile, **choices)


def add_tokens(source: str, settings: Settings) -> Settings:
    """Return settings with the tokens of a source from the Prefect server, if configured."""
    return with_tokens(load_question_crawler(source).INFO.sites, settings)


def crawl_questions_claimed(
    source: str, months: list[Month], settings: Settings, **choices: Any
) -> list[QuestionSeal]:
    """Call ``crawl_questions`` under a claim, with limits and tokens of the Prefect server."""
    store = Store(settings.home, settings.scratch)
    ready = add_tokens(source, settings)
    with hold_alone(store, f"questions/{source}", go_on):
        go_on()
        return crawl_questions(source, months, store, ready, turnstile=take_slot, **choices)
