"""Fields of sites' records, read with suspicion: what is not as promised counts as not there."""

from __future__ import annotations

import datetime as dt
import math

YES_NO = ("Yes", "No")


def text(value: object) -> str | None:
    """Return a text that is not blank; None for anything else."""
    return value if isinstance(value, str) and value.strip() else None


def texts(values: object) -> tuple[str, ...]:
    """Return the texts of a list; none for anything else."""
    found = map(text, values) if isinstance(values, list) else ()
    return tuple(each for each in found if each)


def number(value: object) -> float | None:
    """Return a finite number, also one that is written as a text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) else None


def instant_of_ms(value: object) -> dt.datetime | None:
    """Return the instant of milliseconds since 1970, in UTC; None for anything else."""
    found = None if isinstance(value, str) else number(value)
    return None if found is None else instant_of_s(found / 1000)


def instant_of_s(value: object) -> dt.datetime | None:
    """Return the instant of seconds since 1970, in UTC; None for anything else."""
    found = None if isinstance(value, str) else number(value)
    try:
        return dt.datetime.fromtimestamp(found, dt.UTC) if found and found > 0 else None
    except (ValueError, OverflowError, OSError):
        return None
