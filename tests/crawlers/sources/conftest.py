"""Crawls of simulated sites: a module's ``SITE_KINDS`` or ``Site``, else all of ``WORLD``."""

from types import ModuleType
from typing import Any, NamedTuple

import pytest

from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Item
from crawlers.registry import load_crawler
from crawlers.web import pacing
from crawlers.web.fetcher import Fetcher
from tests.crawlers.conftest import Crawl, serving


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.002)


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Any:
    return sites_of(request.module)


def sites_of(module: ModuleType) -> Any:
    if kinds := getattr(module, "SITE_KINDS", None):
        return [kind(module.WORLD) for kind in kinds]
    return module.Site(module.WORLD) if hasattr(module, "Site") else None


class Whole(NamedTuple):
    """An undisturbed crawl of the module's month; tests only read it."""

    items: list[Item]
    targets: list[str]  # path and query of each request


@pytest.fixture(scope="module")
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    module = request.module
    with serving(sites_of(module), module) as web:
        own = Settings(
            home=str(tmp_path_factory.mktemp("whole")),
            sites=dict(web.urls),
            tokens=getattr(module, "TOKENS", {}),
        )
        items = crawling(module, own)()
    return Whole(items, [target for _, _, target in web.requests])


@pytest.fixture
def crawl(request: pytest.FixtureRequest, own: Settings) -> Crawl:
    return crawling(request.module, own)


def crawling(module: ModuleType, own: Settings) -> Crawl:
    """Return a function that crawls a month of the source that a module tests."""
    crawler = load_crawler(module.__name__.partition("test_")[2])
    info = crawler.INFO

    def run(
        month: Month | None = None, own: Settings = own, use_cache: bool = False, **options: Any
    ) -> list[Item]:
        fetcher = Fetcher(
            own,
            info.all_sites(options.get("languages", ())),
            0,
            info.redirect_hosts,
            use_cache=use_cache,
            robots_exempt_paths=info.robots_exempt_paths,
        )
        context = CrawlContext(own, fetcher, **options)
        return list(crawler.fetch_month(month or module.MONTH, context))

    return run
