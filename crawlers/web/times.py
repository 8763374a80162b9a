"""The only parser of dates and times that sites, feeds, archives and files state.

Forms: ISO 8601 and RFC 9557, RFC 5322 and its predecessors, HTTP (RFC 9110), and the usual English
forms with a month's name. A form whose day and month cannot be told apart, such as ``01/06/2024``,
is unreadable. So is a time in an unknown zone, as the month may depend on the zone. The time zone
of the machine never matters.
"""

from __future__ import annotations

import datetime as dt
import re
import zoneinfo
from collections.abc import Sequence

_MAX_CHARS = 200
# All times are between these, so that adding days or changing the time zone cannot overflow.
_FIRST = dt.datetime(1700, 1, 1, tzinfo=dt.UTC)
_END = dt.datetime(2200, 1, 1, tzinfo=dt.UTC)

_TIME = (
    r"(?P<hour>\d{1,2})(?:"
    r":(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,20}))?)?|(?=\s?[ap]\.?m))"
    r"(?:\s?(?P<half>[ap])\.?m\.?(?![a-z]))?"
)
# What follows a time: an offset or a name, or both; a comment; a zone in brackets (RFC 9557).
_ZONE = (
    r"\s?(?P<zone>(?:gmt|utc)\s?[+-][\d:]{1,5}|[^\s()\[\]]{1,40})?(?:\s(?P<name>[a-z]{2,5}))?"
    r"\s?(?:\((?P<comment>[^()]{0,60})\))?(?:\[[^\[\]]{0,60}\])?"
)
# In any language, since it decides nothing.
_WEEKDAY = r"(?:[^\s\d.,:()\[\]+-]{2,20}(?:\.?,?\s|,))?(?:the\s)?"
_MONTH = r"(?P<month>[a-z]{3,9})\.?"
_DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th|\.)?"
_YEAR = r"(?P<year>\d{4})"
_AT = r"(?:,?\s(?:(?:at|-)\s)?|t)"
_DAY_FIRST = rf"{_WEEKDAY}{_DAY}[\s-]?(?:of\s)?{_MONTH},?[\s-]?(?P<year>\d{{2,4}})"
_MONTH_FIRST = rf"{_WEEKDAY}{_MONTH}[\s-]{_DAY}(?:,\s?|[\s-]){_YEAR}"


def _form(date: str, rest: str = rf"(?:{_AT}{_TIME}{_ZONE})?") -> re.Pattern[str]:
    return re.compile(date + rest, re.IGNORECASE | re.ASCII)


