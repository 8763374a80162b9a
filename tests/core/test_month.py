import datetime as dt
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import FutureMonth, UsageError
from core.month import Month, month_range, require_complete

MONTHS = st.dates(dt.date(1, 1, 1), dt.date(9998, 12, 31)).map(Month.of)


@pytest.mark.parametrize(
    "text",
    ["", "2024", "2024-3", "2024-00", "2024-13", "0000-01", "2024-03-01", " 2024-03", "2024-03\n",
     "2024/03", "２０２４-０３", "24-03"],
)  # fmt: skip
def test_refuses_what_is_not_a_month(text: str) -> None:
    with pytest.raises(UsageError, match="YYYY-MM"):
        Month(text)


def test_arithmetic_crosses_years_and_stays_in_the_calendar() -> None:
    assert Month("2024-11") + 3 == Month("2025-02")
    assert Month("2024-02") - 2 == Month("2023-12")
    assert Month("2024-11").months_since(Month("2025-02")) == -3
    with pytest.raises(UsageError):
        Month("0001-01") - 1
    with pytest.raises(UsageError):
        Month("9999-12") + 1


@given(MONTHS, st.integers(-50, 50))
def test_addition_and_difference_agree(month: Month, offset: int) -> None:
    if 12 <= month.index + offset < 12 * 10_000:
        later = month + offset
        assert later.months_since(month) == offset
        assert (later > month) == (offset > 0)


@given(MONTHS)
def test_text_and_pickle_keep_the_month(month: Month) -> None:
    assert Month(str(month)) == month
    assert pickle.loads(pickle.dumps(month)) == month
    assert hash(Month(str(month))) == hash(month)
    assert eval(repr(month)) == month


def test_the_interval_is_half_open() -> None:
    march = Month("2024-03")
    assert dt.datetime(2024, 3, 1, tzinfo=dt.UTC) in march
    assert dt.datetime(2024, 3, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC) in march
    assert dt.datetime(2024, 4, 1, tzinfo=dt.UTC) not in march
    assert march.end == Month("2024-04").start
    assert march.first_day == dt.date(2024, 3, 1)


def test_a_moment_counts_in_utc() -> None:
    late_in_new_york = dt.datetime(2024, 2, 29, 20, tzinfo=dt.timezone(dt.timedelta(hours=-5)))
    assert Month.of(late_in_new_york) == Month("2024-03")
    assert Month.of(dt.date(2024, 2, 29)) == Month("2024-02")
    with pytest.raises(UsageError, match="no time zone"):
        Month.of(dt.datetime(2024, 3, 1))  # noqa: DTZ001


def test_range_includes_both_ends() -> None:
    months = list(month_range(Month("2023-11"), Month("2024-02")))
    assert [str(month) for month in months] == ["2023-11", "2023-12", "2024-01", "2024-02"]
    assert list(month_range(Month("2024-01"), Month("2024-01"))) == [Month("2024-01")]
    with pytest.raises(UsageError, match="before it begins"):
        list(month_range(Month("2024-02"), Month("2024-01")))


def test_only_months_that_are_over_are_complete() -> None:
    new_year = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
    require_complete(Month("2024-12"), now=new_year)
    with pytest.raises(FutureMonth, match="2024-11"):
        require_complete(Month("2024-12"), now=new_year - dt.timedelta(microseconds=1))
    with pytest.raises(FutureMonth):
        require_complete(Month("9999-12"))
    assert Month.last_complete(new_year) == Month("2024-12")
