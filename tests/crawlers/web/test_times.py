"""Times as sites state them; each expected instant was computed by hand from its offset."""

import datetime as dt
import email.utils

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawlers.web.times import read_time, zone_of


def _utc(year: int, month: int, day: int, *rest: int) -> dt.datetime:
    return dt.datetime(year, month, day, *rest, tzinfo=dt.UTC)


# All of these are 2024-06-01 01:30:00 UTC.
SAME_INSTANT = [
    "2024-06-01T01:30:00Z",
    "2024-06-01 01:30:00 UTC",  # BigQuery
    "2024-06-01 01:30:00.000000 UTC",
    "2024-06-01 01:30:00+00",  # PostgreSQL
    "2024-06-01T03:30:00,000+02:00",
    "2024-06-01T03:30:00+02:00[Europe/Berlin]",  # RFC 9557
    "2024-05-31T21:30:00\u221204:00",  # ISO 8601 prefers the sign of minus
    "20240601T013000Z",
    "20240601T033000+0200",
    "2024-W22-6T01:30:00Z",
    "2024/06/01 01:30:00",
    "2024/6/1 1:30",
    "2024.06.01 01:30",
    "2024-06-01 03:30:00 +0200 CEST",  # Go
    "2024-06-01 03:30:00 Europe/Berlin",
    "2024-06-01 07:15 Asia/Kathmandu",
    "Sat, 01 Jun 2024 01:30:00 GMT",
    "Sat, 01 Jun 2024 01:30:00 -0000",
    "Sat, 01 Jun 2024 01:30:00",
    "Sat, 1 Jun 2024 01:30 UT",
    "Sat, 01 Jun 24 01:30:00 Z",
    "Saturday, 01-Jun-24 01:30:00 GMT",
    "Sat, 01 Jun 2024 03:30:00 +0200",
    "Sat, 01 Jun 2024 03:30:00 +02:00",
    "Sat, 01 Jun 2024 03:30:00 +02",
    "Sat, 01 Jun 2024 03:30:00 GMT+2",
    "Sat, 01 Jun 2024 03:30:00 GMT+02:00",
    "Sat, 01 Jun 2024 03:30:00 UTC +2",
    "Sat, 01 Jun 2024 03:30:00 UTC+0200",
    "Sat, 01 Jun 2024 03:30:00 +0200 (CEST)",
    "Sat, 01 Jun 2024 03:30:00 (CEST)",
    "Sat, 01 Jun 2024 03:30:00 CEST",
    "Sat, 01 Jun 2024 03:30:00 MEST",
    "Sat, 01 Jun 2024 03:30:00 MESZ",
    "Sat, 01 Jun 2024 02:30:00 BST",
    "Sat, 01 Jun 2024 02:30:00 CET",
    "Sat, 01 Jun 2024 10:30:00 JST",
    "Sat, 01 Jun 2024 10:30:00 KST",
    "Sat, 01 Jun 2024 04:30:00 EEST",
    "Sat, 01 Jun 2024 04:30:00 MSK",
    "Sat, 01 Jun 2024 11:00:00 ACST",
    "Sat, 01 Jun 2024 11:30:00 AEST",
    "Sat, 01 Jun 2024 13:30:00 NZST",
    "Fri, 31 May 2024 21:30:00 EDT",
    "Fri, 31 May 2024 20:30:00 EST",
    "Fri, 31 May 2024 20:30:00 cdt",
    "Fri, 31 May 2024 18:30:00 PDT",
    "Fri, 31 May 2024 17:30:00 PST",
    "Fri, 31 May 2024 23:00:00 NDT",
    "Sat Jun  1 01:30:00 2024",  # asctime of C
    "Sat Jun 01 03:30:00 CEST 2024",  # Java
    "Fri May 31 21:30:00 2024 -0400",  # git
    "Sat Jun 01 2024 03:30:00 GMT+0200 (Central European Summer Time)",  # JavaScript
    "June 1, 2024 at 1:30\u202fAM UTC",
    "Jun 01, 2024 01:30AM UTC",
    "May 31, 2024 9:30 p.m. EDT",
    "1 June 2024, 01:30",
    " Sat, 01 Jun 2024\n 01:30:00 GMT ",
    "Sat,01 Jun 2024 01:30:00 GMT",  # RFC 5322: no blank is needed after the comma
    "Sat,1 Jun 2024 03:30 +0200",
    "Sa, 01 Jun 2024 03:30:00 +0200",
    "Sa., 1 June 2024 01:30",
    "sáb, 01 Jun 2024 01:30:00 GMT",
    "суббота, 1 June 2024, 01:30",
    "01:30, 1 June 2024 (UTC)",  # MediaWiki
    "01:30, June 1, 2024",
    "1:30 a.m. on Saturday, 1 June 2024",
    "Saturday, June 1, 2024 - 01:30",  # Drupal
    "2024-06-01 - 01:30 UTC",
    "Saturday the 1st of June 2024 at 1:30 am UTC",
    "2024-Jun-01 01:30",
    "2024 June 1, 01:30",
    "2024-153T01:30:00Z",  # ISO 8601: the day of a year
    "June 1,2024 01:30",
    "May 31, 2024, 9:30 p.m. ET",
    "May 31, 2024 6:30 PM PT",
]


