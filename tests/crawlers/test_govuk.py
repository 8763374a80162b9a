"""GOV.UK's news: the simulated site over loopback HTTP, text compared with what the world wrote."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from core.corpus import read_documents
from core.errors import AccessRefused, ItemFailed, SourceChanged
from core.month import Month
from core.settings import Settings
from core.storage import Store
from crawlers import articles, govuk, pacing
from crawlers.cleaning import clean
from crawlers.contract import CrawlContext, Document, Drop, Failure, Item, Repeat
from crawlers.crawl import crawl_partition
from crawlers.govuk import INFO, fetch_month
from crawlers.http import Fetcher
from simulator.news import Article
from simulator.server import Fault, Web, serve_sites
from simulator.sites.govuk import NEWS, ODDITIES, Site
from simulator.world import World

from .conftest import marked, token_f1

MONTH = Month("2024-02")
WORLD = World(11, Month("2024-01"), Month("2024-05"), stories_per_month=24)
Crawl = Callable[..., list[Item]]
WEIRD = (None, [], {}, 0, -1.5, "", True, "x", [None], [{}], [[]], {"a": []}, "\ud800", 10**30, "1")


@pytest.fixture
def site() -> Site:
    return Site(WORLD)


@pytest.fixture
def web(site: Site) -> Iterator[Web]:
    with serve_sites([site]) as running:
        yield running


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.002)


@pytest.fixture
def crawl(settings: Settings, web: Web) -> Crawl:
    own = settings.model_copy(update={"sites": web.urls})

    def run(month: Month = MONTH, **options: object) -> list[Item]:
        fetcher = Fetcher(own, INFO.sites, 0, use_cache=False)
        return list(fetch_month(month, CrawlContext(own, fetcher, **options)))  # type: ignore[arg-type]

    return run


def _documents(items: list[Item]) -> list[Document]:
    return [item for item in items if isinstance(item, Document)]


def _reason(items: list[Item], oddity: str) -> tuple[str, str]:
    [found] = [i for i in items if isinstance(i, Drop) and i.native_id.endswith(f"-{oddity}")]
    return found.reason, found.detail


def _article(site: Site, oddity: str, month: Month = MONTH) -> Article:
    return next(a for a in site.newsroom.of_month(month) if a.oddity == oddity)


def test_texts_are_the_stories_of_the_month_word_for_word(crawl: Crawl, site: Site) -> None:
    found = {document.native_id: document for document in _documents(crawl())}
    for article in site.newsroom.of_month(MONTH):
        if not article.oddity:
            document = found.pop(NEWS + article.slug)
            assert (document.text, document.title) == (article.text, article.title)
    assert {name.rsplit("-", 1)[1] for name in found} == {"short", "translated", "linkless"}


def test_every_entry_of_the_index_is_accounted_for(crawl: Crawl) -> None:
    items = crawl()
    assert len(items) == len({item.native_id for item in items})
    assert Counter(item.reason for item in items if isinstance(item, Drop)) == {
        "withdrawn": 1, "redirect_page": 1, "http_410": 1, "wrong_language": 1, "edited_later": 1,
        "no_date": 1, "parse_error": 1,
        # the page updated this month; the last of January and the first of March, seconds away
        "outside_month": 3,
    }  # fmt: skip


def test_the_month_is_that_of_the_first_publication_not_of_the_last_update(crawl: Crawl) -> None:
    """LatestEval's BBC months are those of the front page that listed an article."""
    items = crawl()
    assert _reason(items, "updated_old")[0] == "outside_month"
    for document in _documents(items):
        assert document.event_time in MONTH
        assert document.date_kind == "published"


def test_the_search_engines_date_is_not_trusted(crawl: Crawl, web: Web) -> None:
    """Uncheatable Eval takes the date that a search engine gives.

    The index dates the first article of a month into the month before: by four seconds.
    """
    documents = _documents(crawl())
    assert min(document.event_time for document in documents) == MONTH.start
    listed = [target for _, _, target in web.requests if "search.json" in target]
    assert all("from%3A2024-01-31%2Cto%3A2024-03-01" in target for target in listed)


def test_a_month_ends_on_its_last_day_not_on_the_28th(crawl: Crawl) -> None:
    documents = _documents(crawl())
    assert max(d.event_time for d in documents) == MONTH.end - dt.timedelta(seconds=1)
    following = {d.native_id for d in _documents(crawl(MONTH + 1))}
    assert not following & {d.native_id for d in documents}


