"""The one parser of the header Retry-After, for the sites of crawlers and for model servers."""

from __future__ import annotations

import datetime as dt
import email.utils
import re

_SECONDS = re.compile(r"[0-9]+(?:\.[0-9]*)?")


def read_retry_after(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header (RFC 9110, 10.2.3), 0 if past; None if invalid.

    Some servers send decimal fractions, which the standard does not have.
    """
    value = (value or "").strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    try:  # a year may be any here, unlike in dates of documents: 9999 asks for a long pause
        moment = email.utils.parsedate_to_datetime(value)
        if moment.tzinfo is None:  # the zone "-0000" means UTC
            moment = moment.replace(tzinfo=dt.UTC)
        return max(0.0, (moment - dt.datetime.now(dt.UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None
