"""Simulated sites refuse what the real ones refuse, in their words, and page as they do."""

import gzip
import json
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from core.month import Month
from simulator.server import Request, Response
from simulator.sites import hackernews, wikimedia
from simulator.wiki import TITLES, Wiki
from simulator.world import World

WORLD = World(0, Month("2023-01"), Month("2023-03"), stories_per_month=14)


def get(kind: type[Any], target: str, **params: str | int) -> Response:
    parts = urlsplit(target)
    raw = "&".join(filter(None, [parts.query, urlencode(params)]))
    query = parse_qs(raw, keep_blank_values=True)
    agent = {"user-agent": "tidemark/1 (me@example.org)"}
    request = Request("GET", parts.path, query, agent, b"", raw)
    response: Response = kind(WORLD).respond(request)
    return response


def body_of(response: Response) -> bytes:
    is_packed = response.headers.get("Content-Encoding") == "gzip"
    return gzip.decompress(response.body) if is_packed else response.body


def answer(kind: type[Any], target: str, **params: str | int) -> Any:
    return json.loads(body_of(get(kind, target, **params)))


STORIES = "/api/v1/search_by_date"
PAGES = "/w/api.php?action=query&format=json&formatversion=2"
IDS = "|".join(map(str, range(51)))
REFUSED: list[tuple[type[Any], int, str, list[str]]] = [
    (hackernews.Site, 400, "invalid", [
        f"{STORIES}?numericFilters=points~1", f"{STORIES}?hitsPerPage=many",
    ]),
    (hackernews.Site, 404, "", [
        "/api/v1/items/1", "/api/v1/items/23020001600", "/elsewhere",
    ]),
    *((wikimedia.Wikipedia, 200, f'"code": "{code}"', [f"{PAGES}&{each}"]) for code, each in (
        ("maxlag", "maxlag=-1"), ("badvalue", "list=allrevisions&arvdir=older"),
        ("badvalue", "list=logevents&leaction=move/move"),
        ("invalidcategory", "list=categorymembers&cmtitle=Talk:A"),
        ("toomanyvalues", f"pageids={IDS}"), ("invalidparammix", "pageids=1|2&rvlimit=1"),
        ("badinteger", "pageids=x"), ("badcontinue", "pageids=1000000&rvlimit=1&rvcontinue=no"),
    )),
    (wikimedia.Wikipedia, 200, '"code": "badvalue"', [
        PAGES.replace("formatversion=2", "formatversion=1"), PAGES.replace("query", "delete"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "status", "says", "target"),
    [(kind, status, says, each) for kind, status, says, targets in REFUSED for each in targets],
)
def test_what_the_real_site_refuses_is_refused(
    kind: type[Any], status: int, says: str, target: str
) -> None:
    check_refused(kind, status, says, target)


def check_refused(kind: type[Any], status: int, says: str, target: str) -> None:
    response = get(kind, target)
    assert response.status == status
    assert says in body_of(response).decode()


def test_filters_of_stories_are_half_open_as_they_say() -> None:
    hits = answer(hackernews.Site, STORIES, tags="story", hitsPerPage=1000)["hits"]
    window = f"created_at_i>={hits[-1]['created_at_i']},created_at_i<{hits[0]['created_at_i']}"
    found = answer(hackernews.Site, STORIES, tags="story", numericFilters=window)
    assert found["nbHits"] == len(hits) - 1 == 3 * 17 - 1


def test_a_query_reaches_a_thousand_hits_over_all_its_pages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hackernews, "MAX_HITS", 10)
    pages = [answer(hackernews.Site, STORIES, hitsPerPage=8, page=page) for page in range(3)]
    found = [(page["nbHits"], page["nbPages"], len(page["hits"])) for page in pages]
    assert found == [(51, 2, 8), (51, 2, 2), (0, 0, 0)]


def test_monitored_pages_do_not_depend_on_what_was_asked_before() -> None:
    pages = answer(wikimedia.Wikipedia, PAGES, titles="|".join(TITLES), redirects=1)
    pages = pages["query"]["pages"]
    page_id = next(page["pageid"] for page in pages if "missing" not in page)
    asked, fresh = Wiki(WORLD), Wiki(WORLD)
    for page in pages:
        asked.find(page["title"])
    known, unknown = asked.page(page_id), fresh.page(page_id)
    assert known is not None and unknown is not None
    assert known.revisions == unknown.revisions
