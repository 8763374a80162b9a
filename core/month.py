"""Calendar months in UTC, the usual unit of measurements, and their common base with others."""

from __future__ import annotations

import datetime as dt
import re
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import total_ordering
from typing import ClassVar, Self, TypeVar

from core.errors import FutureMonth, UsageError

_PATTERN = re.compile(r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})")
_FIRST_INDEX = 12  # of January of year 1
_END_INDEX = 120_000  # of January of year 10000, which has no date in Python


@total_ordering
class Period:
    """The half-open UTC interval from a period's first day to the next period's first day.

    Periods of one kind follow each other without holes, and have consecutive ``index`` values. A
    subclass is a kind. Periods are ordered by start. If two have the same start, the longer one is
    the later one. See docs/adr/0004-months.md and docs/adr/0041-periods.md.
    """

    __slots__ = ()

    kind: ClassVar[str]  # the name of the kind, such as ``month``
    per_year: ClassVar[int]  # number of periods in a year, without fractions

    index: int

    @classmethod
    @abstractmethod
    def at(cls, index: int) -> Self:
        """Return the period with this index; raise UsageError outside the years 1 to 9999."""

    @classmethod
    @abstractmethod
    def of_day(cls, day: dt.date) -> Self:
        """Return the period that contains a date."""

    @property
    @abstractmethod
    def first_day(self) -> dt.date:
        """The period's first day, as stored in every ``month`` column."""

    @classmethod
    def of(cls, day: dt.date) -> Self:
        """Return the period of a date, or of the UTC day of a datetime, which must have a zone."""
        if isinstance(day, dt.datetime):
            if day.tzinfo is None:
                raise UsageError(f"{day} has no time zone; {cls.kind}s are in UTC")
            day = day.astimezone(dt.UTC).date()
        return cls.of_day(day)

    @classmethod
    def last_complete(cls, now: dt.datetime | None = None) -> Self:
        """Return the latest period that has ended (UTC)."""
        return cls.of(now or dt.datetime.now(dt.UTC)) - 1

    @property
    def start(self) -> dt.datetime:
        """The first instant of the period, in UTC."""
        return dt.datetime.combine(self.first_day, dt.time(), tzinfo=dt.UTC)

    @property
    def end(self) -> dt.datetime:
        """The first instant of the next period, in UTC."""
        return (self + 1).start

    def __contains__(self, moment: dt.datetime) -> bool:
        return self.start <= moment < self.end

    def __add__(self, periods: int) -> Self:
        return self.at(self.index + periods)

    def __sub__(self, periods: int) -> Self:
        return self + -periods

    def __lt__(self, other: Period) -> bool:
        if type(self) is type(other):
            return self.index < other.index
        return (self.start, self.end) < (other.start, other.end)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


@dataclass(frozen=True, slots=True, init=False, repr=False)
class Month(Period):
    """The half-open UTC interval from a month's first day to the next month's first day.

    ``Month("2024-03") + 1 == Month("2024-04")``; the difference of two months is an integer.
    See docs/adr/0004-months.md.
    """

    kind: ClassVar[str] = "month"
    per_year: ClassVar[int] = 12

    index: int  # year * 12 + (month - 1); the next month has the next index

    def __init__(self, text: str) -> None:
        match = _PATTERN.fullmatch(text)
        year, month = (int(match["year"]), int(match["month"])) if match else (0, 0)
        if not 1 <= month <= 12 or year == 0:
            raise UsageError(f"{text!r} is not a month; expected YYYY-MM, such as 2024-03")
        object.__setattr__(self, "index", year * 12 + month - 1)

    @classmethod
    def at(cls, index: int) -> Self:
        """Return the month with this index; raise UsageError outside the years 1 to 9999."""
        if not _FIRST_INDEX <= index < _END_INDEX:
            raise UsageError(f"month {index} is outside the years 1 to 9999")
        month = object.__new__(cls)  # not from text: imports call this once per row
        object.__setattr__(month, "index", index)
        return month

    @classmethod
    def of_day(cls, day: dt.date) -> Self:
        """Return the month that contains a date."""
        return cls.at(day.year * 12 + day.month - 1)

    @property
    def first_day(self) -> dt.date:
        """The month's first day, as stored in every ``month`` column."""
        return dt.date(self.index // 12, self.index % 12 + 1, 1)

    def months_since(self, other: Month) -> int:
        """Return the number of months since ``other``; negative if ``other`` is the later month."""
        return self.index - other.index

    def __str__(self) -> str:
        return f"{self.index // 12:04d}-{self.index % 12 + 1:02d}"


AnyPeriod = TypeVar("AnyPeriod", bound=Period)


def month_range(first: AnyPeriod, last: AnyPeriod) -> Iterator[AnyPeriod]:
    """Yield the periods from ``first`` to ``last``, inclusive.

    Raises:
        UsageError: ``last`` is earlier than ``first``, or of another kind.
    """
    if type(first) is not type(last):
        raise UsageError(f"the range begins with a {first.kind} ({first}), not with a {last.kind}")
    if last < first:
        raise UsageError(f"the range ends ({last}) before it begins ({first})")
    for offset in range(last.index - first.index + 1):
        yield first + offset


def require_complete(period: Period, now: dt.datetime | None = None) -> None:
    """Raise FutureMonth if a period has not ended, because its text is incomplete."""
    latest = type(period).last_complete(now)
    if period > latest:
        raise FutureMonth(
            f"{period} is not over yet; the latest complete {period.kind} (UTC) is {latest}"
        )
