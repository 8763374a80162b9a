"""Drift of live sites: compare the shapes of responses with the simulator. Run with --live."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from core.corpus.permissions import require_permission
from core.errors import AccessRefused, TokenRefused
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import Crawler, SourceInfo
from crawlers.questions.contract import (
    QuestionCrawler,
    QuestionSourceInfo,
    list_question_sources,
    load_question_crawler,
)
from crawlers.questions.crawl import require_token
from crawlers.registry import list_on_demand_sources, list_sources, load_crawler
from simulator.server import Request, Response, Web, serve, serve_sites
from simulator.shapes import Difference, compare
from simulator.sites import wikimedia
from simulator.world import World
from tests.crawlers.shapes import watch

MONTH = Month.last_complete()


def load(source: str) -> Crawler | QuestionCrawler:
    if source in list_question_sources():
        return load_question_crawler(source)
    return load_crawler(source)


def month_to_ask(info: SourceInfo) -> Month | None:
    months = filter(None, (MONTH, info.last_month))
    return next((month for month in months if info.lacks(month) is None), None)


def check_source(
    crawler: Crawler | QuestionCrawler, month: Month, settings: Settings, folder: Path
) -> tuple[list[Difference], list[str]]:
    with serve(World(0, month - 1, month)) as web:
        news = {
            "sites": web.urls,
            "tokens": tokens_of(web),
            "request_interval_s": 0.0,
            "work_dir": folder,
        }
        simulated = watch(crawler, month, settings.model_copy(update=news))
    true = watch(crawler, month, settings)
    differences = list(compare(simulated.shapes, true.shapes))
    faults = [str(each) for each in differences if each.is_fault]
    faults += [str(each.error) for each in (simulated, true) if each.error]
    return differences, faults if true.num_items else [*faults, f"no item of {month}"]


def tokens_of(web: Web) -> dict[str, SecretStr]:
    sites = {key: site for key, site in web.sites.items() if hasattr(site, "token")}
    return {key: SecretStr(site.token) for key, site in sites.items()}


def require_site(info: SourceInfo, settings: Settings) -> None:
    if isinstance(info, QuestionSourceInfo) and info.in_browser:
        pytest.skip("pages of a browser have no fields to compare")
    try:
        info.require_contact(settings)
        require_permission(Store(settings.home), info.name, info.permission)
        if isinstance(info, QuestionSourceInfo):
            require_token(info, settings)
    except (AccessRefused, TokenRefused) as error:
        pytest.skip(str(error))
    for url in info.sites.values():
        try:
            socket.create_connection((str(urlsplit(url).hostname), 443), timeout=10).close()
        except OSError as error:
            pytest.skip(f"no network: {url}: {error}")


@pytest.mark.live
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "source", [*list_sources(), *list_on_demand_sources(), *list_question_sources()]
)
def test_the_true_site_responds_in_the_shape_of_the_simulated_one(
    source: str, settings: Settings, tmp_path: Path
) -> None:
    crawler = load(source)
    require_site(crawler.INFO, settings)
    if (month := month_to_ask(crawler.INFO)) is None:
        pytest.skip(f"{source} has no month to ask for")
    polite = settings.model_copy(update={"request_interval_s": None})
    _, faults = check_source(crawler, month, polite, tmp_path / "work")
    assert faults == []


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(7, MONTH - 1, MONTH)) as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("source", ["wikipedia_new", "manifold"])
def test_a_site_that_has_not_changed_is_found_as_it_was(
    source: str, settings: Settings, web: Web, tmp_path: Path
) -> None:
    asked = settings.model_copy(update={"sites": web.urls})
    differences, faults = check_source(load(source), MONTH, asked, tmp_path / "work")
    assert faults == []
    assert {each.what for each in differences} <= {"new", "not seen", "not asked"}


class ChangedWiki(wikimedia.Wikipedia):
    def respond(self, request: Request) -> Response:
        response = super().respond(request)
        return replace(response, body=response.body.replace(b'"timestamp"', b'"when"'))


def test_a_field_that_the_true_site_lacks_is_a_fault(settings: Settings, tmp_path: Path) -> None:
    crawler = cast(Crawler, load("wikipedia_new"))
    with serve_sites([ChangedWiki(World(7, MONTH - 1, MONTH))]) as web:
        asked = settings.model_copy(update={"sites": web.urls})
        differences, faults = check_source(crawler, MONTH, asked, tmp_path / "work")
    missing = [each.path for each in differences if each.what == "missing"]
    assert "$.query.logevents[].timestamp" in missing
    assert any("timestamp is missing" in fault for fault in faults)
