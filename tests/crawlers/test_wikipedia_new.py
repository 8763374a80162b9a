"""New articles: the simulated wiki over loopback HTTP, text compared with what the world wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from core.corpus import read_documents
from core.errors import SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from core.storage import Store
from crawlers.contract import CrawlContext, Document, Drop, Failure, Item, Repeat
from crawlers.crawl import crawl_partition
from crawlers.http import Fetcher
from crawlers.wikipedia_new import FIRST_LOGGED, INFO, fetch_month
from simulator.german import GermanWorld
from simulator.server import Fault, Web, serve, serve_sites
from simulator.sites.wikipedia import Site
from simulator.wiki import ODDITIES
from simulator.world import World

MONTH = Month("2024-02")
WORLD = World(11, Month("2024-01"), Month("2024-04"), stories_per_month=24)
Crawl = Callable[..., list[Item]]


@pytest.fixture
def web() -> Iterator[Web]:
    with serve(WORLD) as running:
        yield running


@pytest.fixture
def crawl(settings: Settings, web: Web) -> Crawl:
    own = settings.model_copy(update={"sites": web.urls})

    def run(month: Month = MONTH, **options: Any) -> list[Item]:
        exempt = INFO.robots_exempt_paths
        sites = INFO.all_sites(options.get("languages", ()))
        fetcher = Fetcher(own, sites, 0, use_cache=False, robots_exempt_paths=exempt)
        return list(fetch_month(month, CrawlContext(own, fetcher, **options)))

    return run


def _documents(items: list[Item]) -> list[Document]:
    return [item for item in items if isinstance(item, Document)]


def _drops(items: list[Item]) -> list[Drop]:
    return [item for item in items if isinstance(item, Drop)]


def _text_of(number: int, month: Month = MONTH) -> str:
    blocks = list(WORLD.story(month, "wikipedia_new", number).paragraphs)
    if len(blocks) > 2:
        blocks.insert(-1, "Aftermath")
    return "\n\n".join(blocks)


def test_texts_are_the_stories_of_the_month_word_for_word(crawl: Crawl) -> None:
    found = {document.title: document for document in _documents(crawl())}
    for number in range(WORLD.stories_per_month):
        title = WORLD.story(MONTH, "wikipedia_new", number).title
        assert found.pop(title).text == _text_of(number)
    assert [document.text for document in found.values()] == ["Too short."]  # cleaning drops it


def test_every_page_of_the_log_is_accounted_for(crawl: Crawl) -> None:
    items = crawl()
    assert len(items) == len({item.native_id for item in items}) == 24 + len(ODDITIES)
    assert Counter(drop.reason for drop in _drops(items)) == {
        "redirect_page": 1, "disambiguation": 1, "deleted": 1, "withdrawn": 1, "suppressed": 2,
    }  # fmt: skip


def test_documents_are_of_the_month_and_older_than_its_end(crawl: Crawl) -> None:
    documents = _documents(crawl())
    assert [d.event_time for d in documents] == sorted(d.event_time for d in documents)
    for document in documents:
        assert document.event_time in MONTH
        assert document.event_time <= document.text_as_of < MONTH.end
        assert (document.date_kind, document.licence) == ("created", "CC-BY-SA-4.0")
        assert document.cluster_id == f"page:{document.native_id}"


def test_the_month_is_half_open(crawl: Crawl) -> None:
    """Story 0 is created in a month's first second, story 1 in its last."""
    this, following = ({d.native_id: d for d in _documents(crawl(m))} for m in (MONTH, MONTH + 1))
    assert not this.keys() & following.keys()
    assert min(d.event_time for d in this.values()) == MONTH.start
    assert min(d.event_time for d in following.values()) == MONTH.end


def test_a_row_past_the_window_is_counted_not_kept(crawl: Crawl, web: Web) -> None:
    row = {"logid": 1, "logpage": 9, "ns": 0, "title": "A", "timestamp": "2024-03-01T00:00:00Z"}
    body = json.dumps({"batchcomplete": True, "query": {"logevents": [row]}}).encode()
    web.faults.append(Fault("status", "wikipedia", "logevents", 1, 200, body=body))
    assert [(d.native_id, d.reason) for d in _drops(crawl())] == [("9", "outside_month")]


