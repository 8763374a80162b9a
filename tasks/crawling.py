"""The task that crawls and seals one month of one source."""

from __future__ import annotations

import datetime as dt
from functools import partial
from typing import Any

from prefect import task

from core.corpus.partition import Seal
from core.month import Period
from core.settings import Settings
from crawlers.registry import load_crawler
from crawlers.web.pacing import Turnstile
from instruments.crawling import crawl_claimed
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
    source: str,
    month: Period,
    settings: Settings,
    turnstile: Turnstile = take_slot,
    **choices: Any,
) -> Seal:
    """Call ``crawl_claimed``, with the limits and tokens of the Prefect server, if there is one.

    Tokens in ``settings`` take precedence.
    """
    sites = load_crawler(source).INFO.all_sites(settings.languages.get(source, ()))
    return crawl_claimed(source, month, with_tokens(sites, settings), turnstile, **choices)
