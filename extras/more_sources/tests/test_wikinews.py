import datetime as dt
import json

import pytest

from core.errors import UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.apis.mediawiki import Edition, Revision
from crawlers.contract import Document, Drop, Failure, Repeat
from crawlers.crawling.crawl import crawl_partition
from extras.more_sources.wikinews import INFO, _document
from simulator.server import Fault, Web
from simulator.sites.wikimedia import ODDITIES, NewsWiki, Wikinews
from simulator.world import World
from tests.crawlers.conftest import Crawl, count_drops, documents_of
from tests.crawlers.sources.conftest import Whole

Site = Wikinews
MONTH = Month("2024-02")
WORLD = World(11, Month("2024-01"), Month("2024-04"), stories_per_month=24)


def _text_of(native_id: str) -> str:
    number = int(native_id) % 1000
    return "\n\n".join(WORLD.story(MONTH, "wikinews", number).paragraphs)


def test_articles_are_the_stories_word_for_word_with_linked_names(whole: Whole) -> None:
    documents = documents_of(whole.items)
    assert len(documents) == WORLD.stories_per_month
    for document in documents:
        assert document.text == _text_of(document.native_id)


def test_text_is_that_of_the_month_not_of_todays_archive(whole: Whole) -> None:
    for document in documents_of(whole.items):
        assert "Later." not in document.text
        assert document.text_as_of < MONTH.end


def test_the_day_is_that_of_the_category(whole: Whole) -> None:
    wiki = NewsWiki(WORLD)
    for document in documents_of(whole.items):
        category = f"Category:{document.event_time:%B} {document.event_time.day}, 2024"
        assert int(document.native_id) in {page.page_id for page in wiki.members(category)}
        assert (document.date_kind, document.extra) == ("published", {"date_precision": "day"})


def test_what_is_no_published_article_is_dropped_with_its_reason(whole: Whole) -> None:
    items = whole.items
    assert len(items) == WORLD.stories_per_month + len(ODDITIES)
    reasons = {"redirect_page": 1, "withdrawn": 2, "suppressed": 1, "disambiguation": 1}
    assert count_drops(items) == reasons


def test_an_article_of_two_days_is_a_repeat(crawl: Crawl, web: Web) -> None:
    page = next(page for page in NewsWiki(WORLD).pages_created(MONTH) if not page.oddity)
    row = {"pageid": page.page_id, "ns": 0, "title": page.title}
    body = json.dumps({"batchcomplete": True, "query": {"categorymembers": [row]}}).encode()
    web.faults.append(Fault("status", "wikinews", "February\\+1%2C", 1, 200, body=body))
    web.faults.append(Fault("status", "wikinews", "February\\+2%2C", 1, 200, body=body))
    repeats = [item.native_id for item in crawl() if isinstance(item, Repeat)]
    assert str(page.page_id) in repeats


def test_a_batch_that_cannot_be_had_fails_article_by_article(crawl: Crawl, web: Web) -> None:
    again = {"Retry-After": "0"}
    web.faults.append(Fault("status", "wikinews", "pageids=.*pageprops", 5, 503, again))
    items = crawl()
    assert {item.reason for item in items if isinstance(item, Failure)} == {"http_5xx"}
    assert len(items) >= WORLD.stories_per_month


def test_the_source_has_ended(settings: Settings, store: Store) -> None:
    assert INFO.lacks(Month("2026-05")) == "wikinews ended with 2026-04"
    assert not INFO.lacks(Month("2026-04")) and not INFO.lacks(Month("2017-01"))
    with pytest.raises(UsageError, match="ended with 2026-04"):
        crawl_partition("wikinews", Month("2026-05"), store, settings)


def _article(text: str, at: str = "2024-02-05", language: str = "en") -> Document | Drop:
    moment = dt.datetime.fromisoformat(at).replace(tzinfo=dt.UTC)
    edition = Edition(language, "wikinews", "wikinews", is_home=language == "en")
    return _document(edition, moment, "A", Revision(7, 70, moment, text, False, moment))


def test_each_article_has_the_licence_of_its_day() -> None:
    found = [_article("Text.{{publish}}", at) for at in ("2024-12-15", "2024-12-16")]
    licences = [item.licence for item in found if isinstance(item, Document)]
    assert licences == ["CC-BY-2.5", "CC-BY-4.0"]
    document = found[0]
    assert isinstance(document, Document) and document.attribution.startswith("Wikinews")
    assert document.url == "https://en.wikinews.org/w/index.php?oldid=70"


@pytest.mark.parametrize(
    ("text", "is_published"),
    [
        ("A.{{publish}}", True),
        ("A.{{Publish}}{{archived}}", True),
        ("A.{{ publish }}", True),
        ("A.{{develop}}", False),
        ("A.{{review}}", False),
        ("A.{{publishing history}}", False),
    ],
)
def test_published_is_what_the_text_of_the_time_says(text: str, is_published: bool) -> None:
    assert isinstance(_article(text), Document) == is_published


def test_the_german_edition_has_its_own_customs(crawl: Crawl) -> None:
    text = "Heute.{{Artikelstatus: Fertig|1}}\n== Quellen ==\n* x\n== Themenverwandte Artikel ==\n"
    found = _article(text, "2025-01-05", "de")
    assert isinstance(found, Document)
    assert (found.text, found.licence, found.native_id) == ("Heute.", "CC-BY-2.5", "de:7")
    with pytest.raises(UsageError, match="known for de, en only, not for pl"):
        crawl(languages=("en", "pl"))
