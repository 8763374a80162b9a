"""Times and sizes as people say them."""

from __future__ import annotations

import datetime as dt


def duration(seconds: float | None) -> str:
    """Return ``45 s``, ``3 min 20 s``, ``5 h 10 min`` or ``2 d 4 h``."""
    if seconds is None:
        return "not known"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours < 48:
        return f"{hours} h {minutes} min"
    return f"{hours // 24} d {hours % 24} h"


def age(moment: dt.datetime) -> str:
    """Return how long ago a moment was; nothing less than 0, as clocks differ."""
    return duration(max(0.0, (dt.datetime.now(dt.UTC) - moment).total_seconds()))


def size(num_bytes: float) -> str:
    """Return bytes in the largest unit of which there is one."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if num_bytes >= factor:
            return f"{num_bytes / factor:.3g} {unit}"
    return f"{num_bytes:.0f} B"