_FORMS: Sequence[re.Pattern[str]] = (
    # 2024-06-01T03:30:00.123+02:00[Europe/Berlin], 2024/06/01 03:30 UTC, 2024-06-01
    _form(r"(?P<year>\d{4})(?P<sign>[-/.])(?P<month>\d{1,2})(?P=sign)(?P<day>\d{1,2})"),
    # 2024年6月1日 03:30, 2024년 6월 1일, 2024. 6. 1.
    _form(
        r"(?P<year>\d{4})(?:[年년]|(?P<stop>\.))\s?(?P<month>\d{1,2})(?(stop)\.|[月월])\s?"
        r"(?P<day>\d{1,2})(?(stop)\.|[日일])"
    ),
    # Sat, 01 Jun 2024 03:30:00 +0200; Saturday, 01-Jun-24 03:30:00 GMT; the 1st of June 2024
    _form(_DAY_FIRST),
    # June 1, 2024 at 3:30 PM EDT; Sat Jun 01 2024 03:30:00 GMT+0200 (a comment)
    _form(_MONTH_FIRST),
    # 2024-Jun-01 03:30; 2024 June 1
    _form(rf"{_YEAR}[\s-]{_MONTH}[\s-]{_DAY}"),
    # 03:30, 1 June 2024 (UTC), of wikis
    _form(rf"{_TIME},?\s(?:on\s)?{_DAY_FIRST}", _ZONE),
    _form(rf"{_TIME},?\s(?:on\s)?{_MONTH_FIRST}", _ZONE),
    # 2024-153, the 153rd day of a year (ISO 8601)
    _form(rf"{_YEAR}-(?P<day>\d{{3}})"),
    # Sat Jun  1 03:30:00 CEST 2024, of C and Java
    _form(rf"{_WEEKDAY}{_MONTH}\s{_DAY}\s{_TIME}\s(?:(?P<zone>[^\s()]{{1,40}})\s)?{_YEAR}", ""),
    # Sat Jun 1 03:30:00 2024 +0200, of git
    _form(rf"{_WEEKDAY}{_MONTH}\s{_DAY}\s{_TIME}\s{_YEAR}\s(?P<zone>[^\s()]{{1,40}})", ""),
)
# 20240601T033000Z, 2024-W22-6 and other forms of ISO 8601 that the library reads.
_OTHER_ISO = re.compile(
    r"(?:\d{4}-?\d\d-?\d\d|\d{4}-?W\d\d(?:-?\d)?)"
    r"(?:[T ]\d\d(?::?\d\d(?::?\d\d(?:[.,]\d{1,20})?)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
)  # fmt: skip
_OFFSET = re.compile(r"(?:GMT|UTC|UT)?\s?([+-])(\d{1,2}):?(\d\d)?", re.ASCII)
_PLACE = re.compile(r"[A-Z][A-Za-z]{1,20}(?:/[A-Z][A-Za-z0-9_+-]{1,30}){1,2}", re.ASCII)
# Offsets in hours of names: those of RFC 5322, and others with one common meaning. IST (India,
# Israel, Ireland), AMT and GST have several, and are unknown. CST is America's, as in RFC 5322.
_NAMED: dict[str, float] = {
    "Z": 0, "UT": 0, "UTC": 0, "GMT": 0, "WET": 0, "WEST": 1, "BST": 1,
    "EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7,
    "AKST": -9, "AKDT": -8, "HST": -10, "AST": -4, "ADT": -3, "NST": -3.5, "NDT": -2.5,
    "BRT": -3, "ART": -3, "CLT": -4, "CLST": -3, "COT": -5, "PET": -5,
    "CET": 1, "CEST": 2, "MET": 1, "MEST": 2, "MEZ": 1, "MESZ": 2, "EET": 2, "EEST": 3,
    "MSK": 3, "MSD": 4, "TRT": 3, "WAT": 1, "CAT": 2, "SAST": 2, "EAT": 3,
    "PKT": 5, "NPT": 5.75, "ICT": 7, "WIB": 7, "WITA": 8, "WIT": 9, "HKT": 8, "SGT": 8, "PHT": 8,
    "JST": 9, "KST": 9, "AWST": 8, "ACST": 9.5, "ACDT": 10.5, "AEST": 10, "AEDT": 11,
    "NZST": 12, "NZDT": 13,
}  # fmt: skip
# American clocks, which are an hour ahead in summer.
_CLOCKS = {
    "ET": "America/New_York", "CT": "America/Chicago", "MT": "America/Denver",
    "PT": "America/Los_Angeles",
}  # fmt: skip
# Letters of the military, of which RFC 5322 says to take them for -0000: a time in UTC.
_MILITARY = frozenset("ABCDEFGHIKLMNOPQRSTUVWXY")


