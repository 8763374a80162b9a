"""Crawls of simulated sites: a module's ``SITE_KINDS`` or ``Site``, else all of ``WORLD``."""

from typing import Any

import pytest

from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Item
from crawlers.registry import load_crawler
from crawlers.web import pacing
from crawlers.web.fetcher import Fetcher
from tests.crawlers.conftest import Crawl


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.002)


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Any:
    module = request.module
    if kinds := getattr(module, "SITE_KINDS", None):
        return [kind(module.WORLD) for kind in kinds]
    return module.Site(module.WORLD) if hasattr(module, "Site") else None


@pytest.fixture
def crawl(request: pytest.FixtureRequest, own: Settings) -> Crawl:
    crawler = load_crawler(request.module.__name__.partition("test_")[2])
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
        return list(crawler.fetch_month(month or request.module.MONTH, context))

    return run
