import datetime as dt
from typing import Any

import pytest

from core.errors import SourceChanged
from crawlers.apis.fields import MAX_INTEGER, Fields, show

NOON = dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)
ODD: list[Any] = [None, True, "x", "", 1, 0.5, -1, [], {}, [[]], [{}], {"a": []}, 2**62, "\ud800"]


def fields(**values: object) -> Fields:
    return Fields.of("site", values)


@pytest.mark.parametrize("value", ODD)
def test_each_accessor_accepts_every_value(value: Any) -> None:
    found = fields(a=value)
    assert found.text("a") == (value if isinstance(value, str) and value else None)
    assert found.integer("a") == (value if type(value) is int and value >= 0 else None)
    assert found.number("a") == (value if type(value) in (int, float) else None)
    assert found.boolean("a") is (True if value is True else None)
    assert found.time("a", dt.UTC) is None
    assert found.epoch("a") == (
        dt.datetime.fromtimestamp(value, dt.UTC)
        if value in (1, 0.5) and value is not True
        else None
    )
    assert found.inner("a").values == (value if isinstance(value, dict) else {})
    rows = found.rows("a")
    assert (
        rows is None
        if not isinstance(value, list)
        else [row.values for row in rows or []] == ([{}] * len(value))
    )
    assert found.texts("a") == ()
    assert found.numbers("a") == ([None] * len(value) if isinstance(value, list) else [])
    assert Fields.of("site", value).text("b") is None


def test_integers_have_bounds() -> None:
    found = fields(a=7, b=10**15)
    assert found.integer("a", 7, 7) == 7
    assert found.integer("a", 8) is found.integer("a", 0, 6) is found.integer("b", 0, 10**6) is None
    assert found.integer("b") == 10**15 <= MAX_INTEGER


def test_numbers_may_be_strings() -> None:
    found = fields(
        a="0.5", b="inf", c=["0.5", 1, None, "x", [], True], d="nan", e="1" * 5000, f=10**400
    )
    assert found.number("a") == pytest.approx(0.5)
    assert [found.number(each) for each in "bdef"] == [None] * 4
    assert found.numbers("c") == pytest.approx([0.5, 1, None, None, None, None])


def test_times() -> None:
    seconds = int(NOON.timestamp())
    found = fields(
        a=seconds, b=seconds * 1000 + 7, c="2024-03-01T12:00:00", d=str(seconds), e=1e300
    )
    assert found.epoch("a") == found.time("c", dt.UTC) == NOON
    assert found.epoch("b", 1000) == NOON + dt.timedelta(milliseconds=7)
    assert found.time("c") is found.epoch("d") is found.epoch("e") is None
    assert (
        fields(a=-1).epoch("a") is fields(a=0).epoch("a") is fields(a=10**10 - 1).epoch("a") is None
    )


def test_lists() -> None:
    found = fields(a=["x", 3, "", None, "y"], b=[{"id": 1}, 5])
    assert found.texts("a") == ("x", "y")
    assert [row.integer("id") for row in found.rows("b") or []] == [1, None]


def test_what_is_needed_is_named_with_its_value() -> None:
    inner = fields(post={"id": "x" * 10_000}).inner("post")
    assert inner.need("id", 3, "a number") == 3
    with pytest.raises(SourceChanged, match=r"site: post: id is 'x+\.\.\.x+', expected a number"):
        inner.need("id", inner.integer("id"), "a number")


def test_shown_values_are_short() -> None:
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep, "x" * 100]
    assert all(len(show(value)) <= 200 for value in (deep, {str(n): deep for n in range(100)}))
