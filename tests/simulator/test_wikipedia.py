from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from core.month import Month
from simulator.server import Web, serve
from simulator.wiki import TITLES, Wiki
from simulator.world import World

FIRST = Month("2024-01")
WORLD = World(2, FIRST, FIRST + 3, stories_per_month=24)
PAGE = 1_000_000
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
