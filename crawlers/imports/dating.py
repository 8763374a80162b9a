"""Months of rows and files of ready-made sets; months are half-open UTC intervals."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from core.errors import UsageError
from core.month import Month, Period
from crawlers.contract import Drop
from crawlers.imports.tables import Row
from crawlers.web.times import month_number, plausible, read_time

_YEAR_MONTH = re.compile(r"((?:17|18|19|20|21)\d\d)[-/](0[1-9]|1[0-2])", re.ASCII)
_MONTH_YEAR = re.compile(r"([A-Za-z]{3,9})\.? ((?:17|18|19|20|21)\d\d)", re.ASCII)
# In names: 2024-05, 2024_05, 202405, 20240501, 20240501123000 and 240501, and no other numbers.
_IN_NAME = re.compile(
    r"(?<!\d)(?<!CC-MAIN-)(?P<year>(?:19|20)\d\d)[-_.]?(?P<month>0[1-9]|1[0-2])"
    r"(?:[-_.]?(?:0[1-9]|[12]\d|3[01])(?:\d{6})?)?(?!\d)"
    r"|(?<!\d)(?P<short>\d\d)(?P<short_month>0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d)"
)
_NUMBER = re.compile(r"\s*\d{1,20}(?:\.\d{0,20})?(?:[eE]\+?\d{1,2})?\s*", re.ASCII)
_STAMP = re.compile(r"\s*((?:19|20)\d{6})(\d{6})\s*", re.ASCII)  # of web archives: YYYYMMDDhhmmss
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_FIRST_S = 10**9  # in 2001
_END_S = 10**10


_EXPECTED = (
    "expected YYYY-MM, a date with the year first or with the month's name, or seconds since 1970; "
    "a time needs a known zone, or none for UTC"
)


class Dated(NamedTuple):
    """The month of a row (None: undated), and the instant or day that decided it, if any."""

    month: Period | None
    moment: dt.datetime | None


@dataclass(frozen=True)
class Dating:
    """A rule for the months of rows; at most one field is set, beside ``of_name`` and ``first``.

    Without any field, the month of a row is that of its ``date``.
    """

    month: Period | None = None  # one that is over
    is_undated: bool = False
    month_column: str | None = None  # YYYY-MM, or a date
    by_name: bool = False  # the name of the file or of its folder has the month
    of_name: Month | Drop | None = None  # set by ``of_file``
    first: Month | None = None  # rows of earlier months are dropped

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are needed beside the fields."""
        return (self.month_column,) if self.month_column else ()

    def describe(self) -> str:
        """Return the rule for the manifest."""
        if self.month_column:
            return f"column {self.month_column}"
        if self.by_name:
            return "file name"
        return "undated" if self.is_undated else str(self.month or "date of the row")

    def of_file(self, name: str) -> Dating:
        """Return the rule for the rows of a file."""
        return Dating(by_name=True, of_name=month_of_name(name)) if self.by_name else self

    def month_of(self, row: Row) -> Dated | Drop:
        """Return the month of a row, or its drop.

        A drop is ``no_date``, or ``outside_month`` of a month that is not over or before ``first``.
        """
        if self.is_undated:
            return Dated(None, None)
        if isinstance(self.of_name, Drop):
            return Drop(row.place, "no_date", self.of_name.detail)
        moment = moment_of(row.values.get("date"))
        month: Period | None = self.month or self.of_name
        why = ""
        if self.month_column:
            month = _month_in(row.values.get(self.month_column))
            why = f"{self.month_column} is {row.values.get(self.month_column)!r}"
        elif month is None:
            month = _month_in(row.values.get("date"))
            why = f"the date is {row.values.get('date')!r}"
        if month is None:
            return Drop(row.place, "no_date", f"{row.place}: {why}; {_EXPECTED}")
        if month != self.month and month > Month.last_complete():
            return Drop(row.place, "outside_month", f"{row.place}: {month} is not over")
        if self.first is not None and month < self.first:
            return Drop(row.place, "outside_month", f"{row.place}: {month} is before {self.first}")
        return Dated(month, moment if moment is not None and moment in month else None)


def _month_in(value: object) -> Month | None:
    """Return the month of a value such as ``2024-05``, ``May 2024``, a date or a time, or None."""
    if isinstance(value, str):
        text = " ".join(value.split())
        found = _YEAR_MONTH.fullmatch(text)
        if found:
            return Month(f"{found[1]}-{found[2]}")
        found = _MONTH_YEAR.fullmatch(text)
        number = month_number(found[1]) if found else None
        if found and number:
            return Month(f"{found[2]}-{number:02}")
    moment = moment_of(value)
    return None if moment is None else Month.of(moment)


def moment_of(value: object) -> dt.datetime | None:
    """Return a date or time in UTC; a day is its first instant, and a time without zone is UTC."""
    if isinstance(value, dt.datetime):
        return plausible(value if value.tzinfo else value.replace(tzinfo=dt.UTC))
    if isinstance(value, dt.date):
        return plausible(dt.datetime.combine(value, dt.time(), tzinfo=dt.UTC))
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return None
    found = _STAMP.fullmatch(value)
    if found:  # such a number is no time since 1970 in any unit
        value = f"{found[1]}T{found[2]}"
    return _epoch(value) or read_time(value, dt.UTC)


def _epoch(text: str) -> dt.datetime | None:
    """Return the UTC time of a number of s, ms, us or ns since 1970; None for one before 2001."""
    if _NUMBER.fullmatch(text) is None:
        return None
    number = Decimal(text)
    for per_second in (1, 10**3, 10**6, 10**9):
        seconds = number / per_second
        if _FIRST_S <= seconds < _END_S:
            micros = int(seconds * 10**6)
            return plausible(_EPOCH + dt.timedelta(microseconds=micros))
    return None


def month_of_name(name: str) -> Month | Drop:
    """Return the only month in a file's name, else in that of its nearest folder with a month."""
    # Uncheatable Eval has ``bbc_news_20240401to20240415.json``, RealTimeData has folders such as
    # ``2024-05``. The number 10 in ``CC-MAIN-2024-10`` is a week of a crawl, and no month.
    for part in reversed(name.split("/")):
        months = sorted(set(_months_in_name(part)))
        if months:
            if len(months) == 1:
                return months[0]
            why = f"{name}: the name spans {months[0]} to {months[-1]}; say --month"
            return Drop(name, "no_date", why)
    return Drop(name, "no_date", f"{name}: no month in the name; expected 2024-05 or 20240501")


def _months_in_name(part: str) -> Iterator[Month]:
    for found in _IN_NAME.finditer(part):
        if found["year"]:
            yield Month(f"{found['year']}-{found['month']}")
        else:
            yield Month(f"20{found['short']}-{found['short_month']}")


def one_of(**choices: object) -> None:
    """Raise UsageError unless at most one of the options is given."""
    given = [name for name, value in choices.items() if value]
    if len(given) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in given)
        raise UsageError(f"{options} contradict each other; say one of them")
