from __future__ import annotations

from collections.abc import Iterator

import pytest
import requests

from core.month import Month
from simulator import front_page
from simulator.server import Web, running, serve
from simulator.world import World

TITLE = "A <small> web"


@pytest.fixture(scope="module")
def webs() -> Iterator[tuple[Web, str]]:
    with (
        serve(World(1, Month("2024-01"), Month("2024-02"))) as web,
        running(front_page.Site(web, TITLE), web) as url,
    ):
        yield web, url


@pytest.fixture
def web(webs: tuple[Web, str]) -> Iterator[Web]:
    yield webs[0]
    send(webs[1], do="clear")


@pytest.fixture
def url(webs: tuple[Web, str]) -> str:
    return webs[1]


def send(url: str, **form: object) -> requests.Response:
    return requests.post(f"{url}/faults", data=form, timeout=10)


def test_the_front_page_names_every_site_and_how_to_use_it(web: Web, url: str) -> None:
    page = requests.get(url, timeout=10).text
    assert "<h1>A &lt;small&gt; web</h1>" in page
    for key, address in web.urls.items():
        if key != "simulator":
            assert f"export TIDEMARK_SITES__{key.upper()}={address}\n" in page
            assert f'href="{address}/' in page


def test_every_site_begins_with_a_page_that_is_there(web: Web, url: str) -> None:
    for key, site in web.sites.items():
        answer = requests.get(web.urls[key] + front_page.start_of(site), timeout=10)
        assert answer.status_code == (404 if site.robots is None else 200) or answer.ok


def test_a_fault_is_switched_on_and_met(web: Web, url: str) -> None:
    page = send(url, do="fault", site="arxiv", name="403", pattern="^/src", times=1)
    assert page.status_code == 200 and "status 403" in page.text  # after its redirect
    asked = [f"{web.urls['arxiv']}{path}" for path in ("/api/query", "/src/1v1", "/src/1v1")]
    assert [requests.get(each, timeout=10).status_code for each in asked] == [200, 403, 404]
    assert "status 403" not in requests.get(f"{url}/faults", timeout=10).text


def test_a_quirk_and_a_limit_are_switched_on_and_mended(web: Web, url: str) -> None:
    web.traffic["wikipedia"].clear()
    send(url, do="quirk", site="wikipedia", name="empty_page", times=2)
    send(url, do="limit", site="arxiv")
    send(url, do="limit", site="wikipedia", seconds=60)
    assert web.sites["wikipedia"].quirks == {"empty_page": 2}
    assert web.limits == {"arxiv": 3.0, "wikipedia": 60.0}
    asked = f"{web.urls['wikipedia']}/robots.txt"
    assert [requests.get(asked, timeout=10).status_code for _ in range(2)] == [200, 429]
    send(url, do="clear")
    assert web.sites["wikipedia"].quirks == web.limits == {}
    assert requests.get(asked, timeout=10).status_code == 200


@pytest.mark.parametrize(
    "form",
    [
        {"do": "fault", "site": "arxiv", "name": "403", "pattern": "(", "times": 1},
        {"do": "fault", "site": "arxiv", "name": "403", "times": 0},
        {"do": "fault", "site": "arxiv", "name": "<b>", "times": 1},
        {"do": "fault", "site": "nowhere", "name": "403", "times": 1},
        {"do": "quirk", "site": "arxiv", "name": "nothing", "times": 1},
        {"do": "limit", "site": "arxiv", "seconds": "long"},
        {},
    ],
)
def test_a_form_that_the_page_does_not_have_is_refused(
    form: dict[str, object], web: Web, url: str
) -> None:
    answer = send(url, **form)
    assert answer.status_code == 400
    assert "<b>" not in answer.text
    assert web.faults == []


def test_what_was_asked_for_is_shown_and_escaped(web: Web, url: str) -> None:
    requests.get(f"{web.urls['wikipedia']}/?a=<script>", timeout=10)
    page = requests.get(url, timeout=10).text
    assert "<script" not in page
    assert "/?a=" in page
