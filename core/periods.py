"""Half-months and weeks, and the period of a source's partitions.

The name of a source of other periods than months ends with the period: ``govuk:half-month``,
``github_new:cpp:week``. All partitions of a source are of one kind of period.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import re
from dataclasses import dataclass
from typing import ClassVar, Self

from core.errors import UsageError
from core.month import Month, Period

_HALF_MONTH = re.compile(r"(?P<month>[0-9]{4}-[0-9]{2})(?P<half>[ab])")
_WEEK = re.compile(r"(?P<year>[0-9]{4})-W(?P<week>[0-9]{2})")
_FIRST_DAYS = (1, 16)  # of the first and the second half of a month


@dataclass(frozen=True, slots=True, init=False, repr=False)
class HalfMonth(Period):
    """The days 1 to 15 of a month (``2024-03a``), or the days from 16 on (``2024-03b``)."""

    kind: ClassVar[str] = "half-month"
    per_year: ClassVar[int] = 24

    index: int  # twice the month's index, plus 1 for the second half

    def __init__(self, text: str) -> None:
        match = _HALF_MONTH.fullmatch(text)
        if match is None:
            raise UsageError(f"{text!r} is not a half-month; expected YYYY-MMa or YYYY-MMb")
        object.__setattr__(self, "index", Month(match["month"]).index * 2 + (match["half"] == "b"))

    @classmethod
    def at(cls, index: int) -> Self:
        """Return the half-month with this index; raise UsageError outside the years 1 to 9999."""
        return cls(f"{Month.at(index // 2)}{'ab'[index % 2]}")

    @classmethod
    def of_day(cls, day: dt.date) -> Self:
        """Return the half-month that contains a date."""
        return cls.at(Month.of(day).index * 2 + (day.day >= _FIRST_DAYS[1]))

    @property
    def first_day(self) -> dt.date:
        """Day 1 or 16 of the month, as stored in every ``month`` column."""
        return Month.at(self.index // 2).first_day.replace(day=_FIRST_DAYS[self.index % 2])

    def __str__(self) -> str:
        return f"{Month.at(self.index // 2)}{'ab'[self.index % 2]}"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Week(Period):
    """A week of ISO 8601, from Monday on, such as ``2024-W10``."""

    kind: ClassVar[str] = "week"
    per_year: ClassVar[int] = 52

    index: int  # number of weeks since that of 0001-01-01, a Monday

    def __init__(self, text: str) -> None:
        monday = None
        match = _WEEK.fullmatch(text)
        if match:
            with contextlib.suppress(ValueError):  # this year has no such week
                monday = dt.date.fromisocalendar(int(match["year"]), int(match["week"]), 1)
        if monday is None:
            raise UsageError(f"{text!r} is not a week; expected YYYY-Www, such as 2024-W10")
        object.__setattr__(self, "index", monday.toordinal() // 7)

    @classmethod
    def at(cls, index: int) -> Self:
        """Return the week with this index; raise UsageError outside the years 1 to 9999."""
        try:
            return cls.of_day(dt.date.fromordinal(index * 7 + 1))
        except (ValueError, OverflowError) as error:
            raise UsageError(f"week {index} is outside the years 1 to 9999") from error

    @classmethod
    def of_day(cls, day: dt.date) -> Self:
        """Return the week that contains a date."""
        year, week, _ = day.isocalendar()
        return cls(f"{year:04d}-W{week:02d}")

    @property
    def first_day(self) -> dt.date:
        """The week's Monday, as stored in every ``month`` column."""
        return dt.date.fromordinal(self.index * 7 + 1)

    def __str__(self) -> str:
        year, week, _ = self.first_day.isocalendar()
        return f"{year:04d}-W{week:02d}"


_SUFFIXES: dict[str, type[Period]] = {kind.kind: kind for kind in (HalfMonth, Week)}


def split_source(source: str) -> tuple[str, type[Period]]:
    """Return a source's name without its period, and the kind of its periods."""
    name, _, suffix = source.rpartition(":")
    kind = _SUFFIXES.get(suffix) if name else None
    return (source, Month) if kind is None else (name, kind)


def kind_of(source: str) -> type[Period]:
    """Return the kind of the periods of a source's partitions."""
    return split_source(source)[1]


def parse_period(text: str) -> Period:
    """Return a month (2024-03), a half-month (2024-03a) or a week (2024-W10)."""
    if _HALF_MONTH.fullmatch(text):
        return HalfMonth(text)
    return Week(text) if _WEEK.fullmatch(text) else Month(text)


def require_kind(source: str, period: Period) -> None:
    """Raise UsageError if a source's partitions are of another kind of period."""
    kind = kind_of(source)
    if type(period) is not kind:
        example = kind.of_day(period.first_day)
        name = split_source(source)[0]
        hint = name if isinstance(period, Month) else f"{name}:{period.kind}"
        raise UsageError(
            f"{source} has {kind.kind}s, such as {example}; {period} is a {period.kind}, of the "
            f"source {hint}"
        )
