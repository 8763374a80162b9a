import json
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from core.errors import SourceChanged, SourceUnavailable
from core.month import Month
from core.settings import Settings
from crawlers import hackernews
from crawlers.contract import Repeat
from simulator.server import Fault, Web, serve_sites
from simulator.sites import hackernews as simulated
from simulator.world import World
from tests.crawlers.conftest import Crawl, by_id, marked, reasons_of, token_f1

MONTH = Month("2023-02")
STORIES = 12
WORLD = World(0, Month("2023-01"), Month("2023-03"), stories_per_month=STORIES)
Site = simulated.Site
WINDOW_S = hackernews.WINDOW_S


@pytest.fixture(autouse=True)
def one_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """List a month at once, in place of 56 requests."""
    monkeypatch.setattr(hackernews, "WINDOW_S", 31 * 86400)


@pytest.fixture
def windows_of_hours(one_window: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hackernews, "WINDOW_S", WINDOW_S)


def windows(web: Web) -> list[str]:
    parts = [urlsplit(target) for _, _, target in web.requests]
    return [parse_qs(part.query)["numericFilters"][0] for part in parts if "search" in part.path]


def asked_items(web: Web) -> list[str]:
    return [target for _, _, target in web.requests if "/items/" in target]


def fake(web: Web, body: object, pattern: str, times: int = 99, status: int = 200) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    web.faults.append(Fault("status", "hackernews", pattern, times, status, {}, data))


def only(web: Web, *hits: dict[str, Any]) -> None:
    fake(web, {"hits": hits, "nbHits": len(hits)}, "search.*3D1675209600")
    fake(web, {"hits": [], "nbHits": 0}, "search")


def hit(number: int = 1, **more: Any) -> dict[str, Any]:
    row = {"objectID": str(number), "title": "T", "created_at_i": 1675209600, "num_comments": 0}
    return {**row, "story_text": "Text", **more}


def test_a_document_is_a_story_with_the_comments_on_it(crawl: Crawl, site: simulated.Site) -> None:
    items = crawl()
    found = by_id(items)
    assert len(found) == STORIES
    for document in found.values():
        story = site.stories[int(document.native_id)]
        comments = [c for c in story.comments if c.body and c.created_at < MONTH.end]
        texts = [story.text, *(comment.text for comment in comments)]
        assert document.text == "\n\n".join(text for text in texts if text)
        assert document.title == story.title
        assert document.event_time == story.created_at
        assert document.category == ("ask" if story.title.startswith("Ask HN: ") else "story")
        assert document.extra == {"has_text": bool(story.text), "num_comments": len(comments)}
    document = found["23020000100"]
    assert document.url == "https://news.ycombinator.com/item?id=23020000100"
    assert document.attribution == f"users of Hacker News: {document.url}"
    assert document.licence == "LicenseRef-unknown"
    assert (document.date_kind, document.cluster_id) == ("created", "story:23020000100")
    assert document.event_time < document.text_as_of < MONTH.end < document.retrieved_at
    assert not [name for name in simulated._AUTHORS if name in repr(items)]
    assert reasons_of(items) == {
        "23020001200": "empty",  # a link without comments
        "23020001300": "empty",  # all its comments were deleted
        "23020001400": "http_404",
    }


def test_entities_and_paragraphs_become_text(crawl: Crawl, web: Web) -> None:
    only(
        web,
        hit(
            story_text="a &lt; b &amp;&amp; c&#x2F;d<p><i>It&#x27;s</i> so<p>"
            "<pre><code>  &lt;br&gt;\n</code></pre>"
        ),
    )
    [document] = by_id(crawl()).values()
    assert document.text == "a < b && c/d\n\nIt's so\n\n  <br>"
    assert document.is_plain


@pytest.mark.parametrize("text", [None, "", "[dead]", "[deleted]", "[flagged]", 5])
def test_dead_deleted_and_null_comments_have_no_text(crawl: Crawl, web: Web, text: object) -> None:
    only(web, hit(num_comments=3))
    good = {"id": 3, "created_at_i": 1675209700, "text": "Good"}
    bad = [{"id": 2, "created_at_i": 1675209601, "text": text}, None, {"dead": True, **good}]
    fake(web, {"id": 1, "children": [*bad, {"deleted": True}, good]}, "/items/1")
    [document] = by_id(crawl()).values()
    assert document.text == "Text\n\nGood"


def test_a_story_that_is_null_is_dropped(crawl: Crawl, web: Web) -> None:
    only(web, hit(1, num_comments=1), hit(2, title=None), hit(3, num_comments=1), hit(4))
    fake(web, b"null", "/items/1")
    fake(web, {"id": 3, "dead": True, "children": []}, "/items/3")
    items = crawl()
    assert reasons_of(items) == {"1": "deleted", "2": "deleted", "3": "deleted"}
    assert list(by_id(items)) == ["4"]


@pytest.mark.usefixtures("windows_of_hours")
def test_the_month_is_asked_for_in_half_open_windows(crawl: Crawl, web: Web) -> None:
    crawl()
    assert windows(web)[0] == "created_at_i>=1675209600,created_at_i<1675252800"
    assert windows(web)[-1].endswith("created_at_i<1677628800")


