"""The simulated Wikinews, German Wikipedia and dumps: asked over HTTP without any code of ours."""

from __future__ import annotations

import bz2
import re
from collections.abc import Iterator
from typing import Any

import pytest
import requests

from core.month import Month
from simulator.mediawiki import MAX_ROWS
from simulator.server import Web, serve_sites
from simulator.sites import wikimedia_dumps, wikinews, wikipedia, wikipedia_de
from simulator.sites.wikimedia_dumps import FOLDER, NUM_COLUMNS
from simulator.wiki import FIRST_NEW_PAGE, ODDITIES, Wiki
from simulator.wikinews import NewsWiki
from simulator.world import World

FIRST = Month("2018-01")
WORLD = World(2, FIRST, FIRST + 2, stories_per_month=24)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    sites = [module.Site(WORLD) for module in (wikinews, wikipedia, wikipedia_de, wikimedia_dumps)]
    with serve_sites(sites) as running:
        yield running


def _ask(web: Web, key: str, **params: str | int) -> dict[str, Any]:
    common = {"action": "query", "format": "json", "formatversion": 2}
    url = f"{web.urls[key]}/w/api.php"
    answer: dict[str, Any] = requests.get(url, params={**common, **params}, timeout=10).json()
    return answer


def test_the_category_of_a_day_lists_its_articles_in_pieces(web: Web) -> None:
    wiki = NewsWiki(WORLD)
    found: set[int] = set()
    for day in range(1, 32):
        more: dict[str, str] = {}
        while True:
            params = {"list": "categorymembers", "cmtitle": f"Category:January {day}, 2018"}
            answer = _ask(web, "wikinews", **params, cmnamespace=0, cmlimit=2, **more)
            rows = answer["query"]["categorymembers"]
            assert len(rows) <= 2 and all(row.keys() == {"pageid", "ns", "title"} for row in rows)
            found |= {row["pageid"] for row in rows}
            if "continue" not in answer:
                break
            more = answer["continue"]
    assert found == {page.page_id for page in wiki.pages_created(FIRST)}


def test_all_revisions_come_by_time_each_once(web: Web) -> None:
    window = {"arvstart": "2018-02-01T00:00:00Z", "arvend": "2018-02-28T23:59:59Z"}
    seen: list[tuple[str, int]] = []
    firsts = 0
    more: dict[str, str] = {}
    while True:
        params = {"list": "allrevisions", "arvnamespace": 0, "arvdir": "newer", "arvlimit": 50}
        fields = "ids|timestamp|flags"
        answer = _ask(web, "wikipedia", **params, **window, arvprop=fields, **more)
        for page in answer["query"]["allrevisions"]:
            seen += [(row["timestamp"], row["revid"]) for row in page["revisions"]]
            is_new = page["pageid"] >= FIRST_NEW_PAGE
            firsts += is_new and sum(row["parentid"] == 0 for row in page["revisions"])
        if "continue" not in answer:
            break
        assert sum(len(page["revisions"]) for page in answer["query"]["allrevisions"]) <= MAX_ROWS
        more = answer["continue"]
    assert seen == sorted(seen) and len(set(seen)) == len(seen)
    assert seen[0][0] >= window["arvstart"] and seen[-1][0] <= window["arvend"]
    new = Wiki(WORLD).pages_created(FIRST + 1)
    articles = [page for page in new if page.oddity not in ("deleted", "moved")]
    assert firsts == len(articles)


def test_the_german_wiki_is_in_german(web: Web) -> None:
    page = _ask(web, "wikipedia_de", titles="Indien", redirects=1)["query"]["pages"][0]
    texts = _ask(
        web, "wikipedia_de", prop="revisions", pageids=page["pageid"], rvprop="ids|content"
    )
    text = texts["query"]["pages"][0]["revisions"][0]["slots"]["main"]["content"]
    assert "Das Thema dieses Artikels" in text and "[[Kategorie:" in text


def test_pages_link_to_the_same_page_in_another_language(web: Web) -> None:
    titles = "India|Taiwan"
    answer = _ask(web, "wikipedia", titles=titles, prop="langlinks", lllang="de", redirects=1)
    links = {page["title"]: page.get("langlinks") for page in answer["query"]["pages"]}
    assert links["India"] == [{"lang": "de", "title": "Indien"}]
    assert links["Taiwan"] is None


@pytest.mark.parametrize(("database", "span"), [("enwiki", "2018-02"), ("dewiki", "2018")])
def test_the_dump_lists_creations_among_all_events(web: Web, database: str, span: str) -> None:
    base = web.urls["wikimedia_dumps"]
    root = requests.get(f"{base}{FOLDER}", timeout=10).text
    snapshot = max(re.findall(r'href="(\d{4}-\d{2})/"', root))
    name = f"{snapshot}.{database}.{span}.tsv.bz2"
    folder = f"{base}{FOLDER}{snapshot}/{database}/"
    assert f'href="{name}"' in requests.get(folder, timeout=10).text
    lines = bz2.decompress(requests.get(folder + name, timeout=10).content).decode().splitlines()
    rows = [line.split("\t") for line in lines]
    assert {len(row) for row in rows} == {NUM_COLUMNS}
    created = [row for row in rows if row[2:4] == ["page", "create"]]
    num_months = 1 if database == "enwiki" else 3
    assert len(created) == num_months * (24 + len(ODDITIES)) < len(rows)
    assert requests.get(f"{base}{FOLDER}2017-11/enwiki/", timeout=10).status_code == 404


def test_a_person_can_click_through(web: Web) -> None:
    base = web.urls["wikipedia"]
    main = requests.get(base, timeout=10)
    links = re.findall(r'href="(/wiki/[^"]+)"', main.text)
    assert len(links) > 30
    page = requests.get(f"{base}{links[0]}", timeout=10)
    assert page.status_code == 200 and "Versions" in page.text
    old = re.findall(r'href="(/w/index.php\?oldid=\d+)"', page.text)
    assert requests.get(f"{base}{old[0]}", timeout=10).status_code == 200
    assert requests.get(f"{base}/w/index.php?oldid=5", timeout=10).status_code == 404
    news = requests.get(web.urls["wikinews"], timeout=10).text
    link = re.findall(r'href="(/wiki/[^"]+)"', news)[0]
    assert "{{date|" in requests.get(f"{web.urls['wikinews']}{link}", timeout=10).text
