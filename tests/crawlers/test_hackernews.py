"""A month of Hacker News, crawled over loopback HTTP."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from core.errors import AccessRefused, SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers import hackernews, pacing
from crawlers.contract import CrawlContext, Document, Drop, Failure, Item, Repeat, load_crawler
from crawlers.hackernews import INFO, fetch_month
from crawlers.http import Fetcher
from simulator.server import Fault, Web, serve_sites
from simulator.sites import hackernews as simulated
from simulator.world import World

from .conftest import marked, token_f1

MONTH = Month("2023-02")
STORIES = 12


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.002)


@pytest.fixture(scope="module")
def world() -> World:
    return World(0, Month("2023-01"), Month("2023-03"), stories_per_month=STORIES)


@pytest.fixture
def site(world: World) -> simulated.Site:
    return simulated.Site(world)


@pytest.fixture
def web(site: simulated.Site) -> Iterator[Web]:
    with serve_sites([site]) as web:
        yield web


def crawl(web: Web, settings: Settings, month: Month = MONTH, **choices: Any) -> list[Item]:
    settings = settings.model_copy(update={"sites": web.urls})
    fetcher = Fetcher(settings, INFO.sites, 0)
    return list(fetch_month(month, CrawlContext(settings, fetcher, **choices)))


def documents(items: list[Item]) -> dict[str, Document]:
    return {item.native_id: item for item in items if isinstance(item, Document)}


def drops(items: list[Item]) -> dict[str, str]:
    return {item.native_id: item.reason for item in items if isinstance(item, Drop)}


def windows(web: Web) -> list[str]:
    """Return the window of time of each search."""
    parts = [urlsplit(target) for _, _, target in web.requests]
    return [parse_qs(part.query)["numericFilters"][0] for part in parts if "search" in part.path]


def asked_items(web: Web) -> list[str]:
    return [target for _, _, target in web.requests if "/items/" in target]


def fake(web: Web, body: object, pattern: str, times: int = 99, status: int = 200) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    web.faults.append(Fault("status", "hackernews", pattern, times, status, {}, data))


def only(web: Web, *hits: dict[str, Any]) -> None:
    """Let the month's first window have these stories, and the others none."""
    fake(web, {"hits": hits, "nbHits": len(hits)}, "search.*3D1675209600")
    fake(web, {"hits": [], "nbHits": 0}, "search")


def hit(number: int = 1, **more: Any) -> dict[str, Any]:
    row = {"objectID": str(number), "title": "T", "created_at_i": 1675209600, "num_comments": 0}
    return {**row, "story_text": "Text", **more}


# What a document is


def test_a_document_is_a_story_with_the_comments_on_it(
    web: Web, settings: Settings, site: simulated.Site
) -> None:
    found = documents(crawl(web, settings))
    assert len(found) == STORIES
    for document in found.values():
        story = site.stories[int(document.native_id)]
        comments = [c for c in story.comments if c.body and c.created_at < MONTH.end]
        texts = [story.text, *(comment.text for comment in comments)]
        assert document.text == "\n\n".join(text for text in texts if text)
        assert document.title == story.title
        assert document.event_time == story.created_at
        assert document.extra == {"has_text": bool(story.text), "num_comments": len(comments)}


def test_a_document_says_where_it_is_from(web: Web, settings: Settings) -> None:
    document = documents(crawl(web, settings))["23020000100"]
    assert document.url == "https://news.ycombinator.com/item?id=23020000100"
    assert document.attribution == f"users of Hacker News: {document.url}"
    assert document.licence == "LicenseRef-unknown"
    assert (document.date_kind, document.cluster_id) == ("created", "story:23020000100")
    assert document.event_time < document.text_as_of < MONTH.end < document.retrieved_at


def test_no_user_is_named(web: Web, settings: Settings) -> None:
    told = repr(crawl(web, settings))
    assert not [name for name in simulated._AUTHORS if f"{name}" in told]


def test_replies_to_comments_are_left_out(web: Web, settings: Settings) -> None:
    assert "A reply to a comment" not in repr(crawl(web, settings))


def test_entities_and_paragraphs_become_text(web: Web, settings: Settings) -> None:
    only(
        web,
        hit(
            story_text="a &lt; b &amp;&amp; c&#x2F;d<p><i>It&#x27;s</i> so<p>"
            "<pre><code>  x\n</code></pre>"
        ),
    )
    [document] = documents(crawl(web, settings)).values()
    assert document.text == "a < b && c/d\n\nIt's so\n\n  x"


@pytest.mark.parametrize("text", [None, "", "[dead]", "[deleted]", "[flagged]", 5])
def test_dead_deleted_and_null_comments_have_no_text(
    web: Web, settings: Settings, text: object
) -> None:
    only(web, hit(num_comments=3))
    good = {"id": 3, "created_at_i": 1675209700, "text": "Good"}
    bad = [{"id": 2, "created_at_i": 1675209601, "text": text}, None, {"dead": True, **good}]
    fake(web, {"id": 1, "children": [*bad, {"deleted": True}, good]}, "/items/1")
    [document] = documents(crawl(web, settings)).values()
    assert document.text == "Text\n\nGood"


