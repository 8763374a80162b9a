"""The simulated GOV.UK speaks the search API's and the content API's protocols."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from core.month import Month
from simulator.server import Request, Response
from simulator.sites.govuk import LISTING, MAX_COUNT, NEWS, ODDITIES, Site
from simulator.world import World

WORLD = World(3, Month("2024-01"), Month("2024-03"), stories_per_month=24)
MONTH = {"filter_public_timestamp": "from:2024-02-01,to:2024-02-29"}


@pytest.fixture
def site() -> Site:
    return Site(WORLD)


def get(site: Site, target: str, **params: str | int) -> Response:
    parts = urlsplit(target)
    query = {**parse_qs(parts.query), **{name: [str(value)] for name, value in params.items()}}
    return site.respond(Request("GET", parts.path, query, {}, b""))


def search(site: Site, **params: str | int) -> dict[str, Any]:
    response = get(site, "/api/search.json", **params)
    assert response.status == 200
    answer: dict[str, Any] = json.loads(response.body)
    return answer


def test_pages_are_cut_by_count_and_start(site: Site) -> None:
    whole = search(site, count=MAX_COUNT, order="public_timestamp", fields="link", **MONTH)
    assert whole["total"] == len(whole["results"]) > 24
    parts = [
        row
        for start in range(0, whole["total"] + 10, 10)
        for row in search(site, count=10, start=start, order="public_timestamp", fields="link",
                          **MONTH)["results"]
    ]  # fmt: skip
    assert parts == whole["results"]
    assert set(parts[0]) == {
        "link", "index", "es_score", "_id", "document_type", "elasticsearch_type",
    }  # fmt: skip


def test_a_day_without_a_time_ends_at_its_last_minute(site: Site) -> None:
    """What appeared in a month's last minute is listed only where a day more is asked for."""
    whole = search(site, count=MAX_COUNT, filter_public_timestamp="from:2024-02-29,to:2024-03-01")
    day = search(site, count=MAX_COUNT, filter_public_timestamp="from:2024-02-29,to:2024-02-29")
    assert whole["total"] > day["total"]


@pytest.mark.parametrize(
    "params",
    [
        {"count": MAX_COUNT + 1}, {"count": "ten"}, {"start": "-1"}, {"start": 10**6},
        {"order": "first_published_at"}, {"fields": "link,body"}, {"page": 2},
        {"filter_public_timestamp": "from:yesterday"}, {"filter_public_timestamp": "2024-02"},
    ],
)  # fmt: skip
def test_unknown_parameters_are_refused(site: Site, params: dict[str, str | int]) -> None:
    response = get(site, "/api/search.json", **params)
    assert response.status == 422
    assert json.loads(response.body)["error"]


def test_types_are_filtered(site: Site) -> None:
    name = "filter_content_store_document_type"
    found = search(site, count=100, **{name: "speech"}, **MONTH)["results"]
    assert {row["content_store_document_type"] for row in found} == {"speech"}


def test_content_items_redirects_and_gone_pages(site: Site) -> None:
    by_oddity = {a.oddity: NEWS + a.slug for a in site.newsroom.of_month(Month("2024-02"))}
    assert set(by_oddity) == {"", *ODDITIES}
    item = json.loads(get(site, f"/api/content{by_oddity['']}").body)
    assert item["base_path"] == by_oddity[""] and "<p>" in item["details"]["body"]
    assert get(site, f"/api/content{by_oddity['gone']}").status == 410
    assert get(site, "/api/content/government/news/none").status == 404
    moved = get(site, f"/api/content{by_oddity['renamed']}")
    assert moved.status == 303
    assert get(site, moved.headers["Location"]).status == 200
    translation = json.loads(get(site, f"/api/content{by_oddity['translated']}.cy").body)
    assert translation["locale"] == "cy"


def test_a_person_can_click_from_the_front_page_to_an_article(site: Site) -> None:
    links = re.findall(r'href="([^"]+)"', get(site, "/").body.decode())
    assert links == [LISTING]
    months = re.findall(r'href="(/search[^"]+)"', get(site, LISTING).body.decode())
    assert [link[-7:] for link in months] == [str(month) for month in WORLD.months]
    articles = re.findall(r'href="(/government[^"]+)"', get(site, months[1]).body.decode())
    assert len(articles) == 24 + len(ODDITIES)
    page = get(site, articles[0])
    assert page.status == 200
    assert site.newsroom.of_month(Month("2024-02"))[0].story.paragraphs[0] in page.body.decode()
    assert get(site, f"{LISTING}?month=1999-01").status == 422
    assert get(site, "/government/news/none").status == 404
