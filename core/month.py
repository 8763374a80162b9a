"""Calendar months in UTC, the unit of all measurements."""

from __future__ import annotations

import datetime as dt
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.errors import FutureMonth, UsageError

_PATTERN = re.compile(r"([0-9]{4})-([0-9]{2})")


@functools.total_ordering
@dataclass(frozen=True, slots=True, init=False)
class Month:
    """The half-open UTC interval from a month's first day to the next month's first day.

    ``Month("2024-03") + 1 == Month("2024-04")``; the difference of two months is an integer.
    See docs/adr/0004-months.md.
    """

    index: int  # year * 12 + (month - 1); the next month has the next index

    def __init__(self, text: str) -> None:
        match = _PATTERN.fullmatch(text)
        if match is None or not 1 <= int(match[2]) <= 12 or int(match[1]) == 0:
            raise UsageError(f"{text!r} is not a month; expected YYYY-MM, such as 2024-03")
        object.__setattr__(self, "index", int(match[1]) * 12 + int(match[2]) - 1)

    @classmethod
    def of(cls, day: dt.date) -> Month:
        """Return the month of a date, or the UTC month of a datetime, which must have a zone."""
        if isinstance(day, dt.datetime):
            if day.tzinfo is None:
                raise UsageError(f"{day} has no time zone; months are in UTC")
            day = day.astimezone(dt.UTC)
        return cls(f"{day.year:04d}-{day.month:02d}")

    @classmethod
    def last_complete(cls, now: dt.datetime | None = None) -> Month:
        """Return the latest month that has ended (UTC)."""
        return cls.of(now or dt.datetime.now(dt.UTC)) - 1

    @property
    def first_day(self) -> dt.date:
        """The month's first day, as stored in every ``month`` column."""
        return dt.date(self.index // 12, self.index % 12 + 1, 1)

    @property
    def start(self) -> dt.datetime:
        """The first instant of the month, in UTC."""
        return dt.datetime.combine(self.first_day, dt.time(), tzinfo=dt.UTC)

    @property
    def end(self) -> dt.datetime:
        """The first instant of the next month, in UTC."""
        return (self + 1).start

    def __contains__(self, moment: dt.datetime) -> bool:
        return self.start <= moment < self.end

    def __add__(self, months: int) -> Month:
        year, month = divmod(self.index + months, 12)
        return Month(f"{year:04d}-{month + 1:02d}")

    def __sub__(self, other: int) -> Month:
        return self + -other

    def months_since(self, other: Month) -> int:
        """Return the number of months since ``other``; negative if ``other`` is the later month."""
        return self.index - other.index

    def __lt__(self, other: Month) -> bool:
        return self.index < other.index

    def __str__(self) -> str:
        return f"{self.index // 12:04d}-{self.index % 12 + 1:02d}"

    def __repr__(self) -> str:
        return f"Month({str(self)!r})"


def month_range(first: Month, last: Month) -> Iterator[Month]:
    """Yield the months from ``first`` to ``last``, inclusive; UsageError if ``last`` is earlier."""
    if last < first:
        raise UsageError(f"the range ends ({last}) before it begins ({first})")
    for offset in range(last.months_since(first) + 1):
        yield first + offset


def require_complete(month: Month, now: dt.datetime | None = None) -> None:
    """Raise FutureMonth if a month has not ended, because its text is incomplete."""
    latest = Month.last_complete(now)
    if month > latest:
        raise FutureMonth(f"{month} is not over yet; the latest complete month (UTC) is {latest}")
