"""Titles of figures: findings in words, never stronger than the rows' intervals allow.

A title names an effect only where its q-value (false discovery rate over the table) is at most
``MAX_Q``, or where ranks' intervals do not overlap. Otherwise it says what cannot be told yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
MAX_Q = 0.05


def board_finding(rows: Sequence[Row]) -> str:
    """Return who has the lowest loss, or how many models share the first rank."""
    best = [row for row in rows if row["rank_low"] == 1 and not row["model"].startswith("control:")]
    if not best:
        return "No model is better than the best compressor"
    if len(best) == 1:
        return f"{best[0]['model']} predicts these months best"
    return f"{len(best)} models share the first rank: these months cannot tell them apart"


def ageing_finding(rows: Sequence[Row]) -> str:
    """Return for how many models the text after the cutoff is harder."""
    tested = [row for row in rows if row["adjusted_gap"] is not None]
    found = [row for row in tested if is_sure(row["gap_q_value"]) and row["adjusted_gap"] > 0]
    if not tested:
        return "No gap can be told yet: it needs months on both sides of a cutoff"
    if not found:
        return "No model predicts the months after its cutoff worse by more than chance"
    if len(found) == len(tested):
        who = "Each model" if len(tested) > 1 else tested[0]["model"]
        return f"{who} predicts text from after its cutoff worse"
    return f"{len(found)} of {len(tested)} models predict text from after their cutoff worse"


def is_sure(q_value: float | None) -> bool:
    """Return True if an effect may be named in a title."""
    return q_value is not None and q_value <= MAX_Q


def listed(names: Iterable[str], most: int = 3) -> str:
    """Return names as ``a, b and c``, or ``a, b, c and 4 more``."""
    names = list(names)
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
