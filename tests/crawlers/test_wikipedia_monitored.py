"""Monitored articles: the simulated wiki over loopback HTTP, month after month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Document, Drop
from crawlers.http import Fetcher
from crawlers.wikipedia_monitored import INFO, TITLES_FILE, fetch_month
from simulator.server import Fault, Web, serve
from simulator.wiki import Wiki
from simulator.world import World

FIRST = Month("2022-09")
WORLD = World(11, FIRST, FIRST + 17)
MIDDLE = FIRST + 9  # two of the pages are created in this month
STALE = FIRST + 4  # one page has no edit in this month, nor in its year before
LEAD = "The subject of this article has been documented for long."
Crawl = Callable[..., list[Document | Drop]]


@pytest.fixture
def web() -> Iterator[Web]:
    with serve(WORLD) as running:
        yield running


@pytest.fixture
def crawl(settings: Settings, web: Web) -> Crawl:
    own = settings.model_copy(update={"sites": web.urls})

    def run(month: Month, **options: int) -> list[Document | Drop]:
        fetcher = Fetcher(own, INFO.sites, 0, robots_exempt_paths=INFO.robots_exempt_paths)
        return list(fetch_month(month, CrawlContext(own, fetcher, **options)))

    return run


def _documents(items: list[Document | Drop]) -> list[Document]:
    return [item for item in items if isinstance(item, Document)]


def _titles() -> list[str]:
    lines = TITLES_FILE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def _text_of(page_id: str, month: Month) -> str:
    story = WORLD.story(month, "wikipedia_monitored", int(page_id))
    return "\n\n".join([LEAD, "Developments", *story.paragraphs])


def test_each_page_tells_the_whole_story_of_the_month_and_nothing_later(crawl: Crawl) -> None:
    for month in (FIRST, MIDDLE, FIRST + 17):
        documents = _documents(crawl(month))
        assert len(documents) >= 12
        for document in documents:
            assert document.text == _text_of(document.native_id, month)
            assert document.event_time == document.text_as_of
            assert document.event_time in month
            assert document.extra == {"is_new_this_month": True}
            assert document.date_kind == "revised"


def test_an_edit_in_the_first_second_of_the_next_month_is_not_this_months(crawl: Crawl) -> None:
    wiki, month = Wiki(WORLD), FIRST + 2
    edited = 0
    for document in _documents(crawl(month)):
        page = wiki.page(int(document.native_id))
        assert page is not None
        edited += any(row.timestamp == month.end for row in page.revisions)
        assert document.text_as_of < month.end
    assert edited > 3


def test_a_page_without_an_edit_keeps_its_earlier_version(crawl: Crawl) -> None:
    stale = [d for d in _documents(crawl(STALE)) if not d.extra["is_new_this_month"]]
    assert len(stale) == 1
    assert stale[0].event_time == STALE.start
    assert stale[0].text_as_of in STALE - 1  # of the year before, when STALE is a January
    assert stale[0].text == _text_of(stale[0].native_id, STALE - 1)
    assert STALE.first_day.month == 1


def test_pages_begin_when_they_are_created(crawl: Crawl) -> None:
    before, since = crawl(MIDDLE - 1), crawl(MIDDLE)
    missing = {i.native_id for i in before if isinstance(i, Drop) and i.reason == "not_yet_created"}
    assert len(missing) == 2
    assert missing <= {document.native_id for document in _documents(since)}


def test_every_title_is_accounted_for(crawl: Crawl) -> None:
    items = crawl(MIDDLE)
    assert len(items) == len(_titles())
    reasons = Counter(item.reason for item in items if isinstance(item, Drop))
    assert reasons.keys() == {"deleted"}
    assert 12 <= len(_documents(items)) <= 24


def test_a_redirect_leads_to_the_page_under_its_own_title(crawl: Crawl) -> None:
    titles = {document.title for document in _documents(crawl(MIDDLE))}
    assert any(title not in _titles() for title in titles)
    assert any(title in _titles() for title in titles)


def test_two_titles_of_one_page_are_one_document(crawl: Crawl, web: Web) -> None:
    body = b"""{"query": {"redirects": [{"from": "Asia", "to": "Africa"}],
        "pages": [{"pageid": 3, "ns": 0, "title": "Africa"}]}}"""
    web.faults.append(Fault("status", "wikipedia", "Africa", 1, 200, body=body))
    items = crawl(FIRST)
    again = [
        (i.native_id, i.reason) for i in items if isinstance(i, Drop) and i.native_id == "Asia"
    ]
    assert again == [("Asia", "exact_dup")]
    assert "3" in {document.native_id for document in _documents(items)}


def test_the_months_of_a_year_share_their_lists(crawl: Crawl, web: Web) -> None:
    crawl(Month("2023-01"))
    before = len(web.requests)
    crawl(Month("2023-02"))
    asked = [target for _, _, target in web.requests[before:]]
    assert asked and all("revids" in target for target in asked)


def test_a_sample_is_drawn_by_the_seed_and_the_rest_is_counted(crawl: Crawl) -> None:
    first, again, other = (crawl(MIDDLE, limit=5, seed=seed) for seed in (1, 1, 2))
    ids = [{d.native_id for d in _documents(items)} for items in (first, again, other)]
    assert ids[0] == ids[1] != ids[2]
    assert len(ids[0]) == 5
    assert len(first) == len(_titles())


def test_a_page_deleted_during_the_crawl_is_a_drop(crawl: Crawl, web: Web) -> None:
    web.faults.append(
        Fault("status", "wikipedia", "revids", 1, 200, body=b'{"query":{"pages":[]}}')
    )
    items = crawl(FIRST)
    assert not _documents(items)
    assert {i.reason for i in items if isinstance(i, Drop)} == {"deleted", "not_yet_created"}


def test_the_shipped_titles_are_about_a_hundred_and_different() -> None:
    titles = _titles()
    assert 90 <= len(titles) <= 110
    assert len(set(titles)) == len(titles)
    assert all(title == title.strip() and "_" not in title for title in titles)
