import datetime as dt

import pytest

from core.errors import SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers.contract import Drop
from crawlers.web.fetcher import Fetcher
from extras.arxiv import lists as arxiv_feeds
from extras.arxiv.arxiv import INFO
from extras.arxiv.lists import Entry, find_papers
from extras.arxiv.simulator import arxiv as simulated
from simulator.server import Fault, Web
from simulator.world import World

MONTH = Month("2023-02")
NOW = {"Retry-After": "0"}
FEED = (
    '<feed xmlns="http://www.w3.org/2005/Atom" '
    'xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">'
    "<opensearch:totalResults>{total}</opensearch:totalResults>{entries}</feed>"
)


@pytest.fixture(scope="module")
def world() -> World:
    return World(0, Month("2023-01"), Month("2023-03"))


@pytest.fixture
def site(world: World) -> simulated.Site:
    return simulated.Site(world)


@pytest.fixture
def fetcher(own: Settings) -> Fetcher:
    return INFO.open_fetcher(own)


def requests_of(web: Web, path: str) -> int:
    return sum(target.startswith(path) for _, _, target in web.requests)


def papers_of(fetcher: Fetcher, month: Month = MONTH) -> list[Entry]:
    found = find_papers(month, ["cs.CL"], fetcher)
    assert not [entry for entry in found if isinstance(entry, Drop)]
    return [entry for entry in found if isinstance(entry, Entry)]


def page(body: str, pattern: str = "/api/query", times: int = 1) -> Fault:
    return Fault("status", "arxiv", pattern, times, 200, NOW, body.encode())


def test_papers_come_by_the_date_of_their_first_version(fetcher: Fetcher, world: World) -> None:
    papers = papers_of(fetcher)
    expected = [
        paper
        for paper in simulated.Site(world).papers.values()
        if MONTH.start <= paper.published <= MONTH.end and "cs.CL" in paper.categories
    ]
    assert [paper.id for paper in papers] == [paper.id for paper in expected]
    assert [paper.published for paper in papers] == sorted(paper.published for paper in papers)
    first = papers[0]
    assert (first.id, first.published) == ("2302.00001", dt.datetime(2023, 2, 1, tzinfo=dt.UTC))
    assert first.title == expected[0].story.title  # on one line again
    assert first.authors == simulated.AUTHORS
    assert (first.category, first.categories) == ("cs.LG", ("cs.LG", "cs.CL"))


def test_pages_follow_each_other(
    fetcher: Fetcher, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = find_papers(MONTH, ["cs.CL"], fetcher)
    monkeypatch.setattr(arxiv_feeds, "PAGE_SIZE", 10)
    assert find_papers(MONTH, ["cs.CL"], fetcher) == whole
    assert requests_of(web, "/api/query") == 4  # the whole, then 10, 10 and 7


def test_a_paper_that_moves_over_a_page_boundary_comes_twice_and_none_is_lost(
    fetcher: Fetcher, site: simulated.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = papers_of(fetcher)
    monkeypatch.setattr(arxiv_feeds, "PAGE_SIZE", 10)
    site.quirks["moving_items"] = 1
    papers = papers_of(fetcher)
    assert len(papers) == len(whole) + 1
    assert {paper.id for paper in papers} == {paper.id for paper in whole}


def test_empty_pages_without_end_are_no_month_without_papers(fetcher: Fetcher, web: Web) -> None:
    web.faults.append(page(FEED.format(total=27, entries=""), times=100))
    with pytest.raises(SourceUnavailable, match="busy"):
        find_papers(MONTH, ["cs.CL"], fetcher)


def test_a_month_may_be_truly_empty(fetcher: Fetcher) -> None:
    assert find_papers(Month("1999-01"), ["cs.CL"], fetcher) == []


ENTRY = "<entry><id>{id}</id><title>{title}</title><summary>why</summary>{date}</entry>"
DATE = "<published>2023-02-01T00:00:00Z</published>"


NO_DATE = "expected an entry with an address and a date"


def feed_of(**entry: str) -> str:
    given = {"id": "http://arxiv.org/abs/2302.00001v1", "title": "T", "date": DATE, **entry}
    return FEED.format(total=1, entries=ENTRY.format(**given))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (feed_of(id="x", title="Error"), "titled 'Error': why"),
        (feed_of(date=""), NO_DATE),
        (feed_of(date=DATE.replace("Z", "")), NO_DATE),
        (feed_of(date=DATE.replace("2023-02-01T00:00:00Z", "0001-01-01T00:00:00+14:00")), NO_DATE),
        (feed_of(date=DATE.replace("2023", "9" * 5000)), NO_DATE),
        (FEED.format(total="9" * 5000, entries=""), "expected a feed with a total"),
        ("<html><body>Sorry</body></html>", "expected a feed with a total"),
        ("not XML", "expected XML"),
        ("", "expected XML"),
        ('<?xml version="1.0" encoding="klingon"?><feed/>', "expected XML"),
        ('<?xml version="1.0" encoding="shift_jis"?><feed/>', "expected XML"),
        (
            f'<!DOCTYPE a [<!ENTITY b "bbbb">]>{FEED.format(total="&b;", entries="")}',
            "expected XML",
        ),
    ],
)
def test_what_is_no_list_is_a_change_of_the_source(
    fetcher: Fetcher, web: Web, body: str, message: str
) -> None:
    web.faults.append(page(body))
    with pytest.raises(SourceChanged, match=message):
        find_papers(MONTH, ["cs.CL"], fetcher)


def test_an_error_of_the_api_is_told_with_its_reason(fetcher: Fetcher) -> None:
    with pytest.raises(SourceChanged, match="incorrect search_query"):
        find_papers(MONTH, [], fetcher)


def test_one_entry_that_is_no_paper_is_told_and_the_others_are_kept(
    fetcher: Fetcher, web: Web
) -> None:
    good = ENTRY.format(id="http://arxiv.org/abs/2302.00001v1", title="T", date=DATE)
    bad = ENTRY.format(id="http://arxiv.org/abs/2302.00002v1", title="T", date="")
    web.faults.append(page(FEED.format(total=2, entries=good + bad)))
    dropped, paper = find_papers(MONTH, ["cs.CL"], fetcher)
    assert isinstance(dropped, Drop) and isinstance(paper, Entry)
    assert (dropped.native_id, dropped.reason) == ("2302.00002", "parse_error")
    assert (paper.id, paper.is_revised, paper.licence) == ("2302.00001", False, None)


def test_more_papers_than_arxiv_has_are_a_change(fetcher: Fetcher, web: Web) -> None:
    entry = ENTRY.format(id="http://arxiv.org/abs/2302.00001v1", title="T", date=DATE)
    web.faults.append(page(FEED.format(total=10**8, entries=entry), times=99))
    with pytest.raises(SourceChanged, match="at most 30000"):
        find_papers(MONTH, ["cs.CL"], fetcher)
