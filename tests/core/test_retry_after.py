"""Retry-After is read alike from sites and from model servers."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.retry_after import read_retry_after


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0", 0.0), (" 120 ", 120.0), ("9" * 400, float("inf")),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0.0), (None, None), ("", None), ("-5", None),
        ("1.5", 1.5), ("1.5.2", None), (".5", None), ("²", None), ("soon", None),
        ("Fri, 99 Foo 2024 00:00:00 GMT", None),
        (f"Fri, 01 Jan {'9' * 30} 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after(value: str | None, expected: float | None) -> None:
    assert read_retry_after(value) == expected


@pytest.mark.parametrize("zone", ["+0000", "-0000", "-0900"])
def test_a_date_is_read_in_its_own_zone(zone: str) -> None:
    hours = dt.timedelta(hours=int(zone[:3]))
    moment = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=900) + hours
    pause_s = read_retry_after(moment.strftime(f"%a, %d %b %Y %H:%M:%S {zone}"))
    assert pause_s is not None
    assert 600 < pause_s <= 900


@given(st.text())
def test_no_header_breaks_the_reader(value: str) -> None:
    pause_s = read_retry_after(value)
    assert pause_s is None or pause_s >= 0
