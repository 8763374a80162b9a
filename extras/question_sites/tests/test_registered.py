"""The sources of the extra among the others: crawls and wrong answers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from core.settings import Settings
from core.storage.store import Store
from crawlers.questions.contract import list_question_sources
from extras.question_sites import kalshi, metaculus, polymarket
from extras.question_sites.simulator import kalshi as kalshi_site
from extras.question_sites.simulator import metaculus as metaculus_site
from extras.question_sites.simulator import polymarket as polymarket_site
from extras.question_sites.tests import recorded_metaculus, recorded_polymarket
from simulator.server import Web
from tests.commands import web
from tests.crawlers.questions.scene import permit
from tests.crawlers.recorded import Case
from tests.crawlers.test_live import MONTH, check_source, load
from tests.crawlers.test_live import web as live_web
from tests.crawlers.test_mutated_answers import WORLD, check_answers

__all__ = ["live_web", "web"]

SOURCES = ("kalshi", "metaculus", "polymarket")


@pytest.mark.smoke
def test_crawls_of_questions_know_them() -> None:
    assert {*SOURCES} <= {*list_question_sources()}


@pytest.mark.smoke
def test_crawls_of_all_sources_leave_them_out_without_a_permission(
    tidemark: Callable[..., Any], sites: Web
) -> None:
    ran = tidemark("forecast", "crawl", "--month=2024-02").expect(0)
    for source in ("kalshi", "metaculus"):
        assert f"left out: {source} is crawled by permission only" in ran.err
        assert not [asked for asked in sites.requests if asked[0] == source]


def test_a_named_source_is_refused_without_its_permission_or_token(
    tidemark: Callable[..., Any], sites: Web, home: Path
) -> None:
    before = len(sites.requests)
    crawl = ("forecast", "crawl", "-s", "metaculus", "--month=2024-03")
    tidemark(*crawl).expect(1, "its terms of use forbid")
    permit(Store(str(home)), "metaculus")
    tidemark(*crawl).expect(1, "gives nothing without a token, so nothing was asked")
    assert len(sites.requests) == before


def test_a_site_that_has_not_changed_is_found_as_it_was(
    settings: Settings, live_web: Web, tmp_path: Path
) -> None:
    tokens = {"metaculus": SecretStr(metaculus_site.TOKEN)}
    asked = settings.model_copy(update={"sites": live_web.urls, "tokens": tokens})
    differences, faults = check_source(load("metaculus"), MONTH, asked, tmp_path / "work")
    assert faults == []
    assert {each.what for each in differences} <= {"new", "not seen", "not asked"}


@pytest.mark.parametrize(
    ("crawler", "site"),
    [
        (kalshi, kalshi_site.Site),
        (metaculus, metaculus_site.Site),
        (polymarket, polymarket_site.Site),
    ],
)
def test_no_answer_ends_in_anything_else(crawler: Any, site: Any) -> None:
    check_answers(crawler, {crawler.SITE: site(WORLD)})


@pytest.mark.parametrize(
    "case", [*recorded_metaculus.CASES, *recorded_polymarket.CASES], ids=lambda case: case.path
)
def test_a_recording_gives_what_it_should(case: Case, shared: Path, settings: Settings) -> None:
    path = shared / "recordings" / case.path
    if not path.exists():
        pytest.skip(f"no recording at {path}")
    case.check(path, settings)
