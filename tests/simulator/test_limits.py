import contextlib

import pytest

from core.settings import PROJECT_PAGE
from simulator.limits import AT_ONCE, Limits
from simulator.server import Request


def request(agent: str) -> Request:
    return Request("GET", "/w/api.php", {}, {"user-agent": agent}, b"")


@pytest.mark.parametrize(
    ("agent", "allowed"),
    [
        ("tidemark/1 (me@example.org) requests/2", 200), ("tidemark/1 (+https://example.org)", 200),
        (f"tidemark/1 (+{PROJECT_PAGE})", 10), ("python-requests/2", 10), ("", 10),
    ],
)  # fmt: skip
def test_the_requests_of_a_minute_are_limited(agent: str, allowed: int) -> None:
    now_s = 0.0
    limits = Limits(lambda: now_s)

    def ask() -> str | None:
        with limits.admit(request(agent)) as refusal:
            return refusal and refusal.headers["Retry-After"]

    assert [ask() for _ in range(allowed)] == [None] * allowed
    now_s = 12.5
    assert ask() == "48"
    now_s = 60.0
    assert [ask() for _ in range(allowed)] == [None] * allowed
    assert ask() == "60"
    assert limits.num_refused == 2


def test_requests_at_once_are_limited() -> None:
    limits = Limits(lambda: 0.0)
    with contextlib.ExitStack() as stack:
        answers = [
            stack.enter_context(limits.admit(request("tidemark/1 (me@example.org)")))
            for _ in range(AT_ONCE + 1)
        ]
    assert [answer and answer.status for answer in answers] == [None, None, None, 429]
    assert limits.most_at_once == AT_ONCE + 1
