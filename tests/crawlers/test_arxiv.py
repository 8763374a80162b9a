"""A month of arXiv, crawled over loopback HTTP."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import psutil
import pytest

from core.month import Month
from core.settings import Settings
from crawlers.arxiv import INFO, fetch_month
from crawlers.contract import CrawlContext, Document, Drop, Item, list_sources, load_crawler
from crawlers.http import Fetcher
from simulator.server import Fault, Web, serve
from simulator.sites import arxiv as site
from simulator.world import World

MONTH = Month("2023-02")


@pytest.fixture(scope="module")
def world() -> World:
    return World(0, Month("2023-01"), Month("2023-03"), stories_per_month=8)


@pytest.fixture
def web(world: World) -> Iterator[Web]:
    with serve(world) as web:
        yield web


def crawl(web: Web, settings: Settings, limit: int | None = None, seed: int = 0) -> list[Item]:
    sites = {key: web.urls[key] for key in INFO.sites}
    settings = settings.model_copy(update={"sites": sites})
    fetcher = Fetcher(settings, INFO.sites, INFO.request_interval_s, INFO.redirect_hosts)
    return list(fetch_month(MONTH, CrawlContext(settings, fetcher, limit, seed)))


def documents(items: list[Item]) -> list[Document]:
    return [item for item in items if isinstance(item, Document)]


def drops(items: list[Item]) -> dict[str, str]:
    return {item.native_id: item.reason for item in items if isinstance(item, Drop)}


def test_the_source_is_found_by_its_name() -> None:
    assert "arxiv" in list_sources()
    assert load_crawler("arxiv").INFO is INFO


def test_the_text_is_the_story_and_nothing_else(web: Web, settings: Settings, world: World) -> None:
    papers = site.Site(world).papers
    found = documents(crawl(web, settings))
    assert len(found) == world.stories_per_month
    for document in found:
        paper = papers[document.native_id]
        first, *others = paper.story.paragraphs
        maths = [site.MATHS] if paper.number % 3 == 0 else []
        expected = ["Introduction", first, *maths, "Findings", *others]
        assert document.text == "\n\n".join(expected)
        assert document.title == paper.story.title
    assert any(papers[document.native_id].kind == "gzip" for document in found)
    assert any(len(papers[document.native_id].versions) > 1 for document in found)


def test_a_document_says_where_it_is_from(web: Web, settings: Settings, world: World) -> None:
    by_number = {
        site.Site(world).papers[d.native_id].number: d for d in documents(crawl(web, settings))
    }
    document = by_number[1]
    assert document.native_id == "2302.00002"
    assert document.version_id == "v1"
    assert document.cluster_id == "paper:2302.00002"
    assert document.url == "https://arxiv.org/abs/2302.00002v1"
    assert document.date_kind == "published"
    assert document.event_time == document.text_as_of
    assert document.event_time in MONTH
    assert document.retrieved_at > document.event_time
    assert document.licence == "http://creativecommons.org/licenses/by/4.0/"
    assert document.attribution.startswith("Ada Example, Boris Sample, Chen Muster et al.: ")
    assert document.attribution.endswith("arXiv:2302.00002v1")
    assert (document.category, document.language) == ("cs.CL", "en")
    assert document.extra == {"categories": ["cs.CL", "cs.AI"], "has_introduction": True}
    assert by_number[3].licence == "LicenseRef-unknown"


def test_the_month_is_half_open_in_utc_whatever_the_id_says(web: Web, settings: Settings) -> None:
    items = crawl(web, settings)
    ids = [item.native_id for item in items]
    times = {d.native_id: d.event_time.isoformat() for d in documents(items)}
    assert times["2302.00001"] == "2023-02-01T00:00:00+00:00"
    assert times["2303.09000"] == "2023-02-28T23:59:59+00:00"
    assert drops(items)["2303.00001"] == "outside_month"  # in the first second of March
    assert "2302.09000" not in ids  # in the last second of January
    assert len(ids) == len(set(ids))


def test_what_has_no_source_is_dropped_with_its_reason(web: Web, settings: Settings) -> None:
    assert drops(crawl(web, settings)) == {
        "2302.00009": "pdf_only",
        "2302.00010": "withdrawn",
        "2303.00001": "outside_month",
    }


def test_a_broken_package_costs_its_paper_only(web: Web, settings: Settings) -> None:
    web.faults += [
        Fault("gzip_bomb", "arxiv", "/src/2302.00001v1"),
        Fault("empty", "arxiv", "/src/2302.00002v1"),
        Fault("status", "arxiv", "/src/2302.00003v1", 1, 200, {}, b"<html>Sign in</html>"),
        Fault("status", "arxiv", "/src/2302.00005v1", 1, 503, {"Retry-After": "0"}),
    ]
    items = crawl(web, settings)
    assert {k: v for k, v in drops(items).items() if k < "2302.00006"} == {
        "2302.00001": "too_large",
        "2302.00002": "bad_archive",
        "2302.00003": "no_tex",
    }
    assert "2302.00005" in {document.native_id for document in documents(items)}


def test_a_sample_depends_on_the_seed_alone(web: Web, settings: Settings) -> None:
    items = crawl(web, settings, limit=4)
    assert items == crawl(web, settings, limit=4)
    asked = [target for _, _, target in web.requests if target.startswith("/src/")]
    assert len(asked) == 4  # the second crawl read the cache
    reasons = Counter(drops(items).values())
    assert reasons["sample_cap"] == world_size(items) - 4 - 2
    chosen = set(asked_ids(items))
    assert chosen != set(asked_ids(crawl(web, settings, limit=4, seed=1)))
    assert chosen < set(asked_ids(crawl(web, settings, limit=5)))


def world_size(items: list[Item]) -> int:
    return len({item.native_id for item in items})


def asked_ids(items: list[Item]) -> list[str]:
    left = {"sample_cap", "outside_month", "withdrawn"}
    return [i.native_id for i in items if not (isinstance(i, Drop) and i.reason in left)]


def test_only_first_versions_are_asked_for(web: Web, settings: Settings) -> None:
    crawl(web, settings)
    asked = [target for _, _, target in web.requests if target.startswith("/src/")]
    assert asked
    assert all(target.endswith("v1") for target in asked)


def test_a_crawl_that_is_given_up_leaves_no_process(web: Web, settings: Settings) -> None:
    sites = {key: web.urls[key] for key in INFO.sites}
    settings = settings.model_copy(update={"sites": sites})
    before = psutil.Process().children()
    items = fetch_month(MONTH, CrawlContext(settings, Fetcher(settings, INFO.sites, 0)))
    next(item for item in items if isinstance(item, Document))
    assert len(psutil.Process().children()) == len(before) + 1
    items.close()  # type: ignore[attr-defined]
    assert psutil.Process().children() == before
