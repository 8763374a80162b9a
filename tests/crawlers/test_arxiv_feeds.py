"""The lists of papers and licences, over loopback HTTP."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest

from core.errors import AccessRefused, SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers import arxiv_feeds
from crawlers.arxiv import INFO
from crawlers.arxiv_feeds import find_licences, find_papers
from crawlers.http import Fetcher
from simulator.server import Fault, Web, serve
from simulator.sites import arxiv as site
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
def web(world: World) -> Iterator[Web]:
    with serve(world) as web:
        yield web


@pytest.fixture
def fetcher(web: Web, settings: Settings) -> Fetcher:
    sites = {key: web.urls[key] for key in INFO.sites}
    return Fetcher(settings.model_copy(update={"sites": sites}), INFO.sites, 0)


def requests_of(web: Web, path: str) -> int:
    return sum(target.startswith(path) for _, _, target in web.requests)


def page(body: str, pattern: str = "/api/query", times: int = 1) -> Fault:
    return Fault("status", "arxiv", pattern, times, 200, NOW, body.encode())


def test_papers_come_by_the_date_of_their_first_version(fetcher: Fetcher, world: World) -> None:
    papers = find_papers(MONTH, ["cs.CL"], fetcher)
    expected = [
        paper
        for paper in site.Site(world).papers.values()
        if MONTH.start <= paper.published <= MONTH.end and "cs.CL" in paper.categories
    ]
    assert [paper.id for paper in papers] == [paper.id for paper in expected]
    assert [paper.published for paper in papers] == sorted(paper.published for paper in papers)
    first = papers[0]
    assert (first.id, first.published) == ("2302.00001", dt.datetime(2023, 2, 1, tzinfo=dt.UTC))
    assert first.title == expected[0].story.title  # on one line again
    assert first.authors == site.AUTHORS
    assert (first.category, first.categories) == ("cs.LG", ("cs.LG", "cs.CL"))


def test_pages_follow_each_other(
    fetcher: Fetcher, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = find_papers(MONTH, ["cs.CL"], fetcher)
    monkeypatch.setattr(arxiv_feeds, "PAGE_SIZE", 10)
    assert find_papers(MONTH, ["cs.CL"], fetcher) == whole
    assert requests_of(web, "/api/query") == 4  # the whole, then 10, 10 and 7


def test_a_paper_that_moves_over_a_page_boundary_counts_once(
    fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arxiv_feeds, "PAGE_SIZE", 10)
    respond = site.Site.respond

    def shifted(self: site.Site, request: site.Request) -> site.Response:
        start = int(request.arg("start", "0"))
        query = {**request.query, "start": [str(max(start - 1, 0))]}
        return respond(self, site.replace(request, query=query))

    monkeypatch.setattr(site.Site, "respond", shifted)
    papers = find_papers(MONTH, ["cs.CL"], fetcher)
    assert len(papers) == len({paper.id for paper in papers}) >= 25


def test_an_empty_page_is_asked_again(fetcher: Fetcher, web: Web) -> None:
    web.faults.append(page(FEED.format(total=27, entries=""), times=2))
    assert len(find_papers(MONTH, ["cs.CL"], fetcher)) == 27
    assert requests_of(web, "/api/query") == 3


def test_empty_pages_without_end_are_no_month_without_papers(fetcher: Fetcher, web: Web) -> None:
    web.faults.append(page(FEED.format(total=27, entries=""), times=100))
    with pytest.raises(SourceUnavailable, match="busy"):
        find_papers(MONTH, ["cs.CL"], fetcher)


def test_a_month_may_be_truly_empty(fetcher: Fetcher) -> None:
    assert find_papers(Month("1999-01"), ["cs.CL"], fetcher) == []


ENTRY = "<entry><id>{id}</id><title>{title}</title><summary>why</summary>{date}</entry>"
DATE = "<published>2023-02-01T00:00:00Z</published>"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            FEED.format(total=1, entries=ENTRY.format(id="x", title="Error", date=DATE)),
            "titled 'Error': why",
        ),
        (
            FEED.format(
                total=1,
                entries=ENTRY.format(id="http://arxiv.org/abs/2302.00001v1", title="T", date=""),
            ),
            "expected an entry with an address and a date",
        ),
        (
            FEED.format(
                total=1,
                entries=ENTRY.format(
                    id="http://arxiv.org/abs/2302.00001v1",
                    title="T",
                    date=DATE.replace("Z", ""),
                ),
            ),
            "expected an entry with an address and a date",
        ),
        (FEED.format(total="9" * 5000, entries=""), "expected a feed with a total"),
        ("<html><body>Sorry</body></html>", "expected a feed with a total"),
        ("not XML", "expected XML"),
        ("", "expected XML"),
        (
            '<!DOCTYPE a [<!ENTITY b "bbbb">]><feed xmlns="http://www.w3.org/2005/Atom">&b;</feed>',
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


def test_robots_rules_are_kept(fetcher: Fetcher, web: Web, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site.Site, "robots", "User-agent: *\nDisallow: /api\n")
    with pytest.raises(AccessRefused, match=r"robots\.txt disallows"):
        find_papers(MONTH, ["cs.CL"], fetcher)
    assert requests_of(web, "/api") == 0


def test_a_list_that_is_gone_is_no_month_without_papers(fetcher: Fetcher, web: Web) -> None:
    web.faults.append(Fault("status", "arxiv", "/api/query", 1, 404))
    with pytest.raises(SourceUnavailable, match="the month needs"):
        find_papers(MONTH, ["cs.CL"], fetcher)


def licences_of(world: World) -> dict[str, str]:
    papers = site.Site(world).papers.values()
    return {p.id: p.licence for p in papers if p.licence and p.published in MONTH}


def test_few_licences_are_asked_for_one_by_one(fetcher: Fetcher, web: Web, world: World) -> None:
    expected = licences_of(world)
    ids = list(expected)[:3]
    assert find_licences(ids, MONTH, ["cs:cs:CL"], fetcher) == {i: expected[i] for i in ids}
    assert requests_of(web, "/oai") == 3


def test_many_licences_are_listed_and_the_rest_asked_for(
    fetcher: Fetcher, web: Web, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "OAI_PAGE_SIZE", 10)  # several pages, with resumption tokens
    papers = [p for p in site.Site(world).papers.values() if p.published in MONTH]
    ids = [p.id for p in papers if "cs.CL" in p.categories]
    found = find_licences(ids, MONTH, ["cs:cs:CL"], fetcher)
    assert found == {i: licence for i, licence in licences_of(world).items() if i in ids}
    assert len(found) < len(ids)  # some papers have none
    targets = [target for _, _, target in web.requests]
    assert sum("ListRecords" in target for target in targets) > 1
    assert 0 < sum("GetRecord" in target for target in targets) < len(ids) / 2


def test_an_expired_token_costs_requests_not_licences(
    fetcher: Fetcher, web: Web, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "OAI_PAGE_SIZE", 10)
    expired = '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">{}</OAI-PMH>'
    body = expired.format('<error code="badResumptionToken"/>')
    web.faults.append(page(body, "resumptionToken"))
    ids = list(licences_of(world))
    assert find_licences(ids, MONTH, ["cs:cs:CL"], fetcher) == licences_of(world)
    assert not web.faults[0].times  # it was met


def test_a_token_that_leads_nowhere_ends(
    fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch, web: Web, world: World
) -> None:
    monkeypatch.setattr(arxiv_feeds, "LIST_ABOVE", 0)
    body = (
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><ListRecords>'
        "<resumptionToken>again</resumptionToken></ListRecords></OAI-PMH>"
    )
    web.faults.append(page(body, "ListRecords", times=50))
    ids = list(licences_of(world))[:1]
    assert list(find_licences(ids, MONTH, ["cs:cs:CL"], fetcher)) == ids


def test_an_error_of_oai_is_told_with_its_reason(fetcher: Fetcher, web: Web) -> None:
    body = (
        '<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">'
        '<error code="badArgument">no such prefix</error></OAI-PMH>'
    )
    web.faults.append(page(body, "/oai"))
    with pytest.raises(SourceChanged, match="badArgument: no such prefix"):
        find_licences(["2302.00001"], MONTH, ["cs:cs:CL"], fetcher)
    assert find_licences(["2302.99999"], MONTH, ["cs:cs:CL"], fetcher) == {}
