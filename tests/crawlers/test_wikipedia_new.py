"""New articles: the simulated wiki over loopback HTTP, text compared with what the world wrote."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from core.corpus import read_documents
from core.errors import SourceChanged, UsageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from crawlers.contract import CrawlContext, Document, Drop
from crawlers.crawl import crawl_partition
from crawlers.http import Fetcher
from crawlers.wikipedia_new import FIRST_MONTH, INFO, fetch_month
from simulator.server import Fault, Web, serve
from simulator.wiki import ODDITIES
from simulator.world import World

MONTH = Month("2024-02")
WORLD = World(11, Month("2024-01"), Month("2024-04"), stories_per_month=24)
Crawl = Callable[..., list[Document | Drop]]


@pytest.fixture
def web() -> Iterator[Web]:
    with serve(WORLD) as running:
        yield running


@pytest.fixture
def crawl(settings: Settings, web: Web) -> Crawl:
    own = settings.model_copy(update={"sites": web.urls})

    def run(month: Month = MONTH, **options: int) -> list[Document | Drop]:
        exempt = INFO.robots_exempt_paths
        fetcher = Fetcher(own, INFO.sites, 0, use_cache=False, robots_exempt_paths=exempt)
        return list(fetch_month(month, CrawlContext(own, fetcher, **options)))

    return run


def _documents(items: list[Document | Drop]) -> list[Document]:
    return [item for item in items if isinstance(item, Document)]


def _drops(items: list[Document | Drop]) -> list[Drop]:
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


def test_months_before_the_log_are_refused(crawl: Crawl, web: Web) -> None:
    with pytest.raises(UsageError, match="2018-06 is not in the creation log"):
        crawl(FIRST_MONTH - 1)
    assert not web.requests


def test_the_partition_seals_the_stories(settings: Settings, store: Store, web: Web) -> None:
    own = settings.model_copy(update={"sites": web.urls})
    seal = crawl_partition("wikipedia_new", MONTH, store, own)
    texts = {text for rows in read_documents(store, seal) for text in rows["text"].to_pylist()}
    assert seal.num_documents == WORLD.stories_per_month
    assert texts == {_text_of(number) for number in range(WORLD.stories_per_month)}