def test_a_story_that_is_null_is_dropped(web: Web, settings: Settings) -> None:
    only(web, hit(1, num_comments=1), hit(2, title=None), hit(3, num_comments=1), hit(4))
    fake(web, b"null", "/items/1")
    fake(web, {"id": 3, "dead": True, "children": []}, "/items/3")
    items = crawl(web, settings)
    assert drops(items) == {"1": "deleted", "2": "deleted", "3": "deleted"}
    assert list(documents(items)) == ["4"]


def test_what_has_nothing_to_read_is_dropped_with_its_reason(web: Web, settings: Settings) -> None:
    assert drops(crawl(web, settings)) == {
        "23020001200": "empty",  # a link without comments
        "23020001300": "empty",  # all its comments were deleted
        "23020001400": "http_404",
    }


# Which month it is of


def test_the_month_is_half_open_in_utc(web: Web, settings: Settings) -> None:
    times = sorted(d.event_time.isoformat() for d in documents(crawl(web, settings)).values())
    assert times[0] == "2023-02-01T00:00:00+00:00"
    assert times[-1] == "2023-02-28T23:59:59+00:00"
    assert windows(web)[0] == "created_at_i>=1675209600,created_at_i<1675252800"
    assert windows(web)[-1].endswith("created_at_i<1677628800")


def test_a_month_ends_on_its_last_day_not_on_the_28th(web: Web, settings: Settings) -> None:
    found = documents(crawl(web, settings, Month("2023-01")))
    assert max(document.event_time.day for document in found.values()) == 31


def test_comments_made_after_the_month_are_left_out(web: Web, settings: Settings) -> None:
    found = documents(crawl(web, settings))
    assert all("Late." not in document.text for document in found.values())
    assert all(document.text_as_of < MONTH.end for document in found.values())


def test_epochs_are_utc_not_local_time(
    web: Web, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {key: each.event_time for key, each in documents(crawl(web, settings)).items()}
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset()
    try:
        found = documents(crawl(web, settings))
        assert {key: each.event_time for key, each in found.items()} == expected
    finally:
        monkeypatch.undo()
        time.tzset()


def test_old_months_can_be_filled_in(settings: Settings) -> None:
    month = Month("2017-01")
    with serve_sites([simulated.Site(World(0, month, month, stories_per_month=4))]) as web:
        assert len(documents(crawl(web, settings, month))) == 4


# Windows


def test_windows_are_split_until_they_fit_a_thousand_results(
    web: Web, settings: Settings, site: simulated.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = documents(crawl(web, settings))
    num_windows = len(windows(web))
    monkeypatch.setattr(simulated, "MAX_HITS", 2)
    monkeypatch.setattr(hackernews, "MAX_HITS", 2)
    monkeypatch.setattr(hackernews, "WINDOW_S", 31 * 86400)
    split = crawl(web, settings)
    texts = {key: document.text for key, document in whole.items()}
    assert {key: document.text for key, document in documents(split).items()} == texts
    assert not any(isinstance(item, Repeat) for item in split)
    assert len(windows(web)) - num_windows < 4 * len(whole)


def test_more_than_a_thousand_stories_are_all_found(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hackernews, "WINDOW_S", 31 * 86400)
    world = World(0, MONTH, MONTH, stories_per_month=1_500)
    with serve_sites([simulated.Site(world)]) as web:
        items = crawl(web, settings, limit=1)
    assert len(items) == 1_503
    assert Counter(drops(items).values())["sample_cap"] == 1_501


def test_a_second_that_does_not_fit_is_a_change_of_the_site(web: Web, settings: Settings) -> None:
    fake(web, {"hits": [hit()] * 1000, "nbHits": 5000}, "search")
    with pytest.raises(SourceChanged, match="in every second"):
        crawl(web, settings)
    assert len(windows(web)) < 20  # halving 12 hours takes 16 steps


def test_a_story_in_two_windows_counts_once(
    web: Web, settings: Settings, site: simulated.Site
) -> None:
    whole = documents(crawl(web, settings))
    site.quirks["moving_items"] = 5
    settings = settings.model_copy(update={"home": settings.home + "-other"})
    items = crawl(web, settings)
    assert documents(items).keys() == whole.keys()
    repeats = [item for item in items if isinstance(item, Repeat)]
    assert len(repeats) + Counter(drops(items).values())["outside_month"] == 5
    assert len(repeats) >= 4


# Samples and failures


def test_a_sample_depends_on_the_seed_alone(web: Web, settings: Settings) -> None:
    items = crawl(web, settings, limit=4)
    assert items == crawl(web, settings, limit=4)
    assert len(set(asked_items(web))) <= 7  # what the sample does not want is not fetched
    assert documents(items).keys() < documents(crawl(web, settings, limit=7)).keys()
    assert documents(items).keys() != documents(crawl(web, settings, limit=4, seed=1)).keys()


def test_a_sample_of_bytes_stops_in_time(web: Web, settings: Settings) -> None:
    sizes = [len(d.text.encode()) for d in documents(crawl(web, settings, max_bytes=5000)).values()]
    assert 5000 <= sum(sizes) < 5000 + max(sizes)


def test_a_story_without_comments_takes_no_request_of_its_own(web: Web, settings: Settings) -> None:
    only(web, hit(1), hit(2, story_text=None, num_comments=0))
    assert list(documents(crawl(web, settings))) == ["1"]
    assert asked_items(web) == []


def test_a_story_that_fails_costs_itself_only(web: Web, settings: Settings) -> None:
    web.faults.append(Fault("status", "hackernews", "/items/23020000100", 99, 500))
    items = crawl(web, settings)
    [failure] = [item for item in items if isinstance(item, Failure)]
    assert (failure.native_id, failure.reason) == ("23020000100", "http_5xx")
    assert len(documents(items)) == STORIES - 1


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"children": 5}', b'"x"'])
def test_an_item_that_cannot_be_read_costs_itself_only(
    web: Web, settings: Settings, body: bytes
) -> None:
    fake(web, body, "/items/23020000100")
    items = crawl(web, settings)
    assert drops(items)["23020000100"] == "parse_error"
    assert len(documents(items)) == STORIES - 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (hit(objectID=5), "parse_error"),
        (hit(objectID="<b>"), "parse_error"),
        (hit(created_at_i=None), "no_date"),
        (hit(created_at_i=10**18), "no_date"),
        (hit(created_at_i=1677628800), "outside_month"),
        (hit(story_text=None), "empty"),
    ],
)
def test_a_hit_that_cannot_be_used_costs_itself_only(
    web: Web, settings: Settings, row: dict[str, Any], reason: str
) -> None:
    only(web, row, hit(7))
    items = crawl(web, settings)
    assert list(drops(items).values()) == [reason]
    assert list(documents(items)) == ["7"]


