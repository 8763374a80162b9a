"""The simulated Global Voices speaks WordPress's REST API, and serves its pages."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from core.month import Month
from simulator.server import Request, Response
from simulator.sites.global_voices import ODDITIES, PATH, POSTS_ON_A_PAGE, Site
from simulator.world import World

WORLD = World(3, Month("2024-01"), Month("2024-03"), stories_per_month=24)
WINDOW = {"after": "2024-01-31T00:00:00", "before": "2024-03-02T00:00:00", "order": "asc"}


@pytest.fixture
def site() -> Site:
    return Site(WORLD)


def get(site: Site, path: str, **params: str | int) -> Response:
    query = {name: [str(value)] for name, value in params.items()}
    return site.respond(Request("GET", path, query, {}, b""))


def posts(site: Site, **params: str | int) -> tuple[list[dict[str, Any]], dict[str, str]]:
    response = get(site, PATH, **params)
    assert response.status == 200
    return json.loads(response.body), response.headers


def test_pages_are_counted_in_the_headers(site: Site) -> None:
    whole, headers = posts(site, per_page=100, **WINDOW)
    assert headers["X-WP-Total"] == str(len(whole)) and headers["X-WP-TotalPages"] == "1"
    pages = -(-len(whole) // 10)
    parts = [posts(site, per_page=10, page=number, **WINDOW) for number in range(1, pages + 1)]
    assert [post for rows, _ in parts for post in rows] == whole
    assert {headers["X-WP-TotalPages"] for _, headers in parts} == {str(pages)}
    assert [post["date"] for post in whole] == sorted(post["date"] for post in whole)


def test_a_page_beyond_the_last_is_a_400(site: Site) -> None:
    response = get(site, PATH, per_page=100, page=2, **WINDOW)
    assert response.status == 400
    assert json.loads(response.body)["code"] == "rest_post_invalid_page_number"


@pytest.mark.parametrize(
    "params",
    [
        {"per_page": 101}, {"per_page": 0}, {"page": 0}, {"page": "x"}, {"after": "2024-02-01"},
        {"order": "up"}, {"orderby": "luck"},
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(site: Site, params: dict[str, str | int]) -> None:
    response = get(site, PATH, **params)
    assert response.status == 400
    assert json.loads(response.body)["code"] == "rest_invalid_param"


def test_the_window_is_in_the_sites_own_time_and_leaves_out_its_ends(site: Site) -> None:
    [first], _ = posts(site, per_page=1, order="asc")
    assert (first["date"], first["date_gmt"]) == ("2023-12-31T20:00:00", "2024-01-01T00:00:00")
    after = posts(site, per_page=1, order="asc", after=first["date"])[0][0]
    assert after["id"] != first["id"]
    named = posts(site, per_page=1, order="asc", after="2023-12-31T23:59:59Z")[0][0]
    assert named["id"] == first["id"]


def test_fields_can_be_chosen(site: Site) -> None:
    rows, _ = posts(site, _fields="id,title")
    assert all(set(row) == {"id", "title"} for row in rows)


def test_unknown_routes_are_404(site: Site) -> None:
    assert json.loads(get(site, "/wp-json/wp/v2/cats").body)["code"] == "rest_no_route"
    assert get(site, "/2019/01/").status == get(site, "/2024/01/01/none/").status == 404


def test_a_person_can_click_from_the_front_page_to_a_story(site: Site) -> None:
    months = re.findall(r'href="([^"]+)"', get(site, "/").body.decode())
    assert months == ["/2024/01/", "/2024/02/", "/2024/03/"]
    first = get(site, months[1]).body.decode()
    stories = re.findall(r'href="(/2024/02/\d\d/[^"]+)"', first)
    assert len(stories) == POSTS_ON_A_PAGE
    [older] = re.findall(r'class="older" href="([^"]+)"', first)
    assert older == "/2024/02/page/2/"
    stories += re.findall(r'href="(/2024/02/\d\d/[^"]+)"', get(site, older).body.decode())
    # The first story of February is of January in the site's own time, that of March of February.
    assert len(set(stories)) == 24 + len(ODDITIES)
    page = get(site, stories[0])
    assert page.status == 200 and "article:published_time" in page.body.decode()


def test_each_language_is_a_site_of_its_own() -> None:
    english, french = Site(WORLD), Site(WORLD, "fr")
    assert (english.keys, french.keys) == (("global_voices",), ("global_voices_fr",))
    titles = [{post["title"]["rendered"] for post in posts(site)[0]} for site in (english, french)]
    assert not titles[0] & titles[1]
    assert posts(french)[0][0]["link"].startswith("https://fr.globalvoices.org/")
