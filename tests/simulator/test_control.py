from collections.abc import Iterator

import pytest
import requests

from core.month import Month
from simulator import control
from simulator.limits import PER_MINUTE_WITHOUT_CONTACT
from simulator.server import Web, running, serve
from simulator.world import World


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Web, str]]:
    with (
        serve(World(1, Month("2024-01"), Month("2024-02"))) as web,
        running(control.Site(web, "A small web"), web) as url,
    ):
        yield web, url


@pytest.fixture
def web(served: tuple[Web, str]) -> Iterator[Web]:
    yield served[0]
    assert requests.post(f"{served[1]}/faults/clear", timeout=10).ok


@pytest.fixture
def url(served: tuple[Web, str]) -> str:
    return served[1]


def add(url: str, **query: object) -> requests.Response:
    return requests.post(f"{url}/faults", params={k: str(v) for k, v in query.items()}, timeout=10)


def test_the_index_names_every_site_and_how_to_use_it(web: Web, url: str) -> None:
    lines = requests.get(url, timeout=10).text.splitlines()
    assert lines[0] == "A small web"
    for key, address in web.urls.items():
        assert (f"export TIDEMARK_SITES__{key.upper()}={address}" in lines) == (key != "simulator")


def test_a_fault_is_added_and_met(web: Web, url: str) -> None:
    assert add(url, site="hackernews", fault="403", pattern="^/api/v1/items").ok
    paths = ("/api/v1/search_by_date", "/api/v1/items/1", "/api/v1/items/1")
    targets = [f"{web.urls['hackernews']}{path}" for path in paths]
    assert [requests.get(each, timeout=10).status_code for each in targets] == [200, 403, 404]


def test_a_quirk_and_a_limit_are_added_and_removed(web: Web, url: str) -> None:
    web.traffic["wikipedia"].clear()
    assert add(url, site="wikipedia", quirk="empty_page", times=2).ok
    assert add(url, site="wikipedia", limit_s=60).ok
    assert web.sites["wikipedia"].quirks == {"empty_page": 2}
    assert web.limits == {"wikipedia": 60.0}
    target = f"{web.urls['wikipedia']}/robots.txt"
    assert [requests.get(target, timeout=10).status_code for _ in range(2)] == [200, 429]
    requests.post(f"{url}/faults/clear", timeout=10)
    assert web.sites["wikipedia"].quirks == web.limits == {}
    assert requests.get(target, timeout=10).status_code == 200


def test_the_limits_of_wikimedia_are_added_and_removed(web: Web, url: str) -> None:
    assert add(url, site="wikinews", limits="real").ok
    target = f"{web.urls['wikipedia']}/w/api.php?action=query&format=json&formatversion=2"
    answers = [requests.get(target, timeout=10) for _ in range(PER_MINUTE_WITHOUT_CONTACT + 1)]
    assert [answer.status_code for answer in answers[-2:]] == [200, 429]
    requests.post(f"{url}/faults/clear", timeout=10)
    assert requests.get(target, timeout=10).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        {"site": "hackernews", "limits": "real"},
        {"site": "wikipedia", "limits": "unreal"},
        {"site": "hackernews", "fault": "403", "pattern": "("},
        {"site": "hackernews", "fault": "403", "times": 0},
        {"site": "hackernews", "fault": "nothing"},
        {"site": "nowhere", "fault": "403"},
        {"site": "hackernews", "quirk": "nothing"},
        {"site": "hackernews", "limit_s": "long"},
        {},
    ],
)
def test_what_there_is_not_is_refused(query: dict[str, object], web: Web, url: str) -> None:
    assert add(url, **query).status_code == 400
    assert web.faults == []
