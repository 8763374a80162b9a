import json
from typing import Any

import pytest

from core.month import Month
from simulator.server import Request, Response
from simulator.sites import hackernews
from simulator.sites.hackernews import Site
from simulator.world import World


@pytest.fixture(scope="module")
def site() -> Site:
    return Site(World(0, Month("2023-01"), Month("2023-03"), stories_per_month=12))


def get(site: Site, path: str, /, **query: str) -> Response:
    return site.respond(Request("GET", path, {k: [v] for k, v in query.items()}, {}, b""))


def search(site: Site, **query: str) -> dict[str, Any]:
    answer = get(site, "/api/v1/search_by_date", **{"tags": "story", **query})
    found: dict[str, Any] = json.loads(answer.body)
    return found


def test_filters_are_half_open_as_they_say(site: Site) -> None:
    first, last = search(site, hitsPerPage="1000")["hits"][-1], search(site)["hits"][0]
    window = f"created_at_i>={first['created_at_i']},created_at_i<{last['created_at_i']}"
    assert search(site, numericFilters=window)["nbHits"] == 3 * 15 - 1


def test_a_query_reaches_a_thousand_hits_over_all_its_pages(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hackernews, "MAX_HITS", 10)
    first = search(site, hitsPerPage="8")
    assert (first["nbHits"], first["nbPages"], len(first["hits"])) == (45, 2, 8)
    assert len(search(site, hitsPerPage="8", page="1")["hits"]) == 2
    beyond = search(site, hitsPerPage="8", page="2")
    assert (beyond["hits"], beyond["nbHits"], beyond["nbPages"]) == ([], 0, 0)


def test_what_is_not_there_is_404(site: Site) -> None:
    for path in ("/api/v1/items/1", "/api/v1/items/23020001400", "/elsewhere"):
        assert get(site, path).status == 404
    assert get(site, "/api/v1/search_by_date", numericFilters="points~1").status == 400
    assert get(site, "/api/v1/search_by_date", hitsPerPage="many").status == 400
