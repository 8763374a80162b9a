import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from core.month import Month
from simulator.server import Request, Response
from simulator.sites.govuk import MAX_COUNT, Site
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


def test_a_day_without_a_time_ends_at_its_last_minute(site: Site) -> None:
    """Items of a month's last minute are listed only if a request includes the next day."""
    whole = search(site, count=MAX_COUNT, filter_public_timestamp="from:2024-02-29,to:2024-03-01")
    day = search(site, count=MAX_COUNT, filter_public_timestamp="from:2024-02-29,to:2024-02-29")
    assert whole["total"] > day["total"]


@pytest.mark.parametrize(
    "params",
    [
        {"count": MAX_COUNT + 1}, {"count": "ten"}, {"start": "-1"}, {"start": 10**6},
        {"page": 2},
        {"filter_public_timestamp": "from:yesterday"}, {"filter_public_timestamp": "2024-02"},
    ],
)  # fmt: skip
def test_unknown_parameters_are_refused(site: Site, params: dict[str, str | int]) -> None:
    response = get(site, "/api/search.json", **params)
    assert response.status == 422
    assert json.loads(response.body)["error"]
