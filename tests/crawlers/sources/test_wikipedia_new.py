import json
from collections import Counter
from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import pytest

from core.errors import SourceUnavailable
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import Failure, Repeat
from crawlers.crawling.crawl import crawl_partition
from crawlers.wikipedia_new import FIRST_LOGGED
from simulator.server import Fault, Web, serve
from simulator.wiki import ODDITIES
from simulator.world import World
from tests.crawlers.conftest import Crawl, count_drops, documents_of, drops_of, rows_of
from tests.crawlers.sources.conftest import Whole

MONTH = Month("2024-02")
WORLD = World(11, Month("2024-01"), Month("2024-04"), stories_per_month=24)


def _text_of(number: int, month: Month = MONTH) -> str:
    blocks = list(WORLD.story(month, "wikipedia_new", number).paragraphs)
    if len(blocks) > 2:
        blocks.insert(-1, "Aftermath")
    return "\n\n".join(blocks)


def test_texts_are_the_stories_of_the_month_word_for_word(whole: Whole) -> None:
    found = {document.title: document for document in documents_of(whole.items)}
    for number in range(WORLD.stories_per_month):
        title = WORLD.story(MONTH, "wikipedia_new", number).title
        assert found.pop(title).text == _text_of(number)
    assert [document.text for document in found.values()] == ["Too short."]  # cleaning drops it


def test_every_page_of_the_log_is_accounted_for(whole: Whole) -> None:
    items = whole.items
    assert len(items) == len({item.native_id for item in items}) == 24 + len(ODDITIES)
    assert count_drops(items) == {
        "redirect_page": 1, "disambiguation": 1, "deleted": 1, "withdrawn": 1, "suppressed": 2,
    }  # fmt: skip


def test_documents_come_by_their_creation(whole: Whole) -> None:
    documents = documents_of(whole.items)
    assert [d.event_time for d in documents] == sorted(d.event_time for d in documents)
    for document in documents:
        assert document.event_time <= document.text_as_of
        assert (document.date_kind, document.licence) == ("created", "CC-BY-SA-4.0")
        assert document.cluster_id == f"page:{document.native_id}"


def test_a_row_past_the_window_is_counted_not_kept(crawl: Crawl, web: Web) -> None:
    row = {"logid": 1, "logpage": 9, "ns": 0, "title": "A", "timestamp": "2024-03-01T00:00:00Z"}
    body = json.dumps({"batchcomplete": True, "query": {"logevents": [row]}}).encode()
    web.faults.append(Fault("status", "wikipedia", "logevents", 1, 200, body=body))
    assert [(d.native_id, d.reason) for d in drops_of(crawl())] == [("9", "outside_month")]


def test_texts_are_asked_for_in_batches(crawl: Crawl, web: Web) -> None:
    crawl()
    queries = [parse_qs(urlsplit(target).query) for _, _, target in web.requests]
    batches = [query["revids"][0].split("|") for query in queries if "revids" in query]
    assert max(map(len, batches)) > 20 and all(len(batch) <= 50 for batch in batches)
    # Pages not edited since the month need no request of their own.
    single = [query for query in queries if "rvstart" in query]
    assert len(single) == WORLD.stories_per_month / 2


def test_a_text_that_goes_between_two_requests_is_a_drop(crawl: Crawl, web: Web) -> None:
    web.faults.append(
        Fault("status", "wikipedia", "revids", 1, 200, body=b'{"query":{"pages":[]}}')
    )
    items = crawl()
    assert not documents_of(items)
    assert "is gone" in next(d.detail for d in drops_of(items) if d.native_id == "1001000")


def test_a_row_met_again_on_the_next_page_of_the_log_is_a_repeat(crawl: Crawl, web: Web) -> None:
    site = web.sites["wikipedia"]
    site.quirks["moving_items"] = 1
    items = crawl()
    repeats = [item for item in items if isinstance(item, Repeat)]
    assert len(repeats) == 1 and site.quirks["moving_items"] == 0
    assert len(items) == 24 + len(ODDITIES) + 1
    assert len(documents_of(items)) == 25


def test_one_page_that_cannot_be_had_is_a_failure_and_the_others_are_kept(
    crawl: Crawl, web: Web
) -> None:
    again = {"Retry-After": "0"}
    web.faults.append(Fault("status", "wikipedia", "pageids=1001000&.*rvstart", 5, 503, again))
    items = crawl()
    failed = [item for item in items if isinstance(item, Failure)]
    assert [(item.native_id, item.reason) for item in failed] == [("1001000", "http_5xx")]
    assert len(documents_of(items)) == 24 and len(items) == 24 + len(ODDITIES)


def test_a_batch_of_texts_that_cannot_be_had_fails_page_by_page(crawl: Crawl, web: Web) -> None:
    again = {"Retry-After": "0"}
    web.faults.append(Fault("status", "wikipedia", "revids", 5, 503, again))
    items = crawl()
    assert {item.reason for item in items if isinstance(item, Failure)} == {"http_5xx"}
    assert len(items) == 24 + len(ODDITIES)


def test_german_articles_come_from_the_german_wiki(crawl: Crawl) -> None:
    documents = documents_of(crawl(languages=("de",)))
    german = WORLD.in_german()
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
    documents = documents_of(crawl(languages=("en", "de"), limit=7))
    assert Counter(document.language for document in documents) == {"en": 4, "de": 3}


OLD = FIRST_LOGGED - 1  # before the creation log


@pytest.fixture
def old(settings: Settings) -> Iterator[Settings]:
    with serve(World(11, Month("2018-05"), Month("2018-08"), stories_per_month=24)) as running:
        yield settings.model_copy(update={"sites": running.urls})


@pytest.mark.parametrize("language", ["en", "de"])
def test_months_before_the_log_come_from_the_dumps(
    language: str, crawl: Crawl, old: Settings
) -> None:
    items = crawl(OLD, old, languages=(language,))
    documents = documents_of(items)
    assert len(documents) == 26  # the dump shows titles that the log hides
    assert len(items) == 24 + len(ODDITIES)
    for document in documents:
        assert document.event_time in OLD and document.text_as_of < OLD.end
    reasons = count_drops(items)
    assert reasons["deleted"] == 1 and reasons["redirect_page"] == 1


def test_a_month_that_no_dump_holds_is_no_empty_month(crawl: Crawl) -> None:
    with pytest.raises(SourceUnavailable, match="has no file with 2018-06"):
        crawl(OLD)


def test_a_partition_of_two_languages_accounts_for_every_page(own: Settings, store: Store) -> None:
    both = own.model_copy(update={"languages": {"wikipedia_new": ("en", "de")}})
    rows = rows_of(store, crawl_partition("wikipedia_new", MONTH, store, both))
    assert Counter(row["language"] for row in rows) == {"en": 24, "de": 24}
    assert len({row["document_id"] for row in rows}) == 48
