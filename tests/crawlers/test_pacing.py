from __future__ import annotations

import datetime as dt
import email.utils
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import SourceUnavailable
from crawlers import pacing
from crawlers.pacing import Host, TryAgain, host_of, read_retry_after


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("9" * 400, float("inf")),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0),
        (None, None),
        ("", None),
        ("-5", None),
        ("1.5", None),
        ("²", None),
        ("soon", None),
        ("Fri, 99 Foo 2024 00:00:00 GMT", None),
        (f"Fri, 01 Jan {'9' * 30} 00:00:00 GMT", None),
    ],
)
def test_retry_after(value: str | None, expected: float | None) -> None:
    assert read_retry_after(value) == expected


@pytest.mark.parametrize("zone", [dt.UTC, dt.timezone(dt.timedelta(hours=-9))])
def test_a_date_is_read_in_its_own_zone(zone: dt.tzinfo) -> None:
    moment = dt.datetime.now(zone) + dt.timedelta(seconds=90)
    pause_s = read_retry_after(email.utils.format_datetime(moment))
    assert pause_s is not None
    assert 85 < pause_s <= 90


def test_a_date_without_a_zone_is_utc() -> None:
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=90)
    pause_s = read_retry_after(moment.strftime("%a, %d %b %Y %H:%M:%S -0000"))
    assert pause_s is not None
    assert 85 < pause_s <= 90


@given(st.text())
def test_no_header_breaks_the_reader(value: str) -> None:
    pause_s = read_retry_after(value)
    assert pause_s is None or pause_s >= 0


def test_a_host_is_one_record_for_all() -> None:
    assert host_of("pacing.example") is host_of("pacing.example")
    assert host_of("pacing.example") is not host_of("pacing.example:8080")


def failing_wait_s(host: Host) -> float:
    """Fail, and return how long the turn had to be waited for."""
    with pytest.raises(TryAgain), host.turn(0.0) as waited_s:
        raise TryAgain("failed")
    return waited_s


def test_pauses_double_and_a_success_ends_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "BACKOFF_BASE_S", 0.04)
    host = Host("h")
    for expected in (0.0, 0.04, 0.08, 0.16):
        assert 0.5 * expected <= failing_wait_s(host) <= 1.5 * expected + 0.3
    with host.turn(0.0) as waited_s:
        assert waited_s >= 0.16  # half of 0.32, at the least
    assert failing_wait_s(host) < 0.3
    assert failing_wait_s(host) <= 1.5 * 0.04 + 0.3  # it would be 0.64 at least


def test_the_interval_is_from_start_to_start() -> None:
    host = Host("h")
    with host.turn(0.3):
        time.sleep(0.25)
    with host.turn(0.3) as waited_s:
        assert waited_s < 0.2


def test_an_unending_row_of_failures_asks_for_a_bearable_pause() -> None:
    host = Host("h")
    host._failures = 10_000
    assert host._pause_s(TryAgain("failed")) <= 2**9 * 2.0


def test_a_pause_that_is_too_long_is_refused_without_waiting() -> None:
    host = Host("slow.example")
    with pytest.raises(TryAgain), host.turn(0.0):
        raise TryAgain("asked for it", pacing.MAX_WAIT_S + 5)
    started = time.monotonic()
    refusal = r"slow\.example asks for a pause of 60\d s"
    with pytest.raises(SourceUnavailable, match=refusal), host.turn(0.0):
        pytest.fail("it is not our turn")
    assert time.monotonic() - started < 1
