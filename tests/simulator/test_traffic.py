import email.utils
import threading
import time
from collections.abc import Iterator

import pytest
import requests

from simulator import server
from simulator.faults import KNOBS, knob
from simulator.server import Request, Response, Web, serve_sites


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
    return requests.get(web.urls["quiet"] + path, timeout=10)


def test_arrivals_and_their_distance_are_counted(web: Web) -> None:
    traffic = web.traffic["quiet_api"]
    assert traffic.smallest_gap_s > 1e9
    get(web)
    time.sleep(0.1)
    get(web)
    assert len(traffic.arrivals) == 2
    assert 0.1 <= traffic.smallest_gap_s < 5
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
    while fault.times:
        time.sleep(0.005)
    get(web)
    web.faults.clear()
    slow.join()
    assert web.traffic["quiet"].most_at_once == 2


def test_a_request_above_the_limit_is_answered_429(web: Web) -> None:
    web.limits["quiet_api"] = 60
    statuses = [get(web).status_code for _ in range(2)]
    assert statuses == [200, 429]
    assert web.traffic["quiet"].num_refused == 1
    assert get(web).headers["Retry-After"] == "60"
    web.limits["quiet_api"] = 0.001
    while get(web).status_code != 200:
        time.sleep(0.01)


def test_a_retry_after_may_be_a_date_that_is_still_to_come(web: Web) -> None:
    web.faults.append(knob("429 with Retry-After as a date", "quiet"))
    asked_at = time.time()
    answer = get(web)
    assert answer.status_code == 429
    moment = email.utils.parsedate_to_datetime(answer.headers["Retry-After"])
    assert 0.5 <= moment.timestamp() - asked_at < 10


def test_a_silence_ends_when_its_fault_is_taken_away(web: Web) -> None:
    fault = knob("a long silence", "quiet")
    web.faults.append(fault)
    threading.Timer(0.2, web.faults.clear).start()
    started = time.monotonic()
    assert get(web).status_code == 200
    assert time.monotonic() - started >= 0.19


@pytest.mark.parametrize("name", KNOBS)
def test_a_knob_is_a_fault_of_one_site_and_leaves_the_next_as_it_was(name: str) -> None:
    first = knob(name, "quiet", "^/a", 3)
    first.headers["X"] = "changed"
    assert (first.key, first.pattern, first.times) == ("quiet", "^/a", 3)
    assert "X" not in knob(name, "quiet").headers