def test_texts_are_asked_for_in_batches(crawl: Crawl, web: Web) -> None:
    crawl()
    queries = [parse_qs(urlsplit(target).query) for _, _, target in web.requests]
    batches = [query["revids"][0].split("|") for query in queries if "revids" in query]
    assert max(map(len, batches)) > 20 and all(len(batch) <= 50 for batch in batches)
    # Pages not edited since the month need no request of their own.
    single = [query for query in queries if "rvstart" in query]
    assert len(single) == WORLD.stories_per_month / 2


def test_a_sample_is_drawn_by_the_seed_and_the_rest_is_counted(crawl: Crawl) -> None:
    whole = crawl()
    first, again, other = (crawl(limit=6, seed=seed) for seed in (1, 1, 2))
    ids = [[d.native_id for d in _documents(items)] for items in (first, again, other)]
    assert ids[0] == ids[1] != ids[2]
    assert len(ids[0]) == len(ids[2]) == 6
    assert {item.native_id for item in first} == {item.native_id for item in whole}
    assert sum(drop.reason == "sample_cap" for drop in _drops(first)) >= 12
    assert {d.text for d in _documents(first)} <= {d.text for d in _documents(whole)}


def test_a_limit_beyond_the_month_keeps_all(crawl: Crawl) -> None:
    kept = {d.native_id for d in _documents(crawl(limit=1000))}
    assert kept == {d.native_id for d in _documents(crawl())}


def test_a_text_that_goes_between_two_requests_is_a_drop(crawl: Crawl, web: Web) -> None:
    web.faults.append(
        Fault("status", "wikipedia", "revids", 1, 200, body=b'{"query":{"pages":[]}}')
    )
    items = crawl()
    assert not _documents(items)
    assert "is gone" in next(d.detail for d in _drops(items) if d.native_id == "1001000")


def test_an_unknown_log_row_stops_the_crawl(crawl: Crawl, web: Web) -> None:
    body = b'{"query":{"logevents":[{"logid":1,"logpage":"9","timestamp":"2024-02-01T00:00:00Z"}]}}'
    web.faults.append(Fault("status", "wikipedia", "logevents", 1, 200, body=body))
    with pytest.raises(SourceChanged, match="'logpage'"):
        crawl()


def test_the_partition_seals_the_stories(settings: Settings, store: Store, web: Web) -> None:
    own = settings.model_copy(update={"sites": web.urls})
    seal = crawl_partition("wikipedia_new", MONTH, store, own)
    texts = {text for rows in read_documents(store, seal) for text in rows["text"].to_pylist()}
    assert seal.num_documents == WORLD.stories_per_month
    assert texts == {_text_of(number) for number in range(WORLD.stories_per_month)}


def test_todays_text_is_never_given_for_an_old_creation(crawl: Crawl) -> None:
    """A peer fetches the page as it is rendered today, whatever month it was created in."""
    later = {story.paragraphs[0] for story in WORLD.stories(MONTH + 2, "wikipedia_new")}
    for document in _documents(crawl()):
        assert not any(paragraph in document.text for paragraph in later)
        assert document.text_as_of < MONTH.end


def test_a_row_met_again_on_the_next_page_of_the_log_is_a_repeat(settings: Settings) -> None:
    site = Site(WORLD)
    site.quirks["moving_items"] = 1
    with serve_sites([site]) as web:
        own = settings.model_copy(update={"sites": web.urls})
        fetcher = Fetcher(own, INFO.sites, 0, robots_exempt_paths=INFO.robots_exempt_paths)
        items = list(fetch_month(MONTH, CrawlContext(own, fetcher)))
    repeats = [item for item in items if isinstance(item, Repeat)]
    assert len(repeats) == 1 and site.quirks["moving_items"] == 0
    assert len(items) == 24 + len(ODDITIES) + 1
    assert len(_documents(items)) == 25


def test_an_empty_page_of_the_log_is_not_its_end(settings: Settings) -> None:
    site = Site(WORLD)
    site.quirks["empty_page"] = 1
    with serve_sites([site]) as web:
        own = settings.model_copy(update={"sites": web.urls})
        fetcher = Fetcher(own, INFO.sites, 0, robots_exempt_paths=INFO.robots_exempt_paths)
        items = list(fetch_month(MONTH, CrawlContext(own, fetcher)))
    assert len(_documents(items)) == 25 and site.quirks["empty_page"] == 0


