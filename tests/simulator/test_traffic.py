import email.utils
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from simulator import server
from simulator.faults import KNOBS, knob
from simulator.server import Request, Response, Web, serve_sites
from tests.loopback import wait_for


class QuietSite:
    keys = ("quiet", "quiet_api")
    robots = None

    def __init__(self) -> None:
        self.quirks: dict[server.QuirkName, int] = {}

    def respond(self, request: Request) -> Response:
        return Response(200, {"Content-Type": "text/plain"}, b"x" * 64)


@pytest.fixture
def web() -> Iterator[Web]:
    with serve_sites([QuietSite()]) as running:
        yield running


def get(web: Web, path: str = "/") -> requests.Response:
    return requests.get(web.urls["quiet"] + path, timeout=300)


def test_arrivals_and_their_distance_are_counted(web: Web) -> None:
    traffic = web.traffic["quiet_api"]
    assert traffic.smallest_gap_s > 1e9
    began = time.monotonic()
    get(web)
    time.sleep(0.1)
    get(web)
    assert len(traffic.arrivals) == 2
    assert 0.1 <= traffic.smallest_gap_s <= time.monotonic() - began
    requests.post(web.urls["quiet"], data=b"git goes on", timeout=10)
    assert len(traffic.arrivals) == 2
    traffic.clear()
    assert traffic.arrivals == []


def test_requests_one_after_the_other_are_never_two_at_once(web: Web) -> None:
    for _ in range(50):
        get(web)  # on a connection of its own each
    assert web.traffic["quiet"].most_at_once == 1


def test_requests_side_by_side_are_counted(web: Web) -> None:
    fault = knob("a long silence", "quiet", "^/slow")
    web.faults.append(fault)
    slow = threading.Thread(target=get, args=(web, "/slow"))
    slow.start()
    wait_for(lambda: not fault.times)
    get(web)
    web.faults.clear()
    slow.join()
    assert web.traffic["quiet"].most_at_once == 2


def test_a_request_above_the_limit_is_answered_429(web: Web) -> None:
    web.limits["quiet_api"] = 3600
    statuses = [get(web).status_code for _ in range(2)]
    assert statuses == [200, 429]
    assert web.traffic["quiet"].num_refused == 1
    assert get(web).headers["Retry-After"] == "3600"
    web.limits["quiet_api"] = 0.001
    wait_for(lambda: get(web).status_code == 200)


def test_a_retry_after_may_be_a_date_that_is_still_to_come(web: Web) -> None:
    web.faults.append(knob("429 with Retry-After as a date", "quiet"))
    asked_at = time.time()
    answer = get(web)
    answered_at = time.time()
    assert answer.status_code == 429
    moment = email.utils.parsedate_to_datetime(answer.headers["Retry-After"]).timestamp()
    assert asked_at + 0.5 <= moment <= answered_at + 0.5 + 1  # whole seconds, rounded up


def test_a_silence_ends_when_its_fault_is_taken_away(web: Web) -> None:
    fault = knob("a long silence", "quiet")
    web.faults.append(fault)
    with ThreadPoolExecutor() as pool:
        answer = pool.submit(get, web)
        wait_for(lambda: not fault.times)
        assert not answer.done()
        web.faults.clear()
        assert answer.result().status_code == 200


@pytest.mark.parametrize("name", KNOBS)
def test_a_knob_is_a_fault_of_one_site_and_leaves_the_next_as_it_was(name: str) -> None:
    first = knob(name, "quiet", "^/a", 3)
    first.headers["X"] = "changed"
    assert (first.key, first.pattern, first.times) == ("quiet", "^/a", 3)
    assert "X" not in knob(name, "quiet").headers