def test_text_of_a_later_major_update_is_not_passed_off_as_old(crawl: Crawl, site: Site) -> None:
    """The index knows of one update, and has not seen the other yet."""
    items = crawl()
    article = _article(site, "edited_unnoticed")
    assert _reason(items, "edited_unnoticed") == (
        "edited_later",
        f"changed {article.changed.isoformat()}",
    )
    assert not [item for item in items if item.native_id.endswith("-edited")]
    for document in _documents(items):
        assert document.event_time <= document.text_as_of < MONTH.end


def test_a_change_within_the_month_says_when_the_text_is_from(crawl: Crawl, site: Site) -> None:
    changed = [a for a in site.newsroom.of_month(MONTH) if a.published < a.changed < MONTH.end]
    found = {document.native_id: document for document in _documents(crawl())}
    assert changed
    for article in changed:
        assert found[NEWS + article.slug].text_as_of == article.changed


@pytest.mark.parametrize(
    "oddity, reason",
    [
        ("withdrawn", "withdrawn"), ("renamed", "redirect_page"), ("gone", "http_410"),
        ("undated", "no_date"), ("bodiless", "parse_error"), ("welsh", "wrong_language"),
    ],
)  # fmt: skip
def test_pages_that_the_index_has_and_that_are_none(crawl: Crawl, oddity: str, reason: str) -> None:
    assert _reason(crawl(), oddity)[0] == reason


def test_an_entry_without_a_link_is_found_by_its_id(crawl: Crawl) -> None:
    assert any(document.native_id.endswith("-linkless") for document in _documents(crawl()))


def test_an_entry_without_any_path_is_a_drop(crawl: Crawl, web: Web) -> None:
    rows = [{"title": "A"}, "B", {"link": "https://elsewhere.example/a"}, {"link": "/../etc"}]
    body = json.dumps({"results": rows, "total": 4, "start": 0}).encode()
    web.faults.append(Fault("status", "govuk", "search.json", 1, 200, body=body))
    assert [item.reason for item in crawl() if isinstance(item, Drop)] == ["parse_error"] * 4
    assert not [target for _, _, target in web.requests if "/api/content" in target]


def test_languages_are_a_column_and_a_filter(crawl: Crawl, site: Site) -> None:
    english = _documents(crawl())
    assert {document.language for document in english} == {"en"}
    both = _documents(crawl(languages=("en", "cy")))
    welsh = {d.native_id.rsplit("-", 1)[1]: d for d in both if d.language == "cy"}
    assert set(welsh) == {"translated.cy", "welsh"}
    assert len(both) == len(english) + 2
    assert " y " in welsh["translated.cy"].text
    alone = _documents(crawl(languages=("cy",)))
    assert {document.native_id for document in alone} == {d.native_id for d in welsh.values()}


def test_licence_and_attribution_are_of_the_organisation(crawl: Crawl) -> None:
    for document in _documents(crawl()):
        assert document.licence == "OGL-UK-3.0"
        assert str(document.extra["organisations"][0]) in document.attribution  # type: ignore[index]
        assert "Open Government Licence" in document.attribution


