"""Typed access to the fields of JSON objects from a site, which may hold anything.

An accessor returns None for a field that is missing or of another type. The parser then drops the
item and counts it, or calls ``need``, which raises SourceChanged.
"""

from __future__ import annotations

import datetime as dt
import math
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from core.errors import ItemFailed, ItemUnavailable, SourceChanged
from crawlers.contract import Drop, Item, missing_item
from crawlers.web.times import plausible, read_time
from crawlers.web.values import load_json

__all__ = ["MAX_INTEGER", "Fields", "load_json", "read_item", "show"]

MAX_INTEGER = 2**63 - 1
_MAX_EPOCH_S = 10**10  # in the year 2286
_T = TypeVar("_T")


def show(value: object) -> str:
    """Return a short text that shows an untrusted value in a message."""
    return reprlib.repr(value)[:200]


def read_item(native_id: str, read: Callable[[], Item]) -> Item:
    """Return the item that ``read`` requests and parses, or the Drop or Failure in its place.

    ``missing_item`` gives the Drop or Failure if the site does not have the item, or not now. A
    field that ``Fields.need`` does not accept gives a Drop.
    """
    try:
        return read()
    except (ItemUnavailable, ItemFailed) as error:
        return missing_item(native_id, error)
    except SourceChanged as error:
        return Drop(native_id, "parse_error", str(error))


@dataclass(frozen=True)
class Fields:
    """A JSON object of a response. Build it with ``Fields.of``, which accepts any value."""

    where: str  # site, and for example the item; for messages
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, where: str, value: object) -> Fields:
        """Return the fields of an object; any other value has no fields."""
        return cls(where, value if isinstance(value, dict) else {})

    @classmethod
    def list_of(cls, where: str, value: object) -> list[Fields] | None:
        """Return the objects of a list, other elements without fields; None if it is no list."""
        if not isinstance(value, list):
            return None
        return [cls.of(f"{where}[{index}]", each) for index, each in enumerate(value)]

    def need(self, name: str, found: _T | None, expected: str) -> _T:
        """Return a field's value ``found`` by an accessor; raise SourceChanged if it is None."""
        if found is None:
            raise SourceChanged(
                f"{self.where}: {name} is {show(self.values.get(name))}, expected {expected}; see "
                "whether the API changed"
            )
        return found

    def text(self, name: str) -> str | None:
        """Return a string that is not blank."""
        return _text(self.values.get(name))

    def integer(self, name: str, low: int = 0, high: int = MAX_INTEGER) -> int | None:
        """Return an integer from ``low`` to ``high``, both included."""
        value = self.values.get(name)
        return value if type(value) is int and low <= value <= high else None

    def number(self, name: str) -> float | None:
        """Return a finite number, also if it is written as a string such as ``0.5``."""
        return _number(self.values.get(name))

    def boolean(self, name: str) -> bool | None:
        """Return True or False; None if the field is neither of them."""
        value = self.values.get(name)
        return value if isinstance(value, bool) else None

    def time(self, name: str, zone: dt.tzinfo | None = None) -> dt.datetime | None:
        """Return an ISO 8601 time in UTC; without a time zone, it counts as a time in ``zone``."""
        return read_time(self.values.get(name), zone)

    def epoch(self, name: str, per_second: int = 1) -> dt.datetime | None:
        """Return a time after 1970 in UTC, given as a number of seconds (1) or ms (1000)."""
        value = self.values.get(name)
        number = None if isinstance(value, str) else _number(value)
        if number is None or not 0 < number < _MAX_EPOCH_S * per_second:
            return None
        return plausible(dt.datetime.fromtimestamp(number / per_second, dt.UTC))

    def inner(self, name: str) -> Fields:
        """Return the fields of an object within this object; no fields if it is none."""
        return Fields.of(f"{self.where}: {name}", self.values.get(name))

    def rows(self, name: str) -> list[Fields] | None:
        """Return the objects of a list, as ``list_of`` does."""
        return self.list_of(f"{self.where}: {name}", self.values.get(name))

    def texts(self, name: str) -> tuple[str, ...]:
        """Return those elements of a list that are strings and not blank."""
        value = self.values.get(name)
        found = map(_text, value) if isinstance(value, list) else ()
        return tuple(each for each in found if each is not None)

    def numbers(self, name: str) -> list[float | None]:
        """Return the elements of a list as for ``number``; an empty list if the field is none."""
        value = self.values.get(name)
        return [_number(each) for each in value] if isinstance(value, list) else []


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _number(value: object) -> float | None:
    """Return a finite number, also from a string; None for any other value, and for a bool."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None
