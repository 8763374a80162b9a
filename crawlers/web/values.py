"""Untrusted values in the responses of sites: JSON and times."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
from collections.abc import Iterable
from typing import Any

MAX_DEPTH = 100  # nesting of JSON; deeper values exhaust the stack of ``repr`` and ``json.dumps``
_MAX_DIGITS = 20  # characters of a 64-bit integer; Python refuses to parse very long integers
_MAX_INTEGER = 2**63  # larger ones fit into no column
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
# All times are between these, so that adding days or changing the time zone cannot overflow.
_FIRST = dt.datetime(1700, 1, 1, tzinfo=dt.UTC)
_END = dt.datetime(2200, 1, 1, tzinfo=dt.UTC)


def load_json(data: bytes | str) -> Any:
    """Parse UTF-8 JSON (RFC 8259) into values that can be printed, encoded and compared.

    A number becomes None if it is not finite, or an integer of more than 64 bits. A surrogate
    without its partner becomes U+FFFD. Raise ValueError for invalid or deeply nested JSON.
    """
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    try:
        value = json.loads(
            text, parse_int=_integer, parse_float=_finite, parse_constant=lambda _name: None
        )
        _require_shallow(value)
        if _SURROGATE.search(text):
            units = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = json.loads(units.decode("utf-16", "replace"))
    except RecursionError as error:
        raise ValueError("the JSON is nested too deeply") from error
    return value


def _integer(digits: str) -> int | None:
    number = int(digits) if len(digits) <= _MAX_DIGITS else _MAX_INTEGER
    return number if abs(number) < _MAX_INTEGER else None


def _finite(digits: str) -> float | None:
    number = float(digits)
    return number if math.isfinite(number) else None


def _require_shallow(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        lists: list[Iterable[Any]] = [each for each in level if isinstance(each, list)]
        lists += [each.values() for each in level if isinstance(each, dict)]
        level = [child for each in lists for child in each]
        if not level:
            return
    raise ValueError(f"the JSON is nested more than {MAX_DEPTH} levels deep")


def plausible(moment: dt.datetime) -> dt.datetime | None:
    """Return a time in UTC; None if it is not between the years 1700 and 2200."""
    try:
        moment = moment.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None
    return moment if _FIRST <= moment < _END else None


def read_time(value: object, zone: dt.tzinfo | None = None) -> dt.datetime | None:
    """Parse an ISO 8601 time of a response, and return it in UTC; None for anything else.

    A time without a zone counts as a time in ``zone``; if that is None, the result is None. A time
    outside the years 1700 to 2200 counts as unreadable.
    """
    try:
        moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if moment is None or (moment.tzinfo is None and zone is None):
        return None
    return plausible(moment if moment.tzinfo else moment.replace(tzinfo=zone))
