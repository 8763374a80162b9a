"""Answers of JSON interfaces, as they are and as they are not promised to be."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping
from typing import Any

from core.errors import AccessRefused, ItemUnavailable, SourceChanged
from crawlers.http import Fetched, Fetcher


def decode(fetched: Fetched) -> Any:
    """Return what the body says; None for what is no JSON, and for ``null``.

    JSON is in UTF-8, whatever the header says of the charset (RFC 8259, 8.1).
    """
    try:
        return json.loads(fetched.body)
    except (ValueError, RecursionError):  # a wrong encoding is a ValueError, too
        return None


def is_no_json(fetched: Fetched) -> bool:
    """Whether a page came where JSON was promised: a site in maintenance, to be asked again.

    For ``Fetcher.get(is_busy=…)``, so that such a page is neither believed nor cached.
    """
    return decode(fetched) is None


def get_list(
    fetcher: Fetcher,
    key: str,
    path: str,
    params: Mapping[str, str | int],
    is_busy: Callable[[Fetched], bool],
) -> Fetched:
    """Fetch a page of a list that the month cannot do without.

    Raises:
        AccessRefused: robots.txt, or the site, forbids the list.
        SourceChanged: there is no such list.
        ItemFailed: it could not be had now.
    """
    try:
        return fetcher.get(key, path, params, is_busy=is_busy)
    except ItemUnavailable as error:
        if error.reason in {"robots", "http_403", "permission"}:
            raise AccessRefused(f"the list of articles is closed to us: {error}") from error
        raise SourceChanged(f"the list of articles cannot be had: {error}") from error


def read_time(value: object, zone: dt.tzinfo | None = None) -> dt.datetime | None:
    """Read an ISO 8601 instant, in UTC; None for anything else.

    Args:
        value: of a JSON field.
        zone: of a time that names none; without it, such a time is no instant.
    """
    if not isinstance(value, str):
        return None
    try:
        moment = dt.datetime.fromisoformat(value)
        if moment.tzinfo is None:
            if zone is None:
                return None
            moment = moment.replace(tzinfo=zone)
        return moment.astimezone(dt.UTC)
    except (ValueError, OverflowError):
        return None
