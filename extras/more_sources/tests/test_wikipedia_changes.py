import datetime as dt
import json
from urllib.parse import parse_qs, urlsplit

import pytest

from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import CrawlContext, Failure
from crawlers.crawling.crawl import crawl_partition
from crawlers.web.fetcher import Fetcher
from extras.more_sources import wikipedia_changes
from extras.more_sources.wikipedia_changes import INFO, NUM_WINDOWS, _draw_windows
from simulator.server import Fault, Web
from simulator.sites.wikimedia import GermanWikipedia, Wikipedia
from simulator.wiki import TITLES, Wiki
from simulator.world import World
from tests.crawlers.conftest import Crawl, documents_of, reasons_of, rows_of
from tests.crawlers.sources.conftest import Whole

SITE_KINDS = (Wikipedia, GermanWikipedia)
MONTH = Month("2024-03")
WORLD = World(11, Month("2024-01"), Month("2024-05"), stories_per_month=24)


def _changed_pages(month: Month = MONTH) -> set[str]:
    wiki = Wiki(WORLD)
    return {
        str(page.page_id)
        for page in wiki.pages_edited(month)
        if page.namespace == 0 and page.oddity != "deleted"
        for row in page.revisions[1:]
        if row.timestamp in month and not row.is_minor
    }


@pytest.fixture
def few_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows of half a day and more; each takes a request."""
    monkeypatch.setattr(wikipedia_changes, "NUM_WINDOWS", 48)


def test_without_a_sample_every_changed_article_is_there(whole: Whole) -> None:
    documents = documents_of(whole.items)
    assert {document.native_id for document in documents} == _changed_pages()
    assert len(documents) > len(TITLES)


def test_each_text_is_the_one_right_after_the_edit(whole: Whole) -> None:
    wiki = Wiki(WORLD)
    for document in documents_of(whole.items):
        page = wiki.page(int(document.native_id))
        assert page is not None
        [row] = [row for row in page.revisions if str(row.revision_id) == document.version_id]
        assert document.event_time == document.text_as_of == row.timestamp
        assert document.event_time in MONTH and row != page.revisions[0] and not row.is_minor
        assert document.date_kind == "revised" and document.licence == "CC-BY-SA-4.0"
        assert "See also" not in document.text and "Reflist" not in document.text


def test_a_sample_draws_windows_by_the_seed_and_stops_when_full(crawl: Crawl, web: Web) -> None:
    first, again, other = (crawl(limit=6, seed=seed) for seed in (1, 1, 2))
    ids = [
        [document.native_id for document in documents_of(items)] for items in (first, again, other)
    ]
    assert ids[0] == ids[1] != ids[2]
    assert len(ids[0]) == len(ids[2]) == 6
    asked = [target for _, _, target in web.requests]
    assert sum("allrevisions" in target for target in asked) < 3 * NUM_WINDOWS / 4
    queries = [parse_qs(urlsplit(target).query) for target in asked if "revids=" in target]
    assert max(len(query["revids"][0].split("|")) for query in queries) <= 6


def test_the_windows_of_a_sample_cover_the_month_once(settings: Settings) -> None:
    context = CrawlContext(settings, Fetcher(settings, {}, 0), max_bytes=1, seed=3)
    windows = sorted(_draw_windows(MONTH, context))
    assert len(windows) == NUM_WINDOWS
    assert windows[0][0] == MONTH.start and windows[-1][1] == MONTH.end
    for (_, end), (start, _) in zip(windows, windows[1:], strict=False):
        assert end == start
    # Not at the full hour, when bots start.
    assert len({start.minute for start, _ in windows}) > 30


@pytest.mark.usefixtures("few_windows")
def test_a_sample_that_is_never_full_has_the_whole_month(crawl: Crawl) -> None:
    assert {d.native_id for d in documents_of(crawl(max_bytes=10**9))} == _changed_pages()


def test_the_month_is_half_open_at_the_second(whole: Whole) -> None:
    queries = [parse_qs(urlsplit(target).query) for target in whole.targets]
    [window] = {
        (query["arvstart"][0], query["arvend"][0]) for query in queries if "arvstart" in query
    }
    assert window == ("2024-03-01T00:00:00Z", "2024-03-31T23:59:59Z")


@pytest.mark.usefixtures("few_windows")
def test_a_batch_that_cannot_be_had_fails_and_the_rest_is_kept(crawl: Crawl, web: Web) -> None:
    again = {"Retry-After": "0"}
    web.faults.append(Fault("status", "wikipedia", "revids", 5, 503, again))
    items = crawl(max_bytes=10**9)
    failed = [item for item in items if isinstance(item, Failure)]
    assert failed and {item.reason for item in failed} == {"http_5xx"}
    kept = {document.native_id for document in documents_of(items)}
    assert kept | {item.native_id for item in failed} == _changed_pages()


def test_hidden_and_vanished_revisions_are_dropped(crawl: Crawl, web: Web, whole: Whole) -> None:
    hidden = {"main": {"texthidden": True}}
    first, second = sorted(_changed_pages())[:2]
    wiki = Wiki(WORLD)
    page = wiki.page(int(first))
    assert page is not None
    ids = {d.native_id: d.version_id for d in documents_of(whole.items)}
    row = {"revid": int(ids[first] or 0), "timestamp": "2024-03-02T00:00:00Z", "slots": hidden}
    answer = {
        "query": {
            "badrevids": {str(ids[second]): {"revid": int(ids[second] or 0), "missing": True}},
            "pages": [{"pageid": int(first), "ns": 0, "title": "A", "revisions": [row]}],
        }
    }
    body = json.dumps(answer).encode()
    web.faults.append(Fault("status", "wikipedia", "revids", 100, 200, body=body))
    drops = reasons_of(crawl())
    assert (drops[first], drops[second]) == ("suppressed", "deleted")


def test_german_changes_come_from_the_german_wiki(crawl: Crawl) -> None:
    documents = documents_of(crawl(languages=("de",)))
    assert len(documents) > 20
    assert {document.language for document in documents} == {"de"}
    for document in documents:
        assert document.native_id.startswith("de:")
        assert not any(word in document.text for word in ("Einzelnachweise", "Weblinks", "ISBN"))


@pytest.mark.usefixtures("few_windows")
def test_the_partition_is_sealed_within_the_default_volume(own: Settings, store: Store) -> None:
    seal = crawl_partition("wikipedia_changes", MONTH, store, own)
    assert INFO.monthly_bytes == 23_000_000
    rows = rows_of(store, seal)
    assert {row["native_id"] for row in rows} <= _changed_pages() and len(rows) > 20
    assert all(row["event_time"] >= dt.datetime(2024, 3, 1, tzinfo=dt.UTC) for row in rows)