@pytest.mark.parametrize("quirk", ["error_as_200", "empty_page", "extra_fields", "missing_fields"])
def test_a_quirk_of_the_search_costs_nothing(
    web: Web, settings: Settings, site: simulated.Site, quirk: Any
) -> None:
    expected = {k: d.text for k, d in documents(crawl(web, settings)).items()}
    site.quirks[quirk] = 3
    settings = settings.model_copy(update={"home": settings.home + "-other"})
    assert {k: d.text for k, d in documents(crawl(web, settings)).items()} == expected
    assert site.quirks[quirk] == 0


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"hits": 5, "nbHits": 1}', b"<html>"])
def test_what_is_no_list_is_a_change_of_the_source(
    web: Web, settings: Settings, body: bytes
) -> None:
    fake(web, body, "search")
    with pytest.raises(SourceChanged):
        crawl(web, settings)


def test_empty_pages_without_end_are_no_month_without_stories(web: Web, settings: Settings) -> None:
    fake(web, {"hits": [], "nbHits": 9}, "search")
    with pytest.raises(SourceUnavailable, match="busy"):
        crawl(web, settings)


def test_robots_rules_are_kept(web: Web, settings: Settings, site: simulated.Site) -> None:
    site.robots = "User-agent: *\nDisallow: /api\n"
    with pytest.raises(AccessRefused, match=r"robots\.txt disallows"):
        crawl(web, settings)
    assert windows(web) == []


def test_titles_hold_no_markup(web: Web, settings: Settings) -> None:
    only(
        web, hit(title="Show HN: &lt;b class=x&gt;Bold&lt;/b&gt; <script>x</script>\u202eA &amp; B")
    )
    [document] = documents(crawl(web, settings)).values()
    assert document.title == "Show HN: Bold \u202eA & B"  # normalised with all titles later


def test_the_source_is_found_by_its_name() -> None:
    assert load_crawler("hackernews").INFO is INFO


@pytest.mark.parametrize(
    ("raw", "right"), marked("hackernews"), ids=lambda value: getattr(value, "stem", "")
)
def test_the_text_of_a_story_is_what_a_reader_sees(
    web: Web, settings: Settings, raw: Path, right: str
) -> None:
    """Each file is an item as the API gives it; the text beside it was written by hand."""
    item = json.loads(raw.read_bytes())
    row = hit(1, title=item["title"], story_text=item["text"], num_comments=len(item["children"]))
    only(web, row)
    fake(web, item, "/items/1")
    [document] = documents(crawl(web, settings)).values()
    assert token_f1(document.text, right) >= 0.95
