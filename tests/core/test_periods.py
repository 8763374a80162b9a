"""Half-months and weeks: arithmetic, text, order, and the period of a source."""

import datetime as dt
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.corpus.partition import Partition, partition_of
from core.errors import FutureMonth, UsageError
from core.month import Month, Period, month_range, require_complete
from core.periods import HalfMonth, Week, kind_of, parse_period, split_source

DAYS = st.dates(dt.date(2, 1, 1), dt.date(9998, 12, 20))
PERIODS = st.builds(lambda kind, day: kind.of(day), st.sampled_from([Month, HalfMonth, Week]), DAYS)


@given(st.sampled_from([Month, HalfMonth, Week]), DAYS)
def test_each_day_is_in_one_period_without_holes(kind: type[Period], day: dt.date) -> None:
    period, noon = kind.of(day), dt.datetime.combine(day, dt.time(12), dt.UTC)
    assert noon in period
    assert noon not in period + 1
    assert noon not in period - 1
    assert (period - 1).end == period.start < period.end == (period + 1).start


@given(PERIODS, st.integers(-30, 30))
def test_arithmetic_agrees_with_order_and_text(period: Period, offset: int) -> None:
    moved = period + offset
    assert moved - offset == period
    assert (moved > period, moved < period) == (offset > 0, offset < 0)
    assert (str(moved) > str(period)) == (offset > 0)
    assert len(list(month_range(min(moved, period), max(moved, period)))) == abs(offset) + 1
    assert parse_period(str(moved)) == type(period).of(moved.first_day) == moved
    assert pickle.loads(pickle.dumps(moved)) == moved


@given(PERIODS, PERIODS)
def test_periods_of_different_kinds_have_one_order(one: Period, other: Period) -> None:
    assert (one < other) + (one == other) + (one > other) == 1
    if one < other:
        assert one.start <= other.start


@pytest.mark.parametrize(
    ("text", "first", "end"),
    [
        ("2024-02a", dt.date(2024, 2, 1), dt.date(2024, 2, 16)),
        ("2024-02b", dt.date(2024, 2, 16), dt.date(2024, 3, 1)),
        ("2024-W01", dt.date(2024, 1, 1), dt.date(2024, 1, 8)),
        ("2020-W53", dt.date(2020, 12, 28), dt.date(2021, 1, 4)),
    ],
)
def test_bounds(text: str, first: dt.date, end: dt.date) -> None:
    period = parse_period(text)
    assert (period.start.date(), period.end.date()) == (first, end)
    assert period.first_day == first


@pytest.mark.parametrize("text", ["2024-13a", "2024-03c", "2024-W53", "2024-W00", "2024-03-16"])
def test_refuses_what_is_no_period(text: str) -> None:
    with pytest.raises(UsageError, match="2024-|week"):
        parse_period(text)


def test_a_range_is_of_one_kind() -> None:
    with pytest.raises(UsageError, match=r"half-month \(2024-03a\), not with a week"):
        list(month_range(parse_period("2024-03a"), parse_period("2024-W12")))


def test_a_half_month_is_complete_before_its_month() -> None:
    day = dt.datetime(2024, 3, 16, tzinfo=dt.UTC)
    require_complete(HalfMonth("2024-03a"), day)
    with pytest.raises(FutureMonth, match="latest complete half-month .* is 2024-03a"):
        require_complete(HalfMonth("2024-03b"), day)


def test_the_name_of_a_source_has_its_period() -> None:
    assert split_source("github_new:cpp:half-month") == ("github_new:cpp", HalfMonth)
    assert kind_of("govuk:week") is Week
    assert [kind_of(name) for name in ("govuk", "arxiv:stat", "week", ":week")] == [Month] * 4


def test_a_partition_is_of_its_source_s_period() -> None:
    partition = Partition("govuk:half-month", HalfMonth("2024-03a"))
    assert partition_of(f"{partition.path}/manifest.json") == partition
    assert Partition("govuk", Month("2024-03")).path == "corpus/source=govuk/month=2024-03"
    for source, period in [("govuk:week", "2024-03"), ("govuk", "2024-03a")]:
        with pytest.raises(UsageError, match="2024-03a? is a"):
            Partition(source, parse_period(period))
