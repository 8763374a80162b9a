from collections.abc import Iterator
from typing import Any

import pytest
import requests

from core.month import Month
from simulator.server import Web, serve_sites
from simulator.sites.github_api import TOKEN, Archive, Site
from simulator.world import World

MONTH = Month("2024-01")
WORLD = World(0, MONTH, MONTH + 1)
AUTHORISED = {"Authorization": f"Bearer {TOKEN}"}
WHOLE = "created:2024-01-01T00:00:00Z..2024-01-31T23:59:59Z language:python"


@pytest.fixture
def site() -> Site:
    return Site(WORLD)


@pytest.fixture
def web(site: Site) -> Iterator[Web]:
    with serve_sites([site, Archive(WORLD)]) as running:
        yield running


def get(web: Web, path: str, headers: dict[str, str] = AUTHORISED, **params: Any) -> Any:
    url = web.urls["github_api"] + path
    return requests.get(url, params, headers=headers, timeout=10, allow_redirects=False)


def test_pages_have_links_and_end_at_1000(web: Web) -> None:
    first = get(web, "/search/repositories", q=WHOLE, per_page=3)
    assert first.links["next"]["url"].endswith("page=2")
    assert len(first.json()["items"]) == 3
    following = requests.get(first.links["next"]["url"], headers=AUTHORISED, timeout=10)
    assert "prev" in following.links
    beyond = get(web, "/search/repositories", q=WHOLE, per_page=100, page=11)
    assert beyond.status_code == 422
    assert "first 1000" in beyond.json()["message"]
    assert get(web, "/search/repositories").status_code == 422


def test_limits_are_told_and_kept_apart(web: Web, site: Site) -> None:
    site.limits = {**site.limits, ("core", False): (2, 3600.0)}
    name = next(iter(site.repositories))
    left = [get(web, f"/repos/{name}/commits", {}) for _ in range(3)]
    assert [answer.status_code for answer in left] == [200, 200, 403]
    assert [answer.headers["x-ratelimit-remaining"] for answer in left] == ["1", "0", "0"]
    assert "rate limit exceeded" in left[-1].json()["message"]
    assert site.num_refused == 1
    assert get(web, "/search/repositories", {}, q=WHOLE).headers["x-ratelimit-resource"] == "search"
    assert get(web, f"/repos/{name}/commits").headers["x-ratelimit-limit"] == "5000"


def test_a_wrong_token_is_401(web: Web) -> None:
    answer = get(web, "/search/repositories", {"Authorization": "Bearer no"}, q=WHOLE)
    assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")


def test_what_is_known_already_is_304(web: Web, site: Site) -> None:
    name = next(iter(site.repositories))
    tag = get(web, f"/repos/{name}/commits").headers["etag"]
    again = get(web, f"/repos/{name}/commits", {**AUTHORISED, "If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
