import datetime as dt
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from core.errors import ItemFailed, SourceChanged, UsageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import CrawlContext, Document
from crawlers.crawling.crawl import crawl_partition
from crawlers.web.fetcher import Fetcher
from extras.more_sources import global_voices
from extras.more_sources.global_voices import INFO, fetch_month, find_note
from extras.more_sources.simulator.global_voices import UTC_OFFSET, Site
from simulator.news import Article
from simulator.server import Fault, Web, serve_sites
from simulator.world import World
from tests.crawlers.conftest import Crawl, count_drops, documents_of, rows_of
from tests.crawlers.sources.conftest import Whole

MONTH = Month("2024-02")
WORLD = World(11, Month("2024-01"), Month("2024-05"), stories_per_month=24)
WEIRD = (None, [], {}, 0, -1.5, "", True, "x", [None], [{}], [[]], {"a": []}, "\ud800", 10**30, "1")


@pytest.fixture
def web(site: Site) -> Iterator[Web]:
    with serve_sites([site, Site(WORLD, "fr")]) as running:
        yield running


def _ordinary(site: Site, month: Month = MONTH) -> list[Article]:
    return [article for article in site.newsroom.of_month(month) if not article.oddity]


def _answer(rows: object, **headers: str) -> Fault:
    counts = {"X-WP-Total": "1", "X-WP-TotalPages": "1", **headers}
    return Fault("status", "global_voices", "posts", 1, 200, counts, json.dumps(rows).encode())


def _post(**fields: object) -> dict[str, object]:
    text = "A story of its own, long enough to be kept by the gate that all texts pass. " * 3
    usual: dict[str, object] = {
        "id": 5, "date_gmt": "2024-02-10T10:00:00", "modified_gmt": "2024-02-10T10:00:00",
        "link": "https://globalvoices.org/2024/02/10/a/", "title": {"rendered": "A"},
        "content": {"rendered": f"<p>{text}</p>", "protected": False},
    }  # fmt: skip
    return {**usual, **fields}


def test_texts_are_the_stories_of_the_month_word_for_word(whole: Whole, site: Site) -> None:
    found = {document.title: document for document in documents_of(whole.items)}
    for article in _ordinary(site):
        assert found.pop(article.title).text == article.text
    assert len(found) == 2  # a round-up of one line, which is too short, and a sister project's
    assert any("Rising Voices" in document.text for document in found.values())


def test_every_post_of_the_list_is_accounted_for(whole: Whole) -> None:
    items = whole.items
    assert len(items) == len({item.native_id for item in items})
    drops = count_drops(items)
    assert drops.pop("outside_month") == 3  # of the day before and of the day after
    assert drops == {"suppressed": 1, "licence": 1, "edited_later": 1, "no_date": 1}


def test_the_month_is_in_utc_not_in_the_sites_own_time(whole: Whole, site: Site) -> None:
    """``date`` of the first story is of January, and its address says so; ``date_gmt`` decides."""
    documents = documents_of(whole.items)
    first = min(documents, key=lambda document: document.event_time)
    assert first.event_time == MONTH.start
    assert "/2024/01/31/" in first.url
    assert MONTH.start + UTC_OFFSET not in MONTH


def test_a_scheduled_post_is_not_older_than_its_publication(crawl: Crawl, web: Web) -> None:
    web.faults.append(_answer([_post(modified_gmt="2024-01-30T10:00:00")]))
    [document] = documents_of(crawl())
    assert document.text_as_of == document.event_time == dt.datetime(2024, 2, 10, 10, tzinfo=dt.UTC)