def test_one_page_that_cannot_be_had_is_a_failure_and_the_others_are_kept(
    crawl: Crawl, web: Web
) -> None:
    again = {"Retry-After": "0"}
    web.faults.append(Fault("status", "wikipedia", "pageids=1001000&.*rvstart", 5, 503, again))
    items = crawl()
    failed = [item for item in items if isinstance(item, Failure)]
    assert [(item.native_id, item.reason) for item in failed] == [("1001000", "http_5xx")]
    assert len(_documents(items)) == 24 and len(items) == 24 + len(ODDITIES)


def test_a_batch_of_texts_that_cannot_be_had_fails_page_by_page(crawl: Crawl, web: Web) -> None:
    again = {"Retry-After": "0"}
    web.faults.append(Fault("status", "wikipedia", "revids", 5, 503, again))
    items = crawl()
    assert {item.reason for item in items if isinstance(item, Failure)} == {"http_5xx"}
    assert len(items) == 24 + len(ODDITIES)


def test_a_sample_of_bytes_ends_when_it_is_full(crawl: Crawl) -> None:
    whole = crawl()
    size = sum(len(document.text.encode()) for document in _documents(whole))
    items = crawl(max_bytes=size // 4)
    kept = sum(len(document.text.encode()) for document in _documents(items))
    assert size / 4 <= kept < size / 2
    assert {item.native_id for item in items} == {item.native_id for item in whole}
    assert any(isinstance(item, Drop) and item.reason == "sample_cap" for item in items)


def test_german_articles_come_from_the_german_wiki(crawl: Crawl) -> None:
    documents = _documents(crawl(languages=("de",)))
    german = GermanWorld.of(WORLD)
    texts = {document.title: document.text for document in documents}
    for number in range(24):
        story = german.story(MONTH, "wikipedia_new", number)
        blocks = list(story.paragraphs)
        if len(blocks) > 2:
            blocks.insert(-1, "Nachwirkung")
        assert texts[story.title] == "\n\n".join(blocks)
    assert {document.language for document in documents} == {"de"}
    assert all(document.native_id.startswith("de:") for document in documents)


def test_a_sample_is_shared_by_the_languages(crawl: Crawl) -> None:
    documents = _documents(crawl(languages=("en", "de"), limit=7))
    assert Counter(document.language for document in documents) == {"en": 4, "de": 3}


OLD = FIRST_LOGGED - 1  # before the creation log


@pytest.fixture
def old(settings: Settings) -> Iterator[Callable[..., list[Item]]]:
    world = World(11, Month("2018-05"), Month("2018-08"), stories_per_month=24)
    with serve(world) as running:
        own = settings.model_copy(update={"sites": running.urls})

        def run(**options: Any) -> list[Item]:
            sites = INFO.all_sites(options.get("languages", ()))
            fetcher = Fetcher(own, sites, 0, robots_exempt_paths=INFO.robots_exempt_paths)
            return list(fetch_month(OLD, CrawlContext(own, fetcher, **options)))

        yield run


@pytest.mark.parametrize("language", ["en", "de"])
def test_months_before_the_log_come_from_the_dumps(
    language: str, old: Callable[..., list[Item]]
) -> None:
    items = old(languages=(language,))
    documents = _documents(items)
    assert len(documents) == 26  # the dump does not conceal what the log does
    assert len(items) == 24 + len(ODDITIES)
    for document in documents:
        assert document.event_time in OLD and document.text_as_of < OLD.end
    reasons = Counter(drop.reason for drop in _drops(items))
    assert reasons["deleted"] == 1 and reasons["redirect_page"] == 1


def test_backfill_goes_to_2017() -> None:
    assert INFO.first_month == Month("2017-01")
    assert INFO.lacks(Month("2016-12")) and not INFO.lacks(Month("2017-01"))


def test_a_month_that_no_dump_holds_is_no_empty_month(crawl: Crawl) -> None:
    with pytest.raises(SourceUnavailable, match="has no file with 2018-06"):
        crawl(OLD)


def test_a_partition_of_two_languages_accounts_for_every_page(
    settings: Settings, store: Store, web: Web
) -> None:
    languages = {"wikipedia_new": ("en", "de")}
    own = settings.model_copy(update={"sites": web.urls, "languages": languages})
    seal = crawl_partition("wikipedia_new", MONTH, store, own)
    rows = [row for table in read_documents(store, seal) for row in table.to_pylist()]
    assert Counter(row["language"] for row in rows) == {"en": 24, "de": 24}
    assert len({row["document_id"] for row in rows}) == 48
