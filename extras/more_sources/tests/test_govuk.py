import json

import pytest

from core.errors import ItemFailed
from core.month import Month
from core.settings import Settings
from crawlers.contract import CrawlContext, Drop, Failure, Item, Repeat
from crawlers.web.fetcher import Fetcher
from extras.more_sources import govuk
from extras.more_sources.govuk import INFO, fetch_month
from extras.more_sources.simulator.govuk import NEWS, Site
from simulator.news import Article
from simulator.server import Fault, Web
from simulator.world import World
from tests.crawlers.conftest import Crawl, count_drops, documents_of, marked
from tests.crawlers.sources.conftest import Whole

MONTH = Month("2024-02")
WORLD = World(11, Month("2024-01"), Month("2024-05"), stories_per_month=24)
WEIRD = (None, [], {}, 0, -1.5, "", True, "x", [None], [{}], [[]], {"a": []}, "\ud800", 10**30, "1")


def _reason(items: list[Item], oddity: str) -> tuple[str, str]:
    [found] = [i for i in items if isinstance(i, Drop) and i.native_id.endswith(f"-{oddity}")]
    return found.reason, found.detail


def _article(site: Site, oddity: str, month: Month = MONTH) -> Article:
    return next(a for a in site.newsroom.of_month(month) if a.oddity == oddity)


def test_texts_are_the_stories_of_the_month_word_for_word(whole: Whole, site: Site) -> None:
    found = {document.native_id: document for document in documents_of(whole.items)}
    for article in site.newsroom.of_month(MONTH):
        if not article.oddity:
            document = found.pop(NEWS + article.slug)
            assert (document.text, document.title) == (article.text, article.title)
    assert {name.rsplit("-", 1)[1] for name in found} == {"short", "translated", "linkless"}


def test_every_entry_of_the_index_is_accounted_for(whole: Whole) -> None:
    items = whole.items
    assert len(items) == len({item.native_id for item in items})
    assert count_drops(items) == {
        "withdrawn": 1, "redirect_page": 1, "http_410": 1, "wrong_language": 1, "edited_later": 1,
        "no_date": 1, "parse_error": 1,
        # the page updated this month; the last of January and the first of March, seconds away
        "outside_month": 3,
    }  # fmt: skip


def test_the_search_engines_date_is_not_trusted(whole: Whole) -> None:
    """The index dates an article 4 s early, into the month before; Uncheatable Eval takes that."""
    documents = documents_of(whole.items)
    assert min(document.event_time for document in documents) == MONTH.start
    listed = [target for target in whole.targets if "search.json" in target]
    assert all("from%3A2024-01-31%2Cto%3A2024-03-01" in target for target in listed)


def test_text_of_a_later_major_update_is_not_passed_off_as_old(whole: Whole, site: Site) -> None:
    """The index has the first update, and not yet the second."""
    items = whole.items
    article = _article(site, "edited_unnoticed")
    assert _reason(items, "edited_unnoticed") == (
        "edited_later",
        f"changed {article.changed.isoformat()}",
    )
    assert not [item for item in items if item.native_id.endswith("-edited")]
    for document in documents_of(items):
        assert document.event_time <= document.text_as_of < MONTH.end


def test_a_change_within_the_month_says_when_the_text_is_from(whole: Whole, site: Site) -> None:
    changed = [a for a in site.newsroom.of_month(MONTH) if a.published < a.changed < MONTH.end]
    found = {document.native_id: document for document in documents_of(whole.items)}
    assert changed
    for article in changed:
        assert found[NEWS + article.slug].text_as_of == article.changed


def test_an_entry_without_any_path_is_a_drop(crawl: Crawl, web: Web) -> None:
    rows = [{"title": "A"}, "B", {"link": "https://elsewhere.example/a"}, {"link": "/../etc"}]
    body = json.dumps({"results": rows, "total": 4, "start": 0}).encode()
    web.faults.append(Fault("status", "govuk", "search.json", 1, 200, body=body))
    assert [item.reason for item in crawl() if isinstance(item, Drop)] == ["parse_error"] * 4
    assert not [target for _, _, target in web.requests if "/api/content" in target]