NOTES = (
    "This article was originally published by the Example Herald.",
    "This story originally appeared on Example.org on June 1, 2015.",
    "This post first appeared on openSample.",
    "This article first appeared in eldiario.es.",
    "This story was written by Jane Doe and originally appeared on Sampleweb.",
    (
        "This story by A. B. Doe was originally published by the Example Times and an edited "
        "version is republished here with permission."
    ),
    (
        "This article by J. Doe was first published on March 8, 2021, by Sample Free Press, "
        "and is published on Global Voices as part of a content-sharing agreement."
    ),
    "An edited version of this piece was first published in the Mail & Sample.",
    "A version of this story was first published in Spanish by Ejemplo.",
    (
        "Editor's note: this article, which was originally published in Nepali Times, has "
        "been edited."
    ),
    "This opinion piece was published by Sample Weekly on 3 May 2022.",
    "The following interview was previously posted on her website.",
    "It is republished here under a media partnership agreement.",
    "It is republished on Global Voices under a content partnership with Example News.",
    "The article, first published in The Sample, is reprinted with permission.",
    "Originally published on 350.example.",
    "Cross-posted from Example Dialogues.",
)
NO_NOTES = (
    "A version of this story first appeared on Advox, a project of Global Voices.",
    "This post was originally published on Global Voices on March 10, 2014.",
    "This article was originally published in Spanish on Global Voices.",
    "This article was originally published in Spanish.",
    "This story was originally published by Jane Doe on Rising Voices.",
    "Her novel was first published in 1961.",
    "The book was originally published by Sample Press and republished last year.",
    "This essay collection was originally published by Sample Press.",
    "This story is based on a report that was originally published by the Example Herald.",
    "The report was published by Example Watch in 2020, under an agreement with the city.",
    "The video was first posted on Facebook and reposted by others.",
    "The story was originally published by The Sample in 2018, and a trial followed.",
)


def test_stories_of_other_media_are_not_under_the_licence(crawl: Crawl, web: Web) -> None:
    for note in (NOTES[0], NO_NOTES[0]):
        body = f"<p><em>{note}</em></p><p>{'A sentence about the town. ' * 9}</p>"
        post = _post(content={"rendered": body, "protected": False})
        web.faults.append(_answer([post]))
        [item] = crawl()
        assert isinstance(item, Document) == (note in NO_NOTES), note


@pytest.mark.parametrize("note", [*NOTES, *NO_NOTES])
def test_a_note_is_known_by_its_words_and_its_place(note: str) -> None:
    blocks = [f"Paragraph {number} tells of the town and its harbour." for number in range(9)]
    for place in (0, 2, len(blocks)):
        text = "\n\n".join([*blocks[:place], note, *blocks[place:]])
        assert (find_note(text) is not None) == (note in NOTES), place
    within = "\n\n".join([*blocks, note, *blocks])
    has_agreement = "content" in note or "permission" in note or "agreement" in note
    assert find_note(within) is None or (note in NOTES and has_agreement)


def test_notes_are_found_in_time() -> None:
    for text in ("this story was ", "republished ", "originally published in Spanish "):
        assert find_note(text * 10_000) is None


