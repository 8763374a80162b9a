import datetime as dt

import pytest

from crawlers.questions.contract import instant_of_ms, instant_of_s, number, text, texts

NOON = dt.datetime(2024, 3, 1, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize("value", [None, True, "1", "x", [1], 10**400, float("nan"), -1, 0, 1e300])
def test_what_is_no_instant(value: object) -> None:
    assert instant_of_s(value) is None
    assert instant_of_ms(value) is None


def test_instants_are_in_utc() -> None:
    seconds = NOON.timestamp()
    assert instant_of_s(seconds) == NOON and instant_of_ms(int(seconds * 1000)) == NOON
    assert instant_of_ms(int(seconds * 1000) + 7) == NOON + dt.timedelta(milliseconds=7)


@pytest.mark.parametrize(
    ("value", "found"),
    [(1, 1.0), ("0.5", 0.5), (" 2 ", 2.0), (True, None), (None, None), ("inf", None), ("", None),
     ([], None), (10**400, None)],
)  # fmt: skip
def test_numbers(value: object, found: float | None) -> None:
    assert number(value) == found


def test_texts() -> None:
    assert text(" ") is text(3) is text(None) is None
    assert text("a ") == "a "
    assert texts(["a", 3, "", None, "b"]) == ("a", "b")
    assert texts("ab") == texts(None) == ()
