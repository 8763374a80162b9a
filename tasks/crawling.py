"""The task that crawls and seals one month of one source."""

from __future__ import annotations

import datetime as dt
from contextlib import nullcontext
from typing import Any

from prefect import task

from core.corpus.partition import Partition, Seal
from core.environment import prefect_server
from core.month import Period
from core.settings import Settings
from core.storage.claims import do_claimed
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from crawlers.registry import load_crawler
from crawlers.web.pacing import Turnstile
from instruments.running.retries import retrying
from instruments.running.stopping import never_done
from tasks.prefect.observe import observe, show_seal
from tasks.prefect.retries import OF_CRAWLS
from tasks.prefect.sites import take_slot, wait_for_slot, with_tokens
from tasks.prefect.tracing import span


@task(task_run_name="crawl {source} {month}", **OF_CRAWLS)
def crawl_month(source: str, month: Period, settings: Settings) -> Seal:
    """Crawl and seal one month of a source; do nothing if it is sealed already."""
    observe()
    began = dt.datetime.now(dt.UTC)
    with span("partition", source=source, month=str(month)):
        store = Store(settings.home, settings.scratch)
        seal = crawl(source, month, store, settings, wait_for_slot)
    show_seal(seal, began)
    return seal


def crawl(
    source: str,
    month: Period,
    store: Store,
    settings: Settings,
    turnstile: Turnstile = take_slot,
    **choices: Any,
) -> Seal:
    """Call ``crawl_partition`` under a claim, with the limits and tokens of the Prefect server.

    If another process holds the claim, wait for it. Tokens in ``settings`` take precedence.
    """
    if prefect_server():
        choices["turnstile"] = turnstile
        sites = load_crawler(source).INFO.all_sites(settings.languages.get(source, ()))
        settings = with_tokens(sites, settings)
    [seal] = do_claimed(
        store,
        [Partition(source, month).path],
        ready=nullcontext,
        do=lambda _, __: crawl_partition(source, month, store, settings, **choices),
        is_done=never_done,
    ).results
    return seal


def crawl_patiently(source: str, month: Period, settings: Settings) -> Seal:
    """Crawl and seal a month outside of a flow; retry after transient errors."""
    store = Store(settings.home, settings.scratch)
    return retrying(f"crawl {source} {month}", lambda: crawl(source, month, store, settings))