def test_languages_are_a_column_and_a_filter(crawl: Crawl, whole: Whole) -> None:
    english = documents_of(whole.items)
    assert {document.language for document in english} == {"en"}
    both = documents_of(crawl(languages=("en", "cy")))
    welsh = {d.native_id.rsplit("-", 1)[1]: d for d in both if d.language == "cy"}
    assert set(welsh) == {"translated.cy", "welsh"}
    assert len(both) == len(english) + 2
    assert " y " in welsh["translated.cy"].text
    alone = documents_of(crawl(languages=("cy",)))
    assert {document.native_id for document in alone} == {d.native_id for d in welsh.values()}


def test_licence_and_attribution_are_of_the_organisation(whole: Whole) -> None:
    for document in documents_of(whole.items):
        assert document.licence == "OGL-UK-3.0"
        assert document.category == document.extra["document_type"]
        assert str(document.extra["organisations"][0]) in document.attribution  # type: ignore[index]
        assert "Open Government Licence" in document.attribution


def test_pages_of_the_list_are_read_to_the_end(
    crawl: Crawl, web: Web, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(govuk, "PAGE_SIZE", 10)
    assert {item.native_id for item in crawl()} == {item.native_id for item in whole.items}
    starts = [target.split("start=")[1] for _, _, target in web.requests if "start=" in target]
    assert starts == ["0", "10", "20", "30"]


def test_an_item_that_moves_between_pages_is_kept_once(
    crawl: Crawl, site: Site, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LatestEval keeps an article once for every day that lists it."""
    once = documents_of(whole.items)
    monkeypatch.setattr(govuk, "PAGE_SIZE", 10)
    site.quirks["moving_items"] = 2
    items = crawl()
    assert sum(isinstance(item, Repeat) for item in items) == 2
    assert {d.native_id for d in documents_of(items)} == {d.native_id for d in once}
    assert len(documents_of(items)) == len(once)


def test_missing_optional_fields_cost_nothing_but_themselves(
    crawl: Crawl, site: Site, whole: Whole
) -> None:
    texts = {document.native_id: document.text for document in documents_of(whole.items)}
    site.quirks.update(missing_fields=1000, extra_fields=1000)
    items = documents_of(crawl())
    assert texts.items() <= {document.native_id: document.text for document in items}.items()
    assert all("GOV.UK" in document.attribution for document in items)


def test_an_item_that_never_is_json_fails_alone(crawl: Crawl, web: Web, site: Site) -> None:
    slug = next(a for a in site.newsroom.of_month(MONTH) if not a.oddity).slug
    fault = Fault("status", "govuk", f"content.*{slug}$", 99, 200, {"Retry-After": "0"}, b'{"a":')
    web.faults.append(fault)
    failures = [item for item in crawl() if isinstance(item, Failure)]
    assert [failure.native_id for failure in failures] == [NEWS + slug]


@pytest.mark.parametrize("weird", WEIRD, ids=repr)
def test_no_value_of_any_field_stops_the_crawl(crawl: Crawl, web: Web, weird: object) -> None:
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
    assert len(documents_of(found)) >= 10
    for document in documents_of(found):
        assert f"{document.text}{document.title}{document.attribution}".encode()


def test_a_list_that_gives_out_keeps_what_was_listed(
    own: Settings, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(govuk, "PAGE_SIZE", 20)
    web.faults.append(Fault("status", "govuk", "start=20", 99, headers={"Retry-After": "0"}))
    context = CrawlContext(own, Fetcher(own, INFO.sites, 0, use_cache=False))
    items = []
    with pytest.raises(ItemFailed):
        for item in fetch_month(MONTH, context):
            items.append(item)
    assert len(items) == 20 and len(documents_of(items)) > 10


def test_nothing_more_is_fetched_than_a_sample_takes(crawl: Crawl, web: Web, whole: Whole) -> None:
    first = crawl(limit=6, seed=1)
    asked = [target for _, _, target in web.requests if "/api/content/" in target]
    assert len(documents_of(first)) == 6
    assert {item.native_id for item in first} == {item.native_id for item in whole.items}
    capped = sum(isinstance(item, Drop) and item.reason == "sample_cap" for item in first)
    assert len(asked) <= len(whole.items) - capped + 1  # a renamed page is two requests
