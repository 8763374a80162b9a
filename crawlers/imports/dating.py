"""Months of rows and files of ready-made sets; months are half-open UTC intervals."""

from __future__ import annotations

import datetime as dt
import email.utils
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from core.errors import UsageError
from core.month import Month, Period
from crawlers.contract import Drop
from crawlers.imports.tables import Row
from crawlers.web.values import plausible, read_time

_YEAR_MONTH = re.compile(r"\s*((?:17|18|19|20|21)\d\d-(?:0[1-9]|1[0-2]))(?!\d)")
# In names: 2024-05, 2024_05, 202405, 20240501, 20240501123000 and 240501, and no other numbers.
_IN_NAME = re.compile(
    r"(?<!\d)(?<!CC-MAIN-)(?P<year>(?:19|20)\d\d)[-_.]?(?P<month>0[1-9]|1[0-2])"
    r"(?:[-_.]?(?:0[1-9]|[12]\d|3[01])(?:\d{6})?)?(?!\d)"
    r"|(?<!\d)(?P<short>\d\d)(?P<short_month>0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d)"
)
# seconds since 1970, from 2001 on; or milliseconds
_FIRST_S = 10**9
_END_S = 10**10


class Dated(NamedTuple):
    """The month of a row (None: undated), and the instant or day that decided it, if any."""

    month: Period | None
    moment: dt.datetime | None


@dataclass(frozen=True)
class Dating:
    """A rule for the months of rows; at most one field is set, beside ``of_name``.

    Without any, the month is that of the row's ``date``.
    """

    month: Period | None = None  # one that is over
    is_undated: bool = False
    month_column: str | None = None  # YYYY-MM, or a date
    by_name: bool = False  # the name of the file or of its folder has the month
    of_name: Month | Drop | None = None  # set by ``of_file``

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
        """Return the month of a row, or its drop: ``no_date``, or ``outside_month`` if not over."""
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
            expected = "expected YYYY-MM, an ISO 8601 date, or seconds since 1970"
            return Drop(row.place, "no_date", f"{row.place}: {why}; {expected}")
        if month != self.month and month > Month.last_complete():
            return Drop(row.place, "outside_month", f"{row.place}: {month} is not over")
        return Dated(month, moment if moment is not None and moment in month else None)


def _month_in(value: object) -> Month | None:
    found = _YEAR_MONTH.fullmatch(value.strip()) if isinstance(value, str) else None
    if found:
        return Month(found[1])
    moment = moment_of(value)
    return None if moment is None else Month.of(moment)


def moment_of(value: object) -> dt.datetime | None:
    """Return a date or time in UTC; a day is its first instant, and a time without zone is UTC."""
    if isinstance(value, dt.datetime):
        return plausible(value if value.tzinfo else value.replace(tzinfo=dt.UTC))
    if isinstance(value, dt.date):
        return plausible(dt.datetime.combine(value, dt.time(), tzinfo=dt.UTC))
    if isinstance(value, str):
        return read_time(value.strip(), dt.UTC) or _mail_time(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if 1000 * _FIRST_S <= value < 1000 * _END_S:
            value /= 1000
        if _FIRST_S <= value < _END_S:
            return plausible(dt.datetime.fromtimestamp(value, dt.UTC))
    return None


def _mail_time(value: str) -> dt.datetime | None:
    """Parse a time of RFC 5322, such as ``Mon, 06 May 2024 10:00:00 GMT``."""
    try:
        moment = email.utils.parsedate_to_datetime(value[:100])
    except ValueError:
        return None
    return plausible(moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC))


def month_of_name(name: str) -> Month | Drop:
    """Return the only month in a file's name, or else in the name of its nearest folder with one.

    Uncheatable Eval has ``bbc_news_20240401to20240415.json``, RealTimeData has folders such as
    ``2024-05``. The week of a crawl in ``CC-MAIN-2024-10`` is no month.
    """
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
