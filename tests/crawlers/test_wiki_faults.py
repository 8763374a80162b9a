"""The sources of MediaWiki under the faults of their sites: they end, and account for all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from core.errors import SourceError, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Document, Failure, Item, load_crawler
from crawlers.http import Fetcher
from simulator.server import Fault, FaultKind, Web, serve_sites
from simulator.sites import wikinews, wikipedia
from simulator.world import World

MONTH = Month("2024-02")
WORLD = World(4, Month("2024-01"), Month("2024-03"), stories_per_month=24)
SOURCES = ("wikipedia_monitored", "wikipedia_new", "wikipedia_changes", "wikinews")
PASSING: tuple[FaultKind, ...] = ("status", "truncate", "disconnect", "empty")


@pytest.fixture
def web() -> Iterator[Web]:
    with serve_sites([wikipedia.Site(WORLD), wikinews.Site(WORLD)]) as running:
        yield running


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawlers.pacing.BACKOFF_BASE_S", 0.0)


def _crawl(source: str, settings: Settings, web: Web, items: list[Item]) -> None:
    crawler = load_crawler(source)
    own = settings.model_copy(update={"sites": web.urls})
    exempt = crawler.INFO.robots_exempt_paths
    fetcher = Fetcher(own, crawler.INFO.sites, 0, use_cache=False, robots_exempt_paths=exempt)
    items.extend(crawler.fetch_month(MONTH, CrawlContext(own, fetcher)))


def _kept(items: list[Item]) -> set[str]:
    return {item.native_id for item in items if isinstance(item, Document)}


def _key(source: str) -> str:
    return "wikinews" if source == "wikinews" else "wikipedia"


@pytest.mark.parametrize("kind", PASSING)
@pytest.mark.parametrize("source", SOURCES)
def test_what_passes_costs_no_item(
    source: str, kind: FaultKind, settings: Settings, web: Web
) -> None:
    right: list[Item] = []
    _crawl(source, settings, web, right)
    web.faults.append(Fault(kind, _key(source), "api.php", times=3))
    found: list[Item] = []
    _crawl(source, settings, web, found)
    assert web.faults[0].times == 0
    assert _kept(found) == _kept(right) and len(found) == len(right)


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "0"}])
@pytest.mark.parametrize("source", SOURCES)
def test_429_is_waited_out_with_and_without_retry_after(
    source: str, headers: dict[str, str], settings: Settings, web: Web
) -> None:
    """A peer omits 429 from the answers that it tries again."""
    web.faults.append(Fault("status", _key(source), "api.php", 4, 429, headers))
    found: list[Item] = []
    _crawl(source, settings, web, found)
    assert web.faults[0].times == 0 and _kept(found)


@pytest.mark.parametrize("source", SOURCES)
def test_texts_that_never_come_are_failures_each_counted(
    source: str, settings: Settings, web: Web
) -> None:
    right: list[Item] = []
    _crawl(source, settings, web, right)
    web.faults.append(Fault("status", _key(source), "revids=", times=10_000))
    found: list[Item] = []
    _crawl(source, settings, web, found)
    failed = {item.native_id for item in found if isinstance(item, Failure)}
    assert failed >= _kept(right) and not _kept(found)
    assert len(found) == len(right)


@pytest.mark.parametrize("kind", ["redirect_loop", "redirect_off_host", "gzip_bomb"])
@pytest.mark.parametrize("source", SOURCES)
def test_what_is_hostile_ends_the_crawl_with_an_error_that_says_why(
    source: str, kind: FaultKind, settings: Settings, web: Web
) -> None:
    web.faults.append(Fault(kind, _key(source), "api.php", times=10_000))
    with pytest.raises(SourceError, match=r"redirects|leads to|larger than"):
        _crawl(source, settings, web, [])


@pytest.mark.parametrize("source", SOURCES)
def test_a_wiki_that_is_down_is_no_empty_month(source: str, settings: Settings, web: Web) -> None:
    web.faults.append(Fault("status", _key(source), "api.php", times=10_000))
    with pytest.raises(SourceUnavailable):
        _crawl(source, settings, web, [])


@pytest.mark.parametrize("source", SOURCES)
def test_requests_follow_each_other_and_carry_maxlag(
    source: str, settings: Settings, web: Web
) -> None:
    _crawl(source, settings, web, [])
    asked = [target for _, _, target in web.requests if "api.php" in target]
    assert asked and all("maxlag=5" in target for target in asked)
    # action=parse would put today's templates into old text.
    assert all("action=query" in target for target in asked)
    assert all(target.count("%7C") <= 49 + 4 for target in asked)  # fifty values in a parameter
