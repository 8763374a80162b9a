"""The simulated wiki speaks MediaWiki's protocol: asked over HTTP without any code of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from core.month import Month
from simulator.mediawiki import MAX_ROWS, MAX_TEXTS
from simulator.server import Web, serve
from simulator.sites.wikipedia import Site
from simulator.wiki import ODDITIES, TITLES, Wiki
from simulator.world import World

FIRST = Month("2024-01")
WORLD = World(2, FIRST, FIRST + 3, stories_per_month=24)
PAGE = 1_000_000
LOG = {
    "list": "logevents", "leaction": "create/create", "lenamespace": 0, "ledir": "newer",
    "lelimit": "max",
}  # fmt: skip
Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(WORLD) as running:
        yield running


@pytest.fixture
def ask(web: Web) -> Ask:
    def get(**params: str | int) -> dict[str, Any]:
        common = {"action": "query", "format": "json", "formatversion": 2}
        url = f"{web.urls['wikipedia']}/w/api.php"
        response = requests.get(url, params={**common, **params}, timeout=10)
        assert response.status_code == 200
        answer: dict[str, Any] = response.json()
        return answer

    return get


def _all(ask: Ask, name: str, **params: str | int) -> tuple[list[dict[str, Any]], int]:
    rows: list[dict[str, Any]] = []
    more: dict[str, str] = {}
    for num_answers in range(1, 100):
        answer = ask(**params, **more)
        rows += answer["query"][name]
        if "continue" not in answer:
            assert answer["batchcomplete"] is True
            return rows, num_answers
        assert "batchcomplete" not in answer
        more = answer["continue"]
    raise AssertionError("the list has no end")


def test_log_of_creations_pages_to_its_end_once(ask: Ask) -> None:
    window = {"lestart": "2024-02-01T00:00:00Z", "leend": "2024-02-29T23:59:59Z"}
    rows, num_answers = _all(ask, "logevents", **LOG, **window)
    assert len({row["logid"] for row in rows}) == len(rows) == 24 + len(ODDITIES)
    assert num_answers == -(-len(rows) // MAX_ROWS)
    stamps = [row["timestamp"] for row in rows]
    assert stamps == sorted(stamps)
    assert {row["pageid"] == row["logpage"] for row in rows if "logpage" in row} == {True, False}
    assert sum("actionhidden" in row for row in rows) == 1


def test_both_ends_of_a_log_window_belong_to_it(ask: Ask) -> None:
    window = {"lestart": "2024-01-31T23:59:59Z", "leend": "2024-02-01T00:00:00Z"}
    rows, _ = _all(ask, "logevents", **LOG, **window)
    stamps = [row["timestamp"] for row in rows]
    assert stamps == ["2024-01-31T23:59:59Z", "2024-02-01T00:00:00Z"]


def test_texts_by_revision_id(ask: Ask) -> None:
    pages = Wiki(WORLD).pages_created(FIRST)[:10]
    texts = {row.revision_id: row.wikitext for page in pages for row in page.revisions}
    ids = "|".join(map(str, [*texts, 5]))
    params = {"prop": "revisions", "revids": ids, "rvprop": "ids|timestamp|content"}
    rows, num_answers = _all(ask, "pages", **params)
    found = {
        version["revid"]: version["slots"]["main"]["content"]
        for row in rows
        for version in row.get("revisions", [])
    }
    assert found == texts
    assert num_answers == -(-len(texts) // MAX_TEXTS)
    assert ask(**params)["query"]["badrevids"] == {"5": {"revid": 5, "missing": True}}


def test_history_of_one_page_in_both_directions(ask: Ask) -> None:
    page = Wiki(WORLD).page(PAGE)
    assert page is not None
    ids = [row.revision_id for row in page.revisions]
    assert len(ids) == 3
    for direction, expected in (("newer", ids), ("older", ids[::-1])):
        params = {"prop": "revisions", "pageids": PAGE, "rvdir": direction, "rvlimit": 1}
        rows, num_answers = _all(ask, "pages", **params)
        assert [row["revisions"][0]["revid"] for row in rows] == expected
        assert num_answers == 3
    before = ask(prop="revisions", pageids=PAGE, rvdir="older", rvstart="2023-01-01T00:00:00Z")
    assert "revisions" not in before["query"]["pages"][0]


def test_pages_show_what_they_are(ask: Ask) -> None:
    pages = Wiki(WORLD).pages_created(FIRST)
    ids = "|".join(str(page.page_id) for page in pages)
    rows, _ = _all(ask, "pages", prop="info|pageprops|revisions", pageids=ids)
    by_id = {row["pageid"]: row for row in rows}
    odd = {page.oddity: by_id[page.page_id] for page in pages}
    assert odd["deleted"] == {"pageid": odd["deleted"]["pageid"], "missing": True}
    assert odd["redirect"]["redirect"] is True
    assert odd["disambiguation"]["pageprops"] == {"disambiguation": ""}
    assert odd["moved"]["ns"] == 118


def test_titles_are_normalised_and_redirects_followed(ask: Ask) -> None:
    known = [title[0].lower() + title[1:].replace(" ", "_") for title in TITLES]
    titles = [*known, *(f"some_title {n}" for n in range(33))]
    query = ask(titles="|".join(titles), redirects=1)["query"]
    assert {row["from"] for row in query["normalized"]} == set(titles)
    assert sum(row["to"].startswith("Some title ") for row in query["normalized"]) == 33
    found = {page["title"]: page for page in query["pages"]}
    assert query["redirects"] and all(row["to"] in found for row in query["redirects"])
    assert sum("missing" not in page for page in found.values()) == len(TITLES)


def test_monitored_pages_do_not_depend_on_what_was_asked_before(ask: Ask) -> None:
    titles = "|".join(TITLES)
    pages = ask(titles=titles, redirects=1)["query"]["pages"]
    page_id = next(page["pageid"] for page in pages if "missing" not in page)
    asked, fresh = Wiki(WORLD), Wiki(WORLD)
    for page in pages:
        asked.find(page["title"])
    known, unknown = asked.page(page_id), fresh.page(page_id)
    assert known is not None and unknown is not None
    assert known.revisions == unknown.revisions


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"maxlag": -1}, "maxlag"),
        ({"formatversion": 1}, "badvalue"),
        ({"action": "delete"}, "badvalue"),
        ({"list": "categorymembers", "cmtitle": "Talk:A"}, "invalidcategory"),
        ({"list": "allrevisions", "arvdir": "older"}, "badvalue"),
        ({"pageids": "|".join(map(str, range(51)))}, "toomanyvalues"),
        ({"pageids": "1|2", "rvlimit": 1}, "invalidparammix"),
        ({"pageids": "x"}, "badinteger"),
        ({"pageids": PAGE, "rvlimit": 1, "rvcontinue": "nonsense"}, "badcontinue"),
        ({"list": "logevents", "leaction": "move/move"}, "badvalue"),
    ],
)
def test_errors_come_with_status_200(ask: Ask, params: dict[str, Any], code: str) -> None:
    assert ask(**params)["errors"][0]["code"] == code


def test_a_lagging_wiki_says_when_to_come_back(web: Web) -> None:
    url = f"{web.urls['wikipedia']}/w/api.php?action=query&maxlag=-1"
    assert requests.get(url, timeout=10).headers["Retry-After"] == "5"


def test_refuses_other_paths_and_nameless_clients(web: Web) -> None:
    base = web.urls["wikipedia"]
    assert requests.get(f"{base}/wiki/Nobody", timeout=10).status_code == 404
    assert requests.get(f"{base}/elsewhere", timeout=10).status_code == 404
    nameless = {"User-Agent": ""}
    assert requests.get(f"{base}/w/api.php", headers=nameless, timeout=10).status_code == 403


def test_robots_closes_the_scripts_to_crawlers_of_pages(web: Web) -> None:
    text = requests.get(f"{web.urls['wikipedia']}/robots.txt", timeout=10).text
    assert text == Site(WORLD).robots
    assert "Disallow: /w/\n" in text
