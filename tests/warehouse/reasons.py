"""Which columns of a view are ends of intervals, and which column has the reason of a NULL."""

from collections.abc import Iterable, Mapping
from typing import Any


def lower_ends(columns: Iterable[str]) -> list[str]:
    """Return the columns with the lower end of an interval; the upper one is a column, too."""
    names = set(columns)
    return [name for name in columns if "_low" in name and upper_end(name) in names]


def upper_end(low: str) -> str:
    return low.replace("_low", "_high")


def reason_of(low: str, columns: Iterable[str]) -> str | None:
    """Return the column that says why an interval is NULL: of a figure, else of the view."""
    names = [name for name in columns if name.endswith("_reason")]
    own = [name for name in names if low.startswith(name.removesuffix("reason"))]
    return own[0] if own else "reason" if "reason" in set(columns) else None


def silent_rows(columns: Iterable[str], rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows with an end that is NULL without a reason, or a reason that is not true.

    A reason that there is no interval is not true if no end is NULL.
    """
    names = list(columns)
    ends: dict[str, list[str]] = {}
    for low in lower_ends(names):
        reason = reason_of(low, names)
        if reason is not None:
            ends.setdefault(reason, []).extend([low, upper_end(low)])
    faults = []
    for row in rows:
        for reason, columns_of_ends in ends.items():
            lacks = any(row[name] is None for name in columns_of_ends)
            text = row[reason]
            is_denied = text is not None and "no interval" in text and not lacks
            if is_denied or (lacks and text is None):
                faults.append(row)
    return faults


def is_never_null(column: Mapping[str, Any]) -> bool:
    """Return True if tests of the view's ``.yml`` ask that a column is never NULL."""
    return "not_null" in column.get("tests", [])
