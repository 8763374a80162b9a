"""Months of Wikimedia's sources under the limits of the real sites, in simulated time."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.corpus.partition import Seal
from core.errors import AccessRefused, SourceUnavailable
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.apis.mediawiki import PACE
from crawlers.crawling.crawl import crawl_partition
from crawlers.registry import list_sources, load_crawler
from simulator.limits import AT_ONCE, LimitedSite, Limits, limit_wikimedia
from simulator.server import Web, running, serve_sites, site_kinds
from simulator.sites.wikimedia import Dumps, Wikipedia
from simulator.world import World
from tests.crawlers.clock import SimulatedTime
from tests.tiers import few, needs_extra

MONTH, OF_DUMPS = Month("2024-03"), Month("2017-03")
MONTHS = [
    *[(name, MONTH) for name in list_sources() if load_crawler(name).INFO.shares_pace == PACE],
    ("wikipedia_new", OF_DUMPS),
]
CONTACT = "operator@example.org"


def _is_of_wikimedia(kind: Any) -> bool:
    """Return True for sites with Wikimedia's limits; the dumps are served for another month."""
    return issubclass(kind, LimitedSite) and kind is not Dumps


@pytest.fixture
def web() -> Iterator[Web]:
    now, then = World(3, MONTH - 1, MONTH), World(3, OF_DUMPS - 1, OF_DUMPS)
    kinds = [kind for kind in site_kinds() if _is_of_wikimedia(kind)]
    newer = serve_sites([*(kind(now) for kind in kinds), Dumps(then)])
    with newer as web, running(old := Wikipedia(then), Web()) as url:
        web.urls["older"], web.sites["older"] = url, old
        yield web


@pytest.fixture
def limits(web: Web, clock: SimulatedTime) -> Limits:
    limits = Limits(clock.time)
    limit_wikimedia(web, limits)
    return limits


def crawl(
    source: str,
    month: Month,
    settings: Settings,
    web: Web,
    limit: int | None = 3,
    **given: object,
) -> Seal:
    sites = dict(web.urls)
    if month == OF_DUMPS:
        sites["wikipedia"] = sites["older"]
    own = settings.model_copy(update={"request_interval_s": None, "sites": sites, **given})
    return crawl_partition(source, month, Store(own.home), own, limit=limit)


def test_the_sources_of_wikimedia_need_a_contact() -> None:
    hosts = {
        source: [url for url in load_crawler(source).INFO.sites.values() if "wiki" in url]
        for source in list_sources()
    }
    assert {source for source, urls in hosts.items() if urls} == {source for source, _ in MONTHS}
    assert all(load_crawler(source).INFO.needs_contact for source, _ in MONTHS)


# `test_all_sources_at_once_are_within_the_limits` crawls all of them.
@pytest.mark.parametrize(("source", "month"), few(reversed(MONTHS), 2))
def test_with_a_contact_a_month_is_sealed_and_no_request_is_refused(
    source: str, month: Month, settings: Settings, web: Web, limits: Limits
) -> None:
    seal = crawl(source, month, settings, web, contact=CONTACT)
    assert seal.num_documents > 0
    assert (limits.num_refused, limits.most_at_once) == (0, 1)
    assert f"({CONTACT})" in str(seal.manifest["user_agent"])


@pytest.mark.long
@needs_extra("more_sources")
def test_without_a_contact_a_simulated_month_is_sealed_after_pauses(
    settings: Settings, web: Web, limits: Limits, clock: SimulatedTime
) -> None:
    seal = crawl("wikipedia_monitored", MONTH, settings, web, limit=None)
    assert seal.num_documents > 0
    assert limits.num_refused > 0
    assert clock.slept_s > 120


@pytest.mark.parametrize(("source", "month"), MONTHS)
def test_without_a_contact_a_live_month_is_refused_before_the_first_request(
    source: str, month: Month, settings: Settings, web: Web
) -> None:
    with pytest.raises(AccessRefused, match=r"200 requests a minute.*set TIDEMARK_CONTACT"):
        crawl_partition(source, month, Store(settings.home), settings, limit=3)
    assert web.requests == []


def test_a_single_live_site_among_simulated_ones_needs_a_contact(
    settings: Settings, web: Web
) -> None:
    own = settings.model_copy(update={"sites": {"wikipedia": web.urls["wikipedia"]}})
    with pytest.raises(AccessRefused, match=r"wikipedia_new: https://dumps\.wikimedia\.org req"):
        crawl_partition("wikipedia_new", MONTH, Store(own.home), own, limit=3)
    assert web.requests == []


def test_a_language_of_a_live_site_needs_a_contact(settings: Settings, web: Web) -> None:
    languages = {"wikipedia_new": ("en", "fr")}
    with pytest.raises(AccessRefused, match=r"https://fr\.wikipedia\.org require the operator"):
        crawl("wikipedia_new", MONTH, settings, web, languages=languages)
    assert web.requests == []


@pytest.mark.long
def test_all_sources_at_once_are_within_the_limits(
    settings: Settings, web: Web, limits: Limits, clock: SimulatedTime, tmp_path: Path
) -> None:
    def run(source: str, month: Month) -> None:
        own = settings.model_copy(update={"work_dir": tmp_path / "work"})
        seals.append(crawl(source, month, own, web, contact=CONTACT))

    seals: list[Seal] = []
    began = clock.time()
    threads = [threading.Thread(target=run, args=each) for each in MONTHS]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seals) == len(MONTHS)
    for seal in seals:
        assert seal.num_documents > 0, seal.partition
        assert f"({CONTACT})" in str(seal.manifest["user_agent"]), seal.partition
    assert limits.num_refused == 0
    assert limits.most_at_once <= AT_ONCE
    num_requests = sum(int(seal.manifest["requests"]["requests"]) for seal in seals)
    # One request a second to all sites together; a download of a dump is beside them.
    assert clock.time() - began >= num_requests - 2


def test_a_site_of_the_settings_may_have_a_shorter_interval(
    settings: Settings, web: Web, clock: SimulatedTime
) -> None:
    crawl("wikipedia_new", MONTH, settings, web, request_interval_s=0)
    assert clock.slept_s == 0


def test_a_wiki_that_refuses_for_ever_ends_the_crawl(
    settings: Settings, web: Web, clock: SimulatedTime
) -> None:
    limit_wikimedia(web, Limits(lambda: 0.0))  # its minute never ends
    with pytest.raises(SourceUnavailable):
        crawl("wikipedia_new", MONTH, settings, web, limit=None)
