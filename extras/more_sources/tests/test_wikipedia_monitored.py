import datetime as dt
import functools
import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import MalformedInput
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.contract import Failure, Repeat
from extras.more_sources import wikipedia_monitored
from extras.more_sources.wikipedia_monitored import PAGES_FILE, TITLES_FILE
from simulator.server import Fault, Web
from simulator.wiki import TITLES
from simulator.world import World
from tests.crawlers.conftest import Crawl, count_drops, documents_of, reasons_of

FIRST = Month("2022-09")
WORLD = World(11, FIRST, FIRST + 17)
MIDDLE = FIRST + 9  # two of the pages are created in this month
STALE = FIRST + 4  # one page has no edit in this month, nor in its year before
LEAD = "The subject of this article has been documented for long."


@pytest.fixture
def crawl(crawl: Crawl) -> Crawl:
    """Read the cache, as the months of a year share their lists."""
    return functools.partial(crawl, use_cache=True)


@pytest.fixture(autouse=True)
def fifty_titles(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The titles of the simulated wiki, and more up to a request of fifty."""
    others = [title for title in _titles() if title not in TITLES]
    titles = [*TITLES, *others[: 50 - len(TITLES)]]
    _use_titles(monkeypatch, tmp_path, titles)
    return titles


@pytest.fixture
def all_titles(fifty_titles: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wikipedia_monitored, "TITLES_FILE", TITLES_FILE)


def _titles() -> list[str]:
    lines = TITLES_FILE.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.startswith("#")]


def _text_of(page_id: str, month: Month) -> str:
    story = WORLD.story(month, "wikipedia_monitored", int(page_id))
    return "\n\n".join([LEAD, "Developments", *story.paragraphs])


def test_each_page_tells_the_whole_story_of_the_month_and_nothing_later(crawl: Crawl) -> None:
    for month in (FIRST, MIDDLE, FIRST + 17):
        documents = documents_of(crawl(month))
        assert len(documents) >= 12
        for document in documents:
            assert document.text == _text_of(document.native_id, month)
            assert document.event_time == document.text_as_of
            assert document.event_time in month
            assert document.extra == {"is_new_this_month": True}
            assert document.date_kind == "revised"


def test_a_page_without_an_edit_keeps_its_earlier_version(crawl: Crawl) -> None:
    stale = [d for d in documents_of(crawl(STALE)) if not d.extra["is_new_this_month"]]
    assert len(stale) == 1
    assert stale[0].event_time == STALE.start
    assert stale[0].text_as_of in STALE - 1  # of the year before, when STALE is a January
    assert stale[0].text == _text_of(stale[0].native_id, STALE - 1)
    assert STALE.first_day.month == 1


def test_pages_begin_when_they_are_created(crawl: Crawl) -> None:
    before = crawl(MIDDLE - 1)
    since = crawl(MIDDLE)
    missing = {name for name, reason in reasons_of(before).items() if reason == "not_yet_created"}
    assert len(missing) == 2
    assert missing <= {document.native_id for document in documents_of(since)}


@pytest.mark.usefixtures("all_titles")
def test_every_title_is_accounted_for(crawl: Crawl) -> None:
    items = crawl(MIDDLE)
    assert len(items) == len(_titles())
    assert count_drops(items).keys() == {"deleted"}
    assert 12 <= len(documents_of(items)) <= 24


def test_a_redirect_leads_to_the_page_under_its_own_title(crawl: Crawl) -> None:
    titles = {document.title for document in documents_of(crawl(MIDDLE))}
    assert any(title not in _titles() for title in titles)
    assert any(title in _titles() for title in titles)


def test_two_titles_of_one_page_are_one_document(
    crawl: Crawl, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _use_titles(monkeypatch, tmp_path, ["Argentina", "argentina", "Berlin"])
    items = crawl(FIRST)
    assert [item.native_id for item in items if isinstance(item, Repeat)] == ["440865"]
    assert {document.native_id for document in documents_of(items)} == {"440865", "478674"}


@pytest.mark.usefixtures("all_titles")
def test_the_months_of_a_year_share_their_lists(crawl: Crawl, web: Web) -> None:
    crawl(Month("2023-01"))
    before = len(web.requests)
    crawl(Month("2023-02"))
    asked = [target for _, _, target in web.requests[before:]]
    # Titles without a page are requested again, fifty at a time: a page may exist now.
    assert asked and all("revids=" in target or "titles=" in target for target in asked)
    assert sum("titles=" in target for target in asked) <= 10


def test_five_hundred_different_titles_are_shipped() -> None:
    """A peer's list of 500 has 442."""
    titles = _titles()
    assert len(titles) == 500
    assert len({title.casefold() for title in titles}) == 500
    assert all(title == title.strip() and "_" not in title for title in titles)


def _use_titles(monkeypatch: pytest.MonkeyPatch, folder: Path, titles: list[str]) -> None:
    path = folder / "titles.txt"
    path.write_text("# mine\n" + "\n".join(titles) + "\n", encoding="utf-8")
    monkeypatch.setattr("extras.more_sources.wikipedia_monitored.TITLES_FILE", path)


def _kept(settings: Settings) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(Store(settings.home).read_bytes(PAGES_FILE))["pages"]
    return rows


@pytest.mark.usefixtures("all_titles")
def test_titles_are_resolved_once_and_kept(crawl: Crawl, web: Web, settings: Settings) -> None:
    before = dt.datetime.now(dt.UTC).replace(microsecond=0)
    crawl(FIRST)
    rows = _kept(settings)
    assert [row["title"] for row in rows] == sorted(TITLES)
    assert {row["language"] for row in rows} == {"en"}
    assert all(dt.datetime.fromisoformat(row["resolved_at"]) >= before for row in rows)
    asked = [target for _, _, target in web.requests if "titles=" in target]
    assert len(asked) == 10  # fifty titles at a time


def test_a_page_that_was_moved_is_still_followed(crawl: Crawl, settings: Settings) -> None:
    """Another page may have its old title; the page id decides."""
    before = {d.native_id: d.text for d in documents_of(crawl(FIRST))}
    store = Store(settings.home)
    rows = _kept(settings)
    argentina = next(row for row in rows if row["title"] == "Argentina")
    argentina["page_id"] = 7
    store.write_bytes(PAGES_FILE, json.dumps({"pages": rows}).encode())
    after = {d.native_id: d for d in documents_of(crawl(FIRST))}
    assert "7" in after and "440865" not in after and "440865" in before
    assert after["7"].title == "Argentina"


def test_a_title_that_is_new_in_the_list_is_added(
    crawl: Crawl, settings: Settings, web: Web, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _use_titles(monkeypatch, tmp_path, ["Argentina"])
    crawl(FIRST)
    first = _kept(settings)
    _use_titles(monkeypatch, tmp_path, ["Argentina", "Berlin"])
    num_before = len(web.requests)
    assert len(documents_of(crawl(FIRST))) == 2
    asked = [target for _, _, target in web.requests[num_before:] if "titles=" in target]
    assert len(asked) == 1 and "Argentina" not in asked[0]
    assert _kept(settings)[0] == first[0] and len(_kept(settings)) == 2


_ROW = {"language": "en", "page_id": 1, "page_title": "A", "resolved_at": ""}


@pytest.mark.parametrize("row", [{"title": "A"}, {**_ROW, "title": []}, {**_ROW, "title": 7}, [7]])
def test_a_damaged_file_of_pages_is_not_overwritten(
    row: object, crawl: Crawl, settings: Settings
) -> None:
    store = Store(settings.home)
    damaged = json.dumps({"pages": [row]}).encode()
    store.write_bytes(PAGES_FILE, damaged)
    with pytest.raises(MalformedInput, match=r"pages\.json"):
        crawl(FIRST)
    assert store.read_bytes(PAGES_FILE) == damaged


def test_a_title_that_is_no_unicode_has_a_replacement_character(
    crawl: Crawl, settings: Settings, web: Web
) -> None:
    renamed = [{"from": "Argentina", "to": "\ud800"}]
    page = {"pageid": 440865, "ns": 0, "title": "\ud800"}
    body = json.dumps({"query": {"normalized": renamed, "pages": [page]}}).encode()
    web.faults.append(Fault("status", "wikipedia", "titles=", 1, 200, body=body))
    crawl(FIRST)
    assert "\ufffd" in [row["page_title"] for row in _kept(settings)]


def test_a_page_deleted_since_is_a_drop_and_one_merged_is_a_redirect(
    crawl: Crawl, web: Web
) -> None:
    crawl(FIRST)
    gone = {"query": {"pages": [{"pageid": 440865, "missing": True}]}}
    pattern = "pageids=440865&"
    month = FIRST - 12  # of a year whose list is not in the cache
    body = json.dumps(gone).encode()
    web.faults.append(Fault("status", "wikipedia", pattern, 1, 200, body=body))
    assert reasons_of(crawl(month))["440865"] == "deleted"
    text = {"main": {"content": "#REDIRECT [[Buenos Aires]]"}}
    row = {"revid": 1, "timestamp": f"{FIRST}-05T00:00:00Z", "slots": text}
    page = {"pageid": 478674, "ns": 0, "title": "Berlin", "revisions": [row]}
    body = json.dumps({"query": {"pages": [page]}}).encode()
    web.faults.append(Fault("status", "wikipedia", "revids=|pageids=478674&", 2, 200, body=body))
    assert reasons_of(crawl(FIRST, use_cache=False))["478674"] == "redirect_page"


def test_a_page_that_cannot_be_listed_is_a_failure_and_keys_stay_with_their_texts(
    crawl: Crawl, web: Web
) -> None:
    """A peer zips titles with received texts, so one gap shifts all later texts."""
    again = {"Retry-After": "0"}
    web.faults.append(Fault("status", "wikipedia", "pageids=478674&", 5, 503, again))
    items = crawl(FIRST)
    failures = [item for item in items if isinstance(item, Failure)]
    assert [(item.native_id, item.reason) for item in failures] == [("478674", "http_5xx")]
    documents = documents_of(items)
    assert len(documents) >= 11
    for document in documents:
        assert document.text == _text_of(document.native_id, FIRST)


@pytest.mark.usefixtures("all_titles")
def test_a_backfill_of_a_year_needs_few_requests(crawl: Crawl, web: Web) -> None:
    """Peers ask once for each page and month: here 17 x 12 = 204; live, 500 x 12 = 6,000."""
    num_documents = sum(len(documents_of(crawl(Month(f"2023-{m:02d}")))) for m in range(1, 13))
    asked = [target for _, _, target in web.requests if "api.php" in target]
    texts = [target for target in asked if "revids=" in target]
    lists = [target for target in asked if "pageids=" in target]
    titles = [target for target in asked if "titles=" in target]
    assert num_documents > 170
    # The simulated wiki cuts an answer after 20 rows or 8 texts, the real one after 500 and 50.
    assert len({target for target in lists if "rvcontinue" not in target}) <= 17 + 4
    assert len([target for target in texts if "rvcontinue" not in target]) == 12
    assert len(titles) == 20  # all titles at first, later those that were no page
    assert len(asked) < 100


def test_other_languages_are_found_by_the_links_between_them(
    crawl: Crawl, settings: Settings, fifty_titles: list[str]
) -> None:
    items = crawl(FIRST, languages=("en", "de"))
    german = [document for document in documents_of(items) if document.language == "de"]
    assert len(german) >= 10
    assert all(document.native_id.startswith("de:") for document in german)
    assert all(document.text.startswith("Das Thema dieses Artikels") for document in german)
    assert "Literatur" not in "".join(document.text for document in german)
    rows = {(row["language"], row["title"]): row["page_title"] for row in _kept(settings)}
    assert rows["de", "India"] == "Indien"
    assert ("de", "Taiwan") not in rows
    assert len(items) == 2 * len(fifty_titles)


def test_what_another_month_wrote_down_meanwhile_stays(
    crawl: Crawl, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two concurrent crawls that resolve the same titles must record one answer a title."""
    store = Store(settings.home)
    first = {"title": "Argentina", "language": "en", "page_id": 7, "page_title": "Argentina"}
    rows = [{**first, "resolved_at": "2024-01-01T00:00:00+00:00"}]
    ask = wikipedia_monitored._look_up

    def slow(*given: Any) -> Any:
        found = ask(*given)
        store.write_bytes(PAGES_FILE, json.dumps({"pages": rows}).encode())
        return found

    monkeypatch.setattr(wikipedia_monitored, "_look_up", slow)
    assert "7" in {document.native_id for document in documents_of(crawl(FIRST))}
    assert next(row for row in _kept(settings) if row["title"] == "Argentina")["page_id"] == 7
