import json

import pytest

from core.month import Month
from simulator.server import Request, Response
from simulator.sites.global_voices import PATH, Site
from simulator.world import World

WORLD = World(3, Month("2024-01"), Month("2024-03"), stories_per_month=24)
WINDOW = {"after": "2024-01-31T00:00:00", "before": "2024-03-02T00:00:00", "order": "asc"}


@pytest.fixture
def site() -> Site:
    return Site(WORLD)


def get(site: Site, path: str, **params: str | int) -> Response:
    query = {name: [str(value)] for name, value in params.items()}
    return site.respond(Request("GET", path, query, {}, b""))


def test_a_page_beyond_the_last_is_a_400(site: Site) -> None:
    response = get(site, PATH, per_page=100, page=2, **WINDOW)
    assert response.status == 400
    assert json.loads(response.body)["code"] == "rest_post_invalid_page_number"


@pytest.mark.parametrize(
    "params",
    [
        {"per_page": 101}, {"per_page": 0}, {"page": 0}, {"page": "x"}, {"after": "2024-02-01"},
        {"order": "up"},
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused(site: Site, params: dict[str, str | int]) -> None:
    response = get(site, PATH, **params)
    assert response.status == 400
    assert json.loads(response.body)["code"] == "rest_invalid_param"