def plausible(moment: dt.datetime) -> dt.datetime | None:
    """Return a time with a zone in UTC; None if it is not between the years 1700 and 2200."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    try:
        moment = moment.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None
    return moment if _FIRST <= moment < _END else None


def read_time(value: object, zone: dt.tzinfo | None = None) -> dt.datetime | None:
    """Return a stated time in UTC, a day as its first instant; None for anything else.

    A time without a zone counts as a time in ``zone``; if that is None, the result is None. A time
    outside the years 1700 to 2200 counts as unreadable, and so does one in an unknown zone.
    """
    if not isinstance(value, str) or len(value) > _MAX_CHARS:
        return None
    text = " ".join(value.replace("\u2212", "-").split())
    for form in _FORMS:
        found = form.fullmatch(text)
        if found:
            return _moment_of(found.groupdict(), zone)
    if _OTHER_ISO.fullmatch(text) is None:
        return None
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return _in_utc(moment, moment.tzinfo or zone)


def read_day(text: str) -> dt.date | None:
    """Return the day of a stated day or time as it is written; None for anything else."""
    # The zone does not matter, so a time in an unknown zone has a day, too.
    text = " ".join(text.split())
    if len(text) > _MAX_CHARS:
        return None
    for form in _FORMS:
        found = form.fullmatch(text)
        if found:
            try:
                midnight = plausible(_midnight_of(found.groupdict()))
            except (ValueError, OverflowError):
                return None
            return midnight.date() if midnight else None
    return None


def month_number(name: str) -> int | None:
    """Return the number of a month by its English name, or by 3 or more letters of it."""
    name = name.lower()
    if len(name) < 3:
        return None
    for number, month in enumerate(_MONTHS, start=1):
        if month.startswith(name):
            return number
    return None


def zone_of(name: str) -> dt.tzinfo | None:
    """Return the zone of an offset (``+02:00``, ``GMT+2``) or a name; None if it is unknown."""
    found = _OFFSET.fullmatch(name.upper())
    if found:
        hours = int(found[2])
        minutes = int(found[3] or 0)
        if hours > 23 or minutes > 59:
            return None
        offset = dt.timedelta(hours=hours, minutes=minutes)
        return dt.timezone(-offset if found[1] == "-" else offset)
    if name.upper() in _NAMED:
        return dt.timezone(dt.timedelta(hours=_NAMED[name.upper()]))
    if name.upper() in _MILITARY:
        return dt.UTC
    name = _CLOCKS.get(name.upper(), name)
    if _PLACE.fullmatch(name) is None:
        return None
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return None


def _moment_of(parts: dict[str, str | None], zone: dt.tzinfo | None) -> dt.datetime | None:
    """Return the UTC time of a match's parts; a stated zone replaces ``zone``. None if invalid."""
    stated = parts.get("zone") or parts.get("comment")
    if stated:
        zone = zone_of(stated)
    if parts.get("name") and not _OFFSET.fullmatch(stated or ""):
        return None  # only an offset may have a name beside it
    try:
        moment = _midnight_of(parts) + _time_of_day(parts)
    except (ValueError, OverflowError):
        return None
    return _in_utc(moment, zone)


def _midnight_of(parts: dict[str, str | None]) -> dt.datetime:
    """Return the first instant of a day, as if in UTC; a day without a month is one of its year."""
    year = _year_of(parts["year"] or "")
    day = int(parts["day"] or 0)
    if "month" not in parts:
        moment = dt.datetime(year, 1, 1, tzinfo=dt.UTC) + dt.timedelta(days=day - 1)
        if moment.year != year:
            raise ValueError(f"the year {year} has no day {day}")
        return moment
    name = parts["month"] or ""
    month = int(name) if name.isdigit() else month_number(name)
    if month is None:
        raise ValueError(f"{name} is no month")
    return dt.datetime(year, month, day, tzinfo=dt.UTC)


def _year_of(digits: str) -> int:
    """Return a year from two to four digits; two and three digits are read as in RFC 5322, 4.3."""
    year = int(digits)
    if len(digits) == 4:
        return year
    if len(digits) == 3:
        return year + 1900
    return year + (2000 if year < 50 else 1900)


def _time_of_day(parts: dict[str, str | None]) -> dt.timedelta:
    """Return the time since midnight; 24:00 is the next day's first instant, :60 a leap second."""
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    half = (parts["half"] or "").lower()
    if half:
        if not 1 <= hour <= 12:
            raise ValueError("an hour before or after noon is from 1 to 12")
        hour = hour % 12 + (12 if half == "p" else 0)
    if minute > 59 or second > 60 or hour > 24 or (hour == 24 and (minute or second)):
        raise ValueError("no time of a day")
    micros = int((parts["fraction"] or "0")[:6].ljust(6, "0"))
    return dt.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=micros)


def _in_utc(moment: dt.datetime, zone: dt.tzinfo | None) -> dt.datetime | None:
    if zone is None:
        return None
    return plausible(moment.replace(tzinfo=zone))
