"""Crawls of a simulated site; a module has its source's name, ``Site``, ``WORLD`` and ``MONTH``."""

from typing import Any

import pytest

from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Item
from crawlers.registry import load_crawler
from crawlers.web import pacing
from crawlers.web.fetcher import Fetcher
from simulator.server import Web
from tests.crawlers.conftest import Crawl


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.002)


@pytest.fixture
def site(request: pytest.FixtureRequest) -> Any:
    return request.module.Site(request.module.WORLD)


@pytest.fixture
def own(request: pytest.FixtureRequest, settings: Settings, web: Web) -> Settings:
    tokens = getattr(request.module, "TOKENS", {})
    return settings.model_copy(update={"sites": dict(web.urls), "tokens": tokens})


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