@pytest.mark.parametrize("text", SAME_INSTANT)
def test_all_forms_are_read_in_utc(text: str) -> None:
    assert read_time(text, dt.UTC) == dt.datetime(2024, 6, 1, 1, 30, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("2024-06-30T24:00:00Z", _utc(2024, 7, 1)),
        ("2024-12-31 24:00", _utc(2025, 1, 1)),
        ("2016-12-31T23:59:60Z", _utc(2017, 1, 1)),
        ("5 Sept 2024", _utc(2024, 9, 5)),
        ("5. Sept. 2024", _utc(2024, 9, 5)),
        ("05SEP2024", _utc(2024, 9, 5)),
        ("05SEP2024 01:02:03", _utc(2024, 9, 5, 1, 2, 3)),
        ("Sep-05-2024", _utc(2024, 9, 5)),
        ("Thu, 05 Sep 124 00:00:00 GMT", _utc(2024, 9, 5)),
        ("2024年9月5日", _utc(2024, 9, 5)),
        ("2024年09月05日 01:02:03", _utc(2024, 9, 5, 1, 2, 3)),
        ("2024년 9월 5일", _utc(2024, 9, 5)),
        ("2024. 9. 5.", _utc(2024, 9, 5)),
        ("Sept. 5, 2024", _utc(2024, 9, 5)),
        ("September 5th, 2024", _utc(2024, 9, 5)),
        ("Thu, 05 Sep 2024 12:00 AM", _utc(2024, 9, 5)),
        ("2024-09-05 12:00 PM", _utc(2024, 9, 5, 12)),
        ("2024/09/05", _utc(2024, 9, 5)),
        ("20240905", _utc(2024, 9, 5)),
        ("2024-09-05T01:02:03.123456789Z", _utc(2024, 9, 5, 1, 2, 3, 123456)),
        ("1st of March 2024", _utc(2024, 3, 1)),
        ("the 2nd of March, 2024", _utc(2024, 3, 2)),
        ("2nd of Feb. 2024 3pm UTC", _utc(2024, 2, 2, 15)),
        ("1 Mar 2024 12 AM", _utc(2024, 3, 1)),
        ("2024-061", _utc(2024, 3, 1)),
        ("2023-061", _utc(2023, 3, 2)),
        ("2024-366", _utc(2024, 12, 31)),
        ("2024-Mar-01", _utc(2024, 3, 1)),
        ("1 Feb 2024 9:30 am PT", _utc(2024, 2, 1, 17, 30)),
        ("01 Jan 49 00:00 GMT", _utc(2049, 1, 1)),
        ("01 Jan 50 00:00 GMT", _utc(1950, 1, 1)),
    ],
)  # fmt: skip
def test_days_and_ends_of_days(text: str, found: dt.datetime) -> None:
    assert read_time(text, dt.UTC) == found


@pytest.mark.parametrize(
    "text",
    [
        "2024-06-01 03:30:00 IST", "Sat, 01 Jun 2024 03:30:00 XYZ", "2024-06-01T03:30:00 Mars/Base",
        "2024-06-01 03:30:00 America/Argentina", "2024-06-01 03:30:00 ../../etc/passwd",
        "2024-06-01 03:30 CEST CET", "2024-06-01 03:30 +2500", "2024-06-01 03:30 +0260",
        "01/06/2024", "06/01/2024 03:30", "1.6.2024", "2024-13-01", "2024-02-30", "2024-06/01",
        "2024-06-01 24:01", "2024-06-01 25:00", "2024-06-01 03:60", "2024-06-01 13:00 PM",
        "2023-366", "2024-000", "2024-367", "2024061", "1 March 2024 12", "2024-06-01 3 XM",
        "31 Ma 2024", "1 Juin 2024", "1 Sep 20240", "11Sep111111",
        "1717203000", "tomorrow", "", "9999-12-31T24:00:00Z",
        "2024-06-01T03:30:00" + " " * 500,
    ],
)  # fmt: skip
def test_what_could_mean_two_things_is_unreadable(text: str) -> None:
    assert read_time(text, dt.UTC) is None


def test_a_stated_zone_goes_before_the_callers() -> None:
    zone = dt.timezone(dt.timedelta(hours=9))
    assert read_time("2024-06-01 09:00", zone) == dt.datetime(2024, 6, 1, tzinfo=dt.UTC)
    assert read_time("2024-06-01 00:00 GMT", zone) == dt.datetime(2024, 6, 1, tzinfo=dt.UTC)
    assert read_time("2024-06-01 00:00 XYZ", zone) is None


def test_each_military_letter_is_utc() -> None:
    """RFC 5322, 4.3: they were sent with either sign, so that they say nothing."""
    letters = set("ABCDEFGHIKLMNOPQRSTUVWXYZ")
    zones = [zone_of(each) for each in letters]
    assert all(zone and zone.utcoffset(None) == dt.timedelta(0) for zone in zones)
    assert zone_of("J") is None  # the time of the observer


@given(
    st.integers(-20 * 365 * 86400, 79 * 365 * 86400),  # seconds since 1970
    st.integers(0, 999_999),
    st.integers(-14 * 60, 14 * 60),
)
def test_times_written_by_the_library_are_read_back(
    seconds: int, micros: int, minutes: int
) -> None:
    zone = dt.timezone(dt.timedelta(minutes=minutes))
    moment = _utc(1970, 1, 1).astimezone(zone) + dt.timedelta(seconds=seconds, microseconds=micros)
    whole = moment.replace(microsecond=0)
    assert read_time(moment.isoformat()) == moment
    assert read_time(email.utils.format_datetime(whole)) == whole
    assert read_time(whole.ctime(), zone) == whole


@given(st.text(max_size=60))
def test_any_text_is_a_time_or_none(text: str) -> None:
    found = read_time(text, dt.UTC)
    assert found is None or found.tzinfo is dt.UTC