def test_windows_are_split_until_they_fit_a_thousand_results(
    crawl: Crawl, web: Web, site: simulated.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = by_id(crawl())
    num_windows = len(windows(web))
    monkeypatch.setattr(simulated, "MAX_HITS", 2)
    monkeypatch.setattr(hackernews, "MAX_HITS", 2)
    split = crawl()
    texts = {key: document.text for key, document in whole.items()}
    assert {key: document.text for key, document in by_id(split).items()} == texts
    assert not any(isinstance(item, Repeat) for item in split)
    assert len(windows(web)) - num_windows < 4 * len(whole)


@pytest.mark.long
def test_more_than_a_thousand_stories_are_all_found(crawl: Crawl, settings: Settings) -> None:
    world = World(0, MONTH, MONTH, stories_per_month=1_010)
    with serve_sites([simulated.Site(world)]) as web:
        own = settings.model_copy(update={"sites": web.urls})
        items = crawl(own=own, limit=1)
    assert len(items) == 1_013
    assert Counter(reasons_of(items).values())["sample_cap"] == 1_010


@pytest.mark.usefixtures("windows_of_hours")
def test_a_second_that_does_not_fit_is_a_change_of_the_site(crawl: Crawl, web: Web) -> None:
    fake(web, {"hits": [hit()] * 1000, "nbHits": 5000}, "search")
    with pytest.raises(SourceChanged, match="in every second"):
        crawl()
    assert len(windows(web)) < 20  # halving 12 hours takes 16 steps


@pytest.mark.usefixtures("windows_of_hours")
def test_a_story_in_two_windows_counts_once(crawl: Crawl, site: simulated.Site) -> None:
    whole = by_id(crawl())
    site.quirks["moving_items"] = 5
    items = crawl()
    assert by_id(items).keys() == whole.keys()
    repeats = [item for item in items if isinstance(item, Repeat)]
    assert len(repeats) + Counter(reasons_of(items).values())["outside_month"] == 5
    assert len(repeats) >= 4


def test_a_story_without_comments_takes_no_request_of_its_own(crawl: Crawl, web: Web) -> None:
    only(web, hit(1), hit(2, story_text=None, num_comments=0))
    assert list(by_id(crawl())) == ["1"]
    assert asked_items(web) == []


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"children": 5}', b'"x"'])
def test_an_item_that_cannot_be_read_costs_itself_only(crawl: Crawl, web: Web, body: bytes) -> None:
    fake(web, body, "/items/23020000100")
    items = crawl()
    assert reasons_of(items)["23020000100"] == "parse_error"
    assert len(by_id(items)) == STORIES - 1


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (hit(objectID=5), "parse_error"),
        (hit(objectID="<b>"), "parse_error"),
        (hit(objectID="9" * 5000), "parse_error"),
        (hit(objectID={}), "parse_error"),
        (hit(title=[]), "deleted"),
        (hit(created_at_i={}), "no_date"),
        (hit(created_at_i=None), "no_date"),
        (hit(created_at_i=10**18), "no_date"),
        (hit(created_at_i=1677628800), "outside_month"),
        (hit(story_text=None), "empty"),
    ],
)
def test_a_hit_that_cannot_be_used_costs_itself_only(
    crawl: Crawl, web: Web, row: dict[str, Any], reason: str
) -> None:
    only(web, row, hit(7))
    items = crawl()
    assert list(reasons_of(items).values()) == [reason]
    assert list(by_id(items)) == ["7"]


@pytest.mark.parametrize(
    "body",
    [b"[]", b"{}", b'{"hits": 5, "nbHits": 1}', b"<html>", b'{"hits": [], "nbHits": -1}',
     b'{"hits": [1], "nbHits": {}}', b'{"status": [], "hits": null}',
     b'{"hits": [1], "nbHits": %s}' % (b"9" * 5000)],
)  # fmt: skip
def test_what_is_no_list_is_a_change_of_the_source(crawl: Crawl, web: Web, body: bytes) -> None:
    fake(web, body, "search")
    with pytest.raises(SourceChanged):
        crawl()


def test_hits_that_are_no_objects_are_counted(crawl: Crawl, web: Web) -> None:
    fake(web, {"hits": [None, [], hit(7)], "nbHits": 3}, "search.*3D1675209600")
    fake(web, {"hits": [], "nbHits": 0}, "search")
    items = crawl()
    assert list(reasons_of(items).values()) == ["parse_error"] * 2
    assert list(by_id(items)) == ["7"]


@pytest.mark.usefixtures("windows_of_hours")
def test_a_month_has_no_more_windows_than_a_site_can_fill(
    crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hackernews, "MAX_WINDOWS", 30)
    fake(web, {"hits": [], "nbHits": 0}, "search")
    with pytest.raises(SourceChanged, match="more than 30 lists"):
        crawl()
    assert len(windows(web)) == 30


def test_empty_pages_without_end_are_no_month_without_stories(crawl: Crawl, web: Web) -> None:
    fake(web, {"hits": [], "nbHits": 9}, "search")
    with pytest.raises(SourceUnavailable, match="busy"):
        crawl()


def test_titles_hold_no_markup(crawl: Crawl, web: Web) -> None:
    only(
        web, hit(title="Show HN: &lt;b class=x&gt;Bold&lt;/b&gt; <script>x</script>\u202eA &amp; B")
    )
    [document] = by_id(crawl()).values()
    assert document.title == "Show HN: Bold \u202eA & B"  # normalised with all titles later


@pytest.mark.parametrize(
    ("raw", "right"), marked("hackernews"), ids=lambda value: getattr(value, "stem", "")
)
def test_the_text_of_a_story_is_what_a_reader_sees(
    crawl: Crawl, web: Web, raw: Path, right: str
) -> None:
    item = json.loads(raw.read_bytes())
    row = hit(1, title=item["title"], story_text=item["text"], num_comments=len(item["children"]))
    only(web, row)
    fake(web, item, "/items/1")
    [document] = by_id(crawl()).values()
    assert token_f1(document.text, right) >= 0.95