def test_pages_of_the_list_are_read_to_the_last_and_never_beyond(
    crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond the last page WordPress answers 400."""
    whole = crawl()
    web.requests.clear()
    for size in (2, 10, 34, 100):  # 34 posts: the last page may be full
        monkeypatch.setattr(global_voices, "PER_PAGE", size)
        assert [i.native_id for i in crawl()] == [i.native_id for i in whole]
    queries = [parse_qs(urlsplit(target).query) for _, _, target in web.requests if "?" in target]
    assert len(queries) == 17 + 4 + 1 + 1


@pytest.mark.parametrize(
    "rows, headers",
    [
        ({"posts": []}, {}),
        *(([], {"X-WP-TotalPages": odd}) for odd in ("many", "9" * 5_000, "999999999", "-1")),
        ([], {"X-WP-TotalPages": "", "X-WP-Total": "9" * 5_000}),
    ],
)
def test_a_list_of_unknown_shape_stops_the_crawl(
    crawl: Crawl, web: Web, rows: object, headers: dict[str, str]
) -> None:
    web.faults.append(_answer(rows, **{"X-WP-Total": "0", **headers}))
    with pytest.raises(SourceChanged, match="X-WP-TotalPages"):
        crawl()


@pytest.mark.parametrize(
    "fields, reason",
    [
        ({"content": {"rendered": None}}, "parse_error"), ({"content": "text"}, "parse_error"),
        ({"id": "7"}, "parse_error"), ({"date_gmt": "0000-00-00T00:00:00"}, "no_date"),
        ({"date_gmt": None}, "no_date"), ({"date_gmt": 17}, "no_date"),
        ({"status": "private"}, "suppressed"),
        ({"content": {"rendered": "<p>" * 400_000, "protected": False}}, "too_large"),
    ],
)  # fmt: skip
def test_a_post_of_unknown_shape_is_dropped_alone(
    crawl: Crawl, web: Web, fields: dict[str, object], reason: str
) -> None:
    web.faults.append(_answer([_post(**fields), _post(id=6)]))
    assert [getattr(item, "reason", "kept") for item in crawl()] == [reason, "kept"]


@pytest.mark.parametrize("weird", WEIRD, ids=repr)
def test_no_value_of_any_field_stops_the_crawl(crawl: Crawl, web: Web, weird: object) -> None:
    usual = _post(status="publish", type="post")
    rows: list[dict[str, object]] = [{**usual, name: weird} for name in usual]
    rows += [{**usual, "content": {"rendered": "<p>a</p>", "protected": weird}}]
    rows += [{**usual, name: {"rendered": weird}} for name in ("content", "title")]
    for number, row in enumerate(rows):
        row["id"] = 100 + number if row["id"] == usual["id"] else row["id"]
    web.faults.append(_answer([*rows, weird]))
    items = crawl()
    assert len(items) == len(rows) + 1
    assert len(documents_of(items)) >= 4
    for document in documents_of(items):
        assert f"{document.text}{document.title}{document.attribution}".encode()


def test_hostile_fields_do_not_reach_the_document(crawl: Crawl, web: Web) -> None:
    title = (
        "<script>alert(1)</script>Rain &amp;lt;b&amp;gt; &#8217;ere<img src=x onerror=y>\x00\x1b"
    )
    web.faults.append(_answer([_post(title={"rendered": title}, link="javascript:alert(1)")]))
    [document] = documents_of(crawl())
    assert document.title == "Rain ’ere"
    assert document.url == "https://globalvoices.org/?p=5"


@pytest.mark.parametrize(
    "kind", ["text/html; charset=utf-16", "application/json", "text/html; charset=latin-1"]
)
def test_utf8_is_forced_where_the_header_has_no_charset_or_a_wrong_one(
    crawl: Crawl, web: Web, kind: str
) -> None:
    """JSON is always UTF-8."""
    web.faults.append(
        Fault("wrong_charset", "global_voices", "", 10, headers={"Content-Type": kind})
    )
    assert all("’" in document.title for document in documents_of(crawl()))


def test_languages_are_a_column_and_a_filter(crawl: Crawl, web: Web) -> None:
    english = documents_of(crawl())
    french = documents_of(crawl(languages=("fr",)))
    both = documents_of(crawl(languages=("en", "fr")))
    assert {document.language for document in french} == {"fr"}
    assert all(document.native_id.startswith("fr:8") for document in french)
    assert [d.native_id for d in both] == [d.native_id for d in (*english, *french)]
    assert "https://fr.globalvoices.org/" in french[0].url
    with pytest.raises(UsageError, match="no language code"):
        crawl(languages=("../fr",))


def test_a_page_of_the_list_that_gives_out_keeps_the_pages_before(
    own: Settings, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(global_voices, "PER_PAGE", 10)
    again = {"Retry-After": "0"}
    web.faults.append(Fault("status", "global_voices", "&page=3", 99, headers=again))
    items = []
    with pytest.raises(ItemFailed):
        for item in fetch_month(MONTH, CrawlContext(own, Fetcher(own, INFO.sites, 0))):
            items.append(item)
    assert len(items) == 20


def test_licence_and_attribution(whole: Whole) -> None:
    for document in documents_of(whole.items):
        assert document.licence == "CC-BY-3.0"
        assert document.title in document.attribution and document.url in document.attribution


def test_the_partition_seals_the_stories(settings: Settings, store: Store) -> None:
    """The French site has some English texts, which are dropped."""
    german = Site(WORLD.in_german(), "de")
    with serve_sites([Site(WORLD), german, Site(WORLD, "fr")]) as web:
        languages = {INFO.name: ("en", "de", "fr")}
        own = settings.model_copy(update={"sites": web.urls, "languages": languages})
        seal = crawl_partition("global_voices", MONTH, store, own)
    rows = rows_of(store, seal)
    assert Counter(row["language"] for row in rows) == {"en": 25, "de": 25}
    manifest: dict[str, Any] = seal.manifest
    assert manifest["dropped"]["wrong_language"] == 25
    assert manifest["status"] == "complete"