def test_pages_of_the_list_are_read_to_the_end(
    crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = {item.native_id for item in crawl()}
    monkeypatch.setattr(govuk, "PAGE_SIZE", 10)
    assert {item.native_id for item in crawl()} == whole
    starts = [target.split("start=")[1] for _, _, target in web.requests if "start=" in target]
    assert starts[1:] == ["0", "10", "20", "30"]


def test_an_item_that_moves_between_pages_is_kept_once(
    crawl: Crawl, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LatestEval keeps an article once for every day that lists it."""
    whole = _documents(crawl())
    monkeypatch.setattr(govuk, "PAGE_SIZE", 10)
    site.quirks["moving_items"] = 2
    items = crawl()
    assert sum(isinstance(item, Repeat) for item in items) == 2
    assert {d.native_id for d in _documents(items)} == {d.native_id for d in whole}
    assert len(_documents(items)) == len(whole)


@pytest.mark.parametrize("quirk", ["error_as_200", "empty_page"])
def test_an_error_as_200_and_an_empty_page_are_asked_again(
    crawl: Crawl, site: Site, quirk: str
) -> None:
    whole = crawl()
    site.quirks[quirk] = 1  # type: ignore[index]
    assert [item.native_id for item in crawl()] == [item.native_id for item in whole]


def test_missing_optional_fields_cost_nothing_but_themselves(crawl: Crawl, site: Site) -> None:
    whole = {document.native_id: document.text for document in _documents(crawl())}
    site.quirks.update(missing_fields=1000, extra_fields=1000)
    items = _documents(crawl())
    assert whole.items() <= {document.native_id: document.text for document in items}.items()
    assert all("GOV.UK" in document.attribution for document in items)


def test_html_where_json_was_promised_is_asked_again(crawl: Crawl, web: Web) -> None:
    whole = crawl()
    sorry = b"<!DOCTYPE html><html><body>Sorry, we're experiencing difficulties</body></html>"
    for pattern in ("search.json", "/api/content/government"):
        headers = {"Content-Type": "text/html", "Retry-After": "0"}
        web.faults.append(Fault("status", "govuk", pattern, 1, 200, headers, sorry))
    assert [item.native_id for item in crawl()] == [item.native_id for item in whole]
    assert not [fault for fault in web.faults if fault.times]


@pytest.mark.parametrize(
    "kind", ["status", "truncate", "disconnect", "redirect_loop", "redirect_off_host", "empty",
             "gzip_bomb", "wrong_charset"]
)  # fmt: skip
def test_one_faulty_answer_costs_one_item_at_most(kind: str, crawl: Crawl, web: Web) -> None:
    whole = crawl()
    again = {"Retry-After": "0"}
    web.faults.append(Fault(kind, "govuk", "/api/content/", 1, headers=again))  # type: ignore[arg-type]
    items = crawl()
    assert [item.native_id for item in items] == [item.native_id for item in whole]
    assert len(_documents(items)) >= len(_documents(whole)) - 1


@pytest.mark.parametrize("kind", ["status", "truncate", "disconnect", "empty", "wrong_charset"])
def test_a_fault_of_the_list_that_passes_costs_nothing(kind: str, crawl: Crawl, web: Web) -> None:
    whole = crawl()
    again = {"Retry-After": "0"}
    web.faults.append(Fault(kind, "govuk", "search.json", 2, headers=again))  # type: ignore[arg-type]
    assert [item.native_id for item in crawl()] == [item.native_id for item in whole]


def test_an_item_that_never_is_json_fails_alone(crawl: Crawl, web: Web, site: Site) -> None:
    slug = next(a for a in site.newsroom.of_month(MONTH) if not a.oddity).slug
    fault = Fault("status", "govuk", f"content.*{slug}$", 99, 200, {"Retry-After": "0"}, b'{"a":')
    web.faults.append(fault)
    failures = [item for item in crawl() if isinstance(item, Failure)]
    assert [failure.native_id for failure in failures] == [NEWS + slug]


@pytest.mark.parametrize("weird", WEIRD, ids=repr)
def test_no_value_of_any_field_stops_the_crawl(crawl: Crawl, web: Web, weird: object) -> None:
    """Of every field of an item, and of every field one level below."""
    usual = json.loads(marked("govuk")[0][0].read_text(encoding="utf-8"))
    links = {"organisations": [{"title": "A"}], "available_translations": [{"locale": "cy"}]}
    usual.update(links=links, updated_at="2024-03-01", public_updated_at="2024-02-03T00:00:00Z")
    usual.update(first_published_at="2024-02-03T00:00:00Z")
    items = [{**usual, name: weird} for name in usual]
    for name in ("details", "links", "withdrawn_notice"):
        items += [{**usual, name: {**usual[name], key: weird}} for key in (*usual[name], "other")]
    items += [{**usual, "links": {"organisations": [{"title": weird}]}}]
    items += [{**usual, "details": {"body": "a", "change_history": [{"public_timestamp": weird}]}}]
    rows = [{"link": f"/{number}"} for number in range(len(items))]
    listed = json.dumps({"results": rows, "total": len(rows), "start": 0}).encode()
    web.faults.append(Fault("status", "govuk", "search.json", 1, 200, body=listed))
    for number, item in enumerate(items):
        if "base_path" in item and item["base_path"] == usual["base_path"]:
            item["base_path"] = f"/{number}"
        body = json.dumps(item).encode()
        web.faults.append(Fault("status", "govuk", f"/api/content/{number}$", 1, 200, body=body))
    found = crawl(languages=("en", "cy"))
    assert {item.native_id for item in found} >= {row["link"] for row in rows}
    assert len(_documents(found)) >= 10
    for document in _documents(found):
        assert f"{document.text}{document.title}{document.attribution}".encode()


@pytest.mark.parametrize("body", [b"[1]", b'"text"', b'{"base_path": 1, "links": []}'])
def test_an_item_of_unknown_shape_is_a_parse_error_or_undated(
    crawl: Crawl, web: Web, body: bytes
) -> None:
    web.faults.append(Fault("status", "govuk", "/api/content/", 1, 200, body=body))
    first = next(item for item in crawl() if not isinstance(item, Repeat))
    assert isinstance(first, Drop) and first.reason in {"parse_error", "redirect_page"}


def test_a_list_of_unknown_shape_stops_the_crawl(crawl: Crawl, web: Web) -> None:
    web.faults.append(Fault("status", "govuk", "search.json", 1, 200, body=b'{"results": {}}'))
    with pytest.raises(SourceChanged, match="results and total"):
        crawl()


@pytest.mark.parametrize(
    "kind", ["text/html; charset=utf-16", "application/json", "text/html; charset=latin-1"]
)
def test_utf8_is_forced_where_the_header_has_no_charset_or_a_wrong_one(
    crawl: Crawl, web: Web, site: Site, kind: str
) -> None:
    """JSON is never in anything else."""
    web.faults.append(Fault("wrong_charset", "govuk", "", 1000, headers={"Content-Type": kind}))
    titles = {document.title for document in _documents(crawl())}
    assert {a.title for a in site.newsroom.of_month(MONTH) if not a.oddity} <= titles
    assert all("’" in title for title in titles)


def test_a_list_that_gives_out_keeps_what_was_listed(
    crawl: Crawl, web: Web, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    monkeypatch.setattr(govuk, "PAGE_SIZE", 20)
    web.faults.append(Fault("status", "govuk", "start=20", 99, headers={"Retry-After": "0"}))
    own = settings.model_copy(update={"sites": web.urls})
    context = CrawlContext(own, Fetcher(own, INFO.sites, 0, use_cache=False))
    items = []
    with pytest.raises(ItemFailed):
        for item in fetch_month(MONTH, context):
            items.append(item)
    assert len(items) == 20 and len(_documents(items)) > 10


def test_robots_txt_is_obeyed(crawl: Crawl, site: Site, web: Web) -> None:
    site.robots = "User-agent: tidemark\nDisallow: /api/\n"
    with pytest.raises(AccessRefused, match="robots.txt"):
        crawl()
    assert [target for _, _, target in web.requests] == ["/robots.txt"]


def test_a_sample_is_drawn_by_the_seed_and_nothing_more_is_fetched(crawl: Crawl, web: Web) -> None:
    whole = crawl()
    web.requests.clear()
    first = crawl(limit=6, seed=1)
    asked = [target for _, _, target in web.requests if "/api/content/" in target]
    again, other = crawl(limit=6, seed=1), crawl(limit=6, seed=2)
    ids = [[d.native_id for d in _documents(items)] for items in (first, again, other)]
    assert ids[0] == ids[1] != ids[2]
    assert [len(found) for found in ids] == [6, 6, 6]
    assert {item.native_id for item in first} == {item.native_id for item in whole}
    capped = sum(isinstance(item, Drop) and item.reason == "sample_cap" for item in first)
    assert len(asked) <= len(whole) - capped + 1  # a renamed page is two requests


def test_a_month_is_sampled_down_to_its_bytes(crawl: Crawl) -> None:
    sizes = [len(document.text.encode()) for document in _documents(crawl(max_bytes=4_000))]
    assert sum(sizes) >= 4_000 > sum(sizes[:-1])


def test_the_partition_seals_the_stories(settings: Settings, store: Store, web: Web) -> None:
    own = settings.model_copy(update={"sites": web.urls})
    seal = crawl_partition("govuk", MONTH, store, own)
    rows = [row for table in read_documents(store, seal) for row in table.to_pylist()]
    assert len(rows) == WORLD.stories_per_month + 2  # one is too short
    assert {row["category"] for row in rows} == {"news"}
    manifest: dict[str, Any] = seal.manifest
    others = sum(manifest["dropped"].values()) + sum(manifest["failed"].values())
    assert manifest["requested"] == manifest["kept"] + others + manifest["repeated"]
    assert manifest["status"] == "complete"


@pytest.mark.parametrize("number", range(10))
def test_marked_documents(number: int) -> None:
    raw, right = marked("govuk")[number]
    body = json.loads(raw.read_text(encoding="utf-8"))["details"]["body"]
    assert token_f1(clean(articles.to_text(body)), right) >= 0.95, raw


def test_the_oddities_are_all_looked_at() -> None:
    assert len(set(ODDITIES)) == len(ODDITIES) == 12
