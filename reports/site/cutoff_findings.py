"""Titles of figures about cutoffs; the rules are those of ``findings``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.month import Month
from core.progress import counted
from reports.site.figure import Row
from reports.site.findings import MAX_Q, listed


def cutoff_finding(row: Row, num_models: int) -> str:
    """Return where the losses of a model place its cutoff, and whether its maker says so.

    ``num_models`` have a measured and a stated cutoff: Bonferroni's correction is over them.
    """
    ends = [row["estimated_cutoff_low"], row["estimated_cutoff_high"]]
    if None in ends:
        known = row.get("cutoff_text")
        if known is None:
            return "No cutoff can be told from the losses"
        return f"The losses tell no more of the cutoff than that it is {known}"
    known_by = known_cutoff(row.get("cutoff_provenance"))
    first, last = (str(end)[:7] for end in ends)
    place = f"The losses place the cutoff in {' to '.join(dict.fromkeys([first, last]))}"
    if row["stated_cutoff"] is None:
        return f"{place}; none is stated"
    stated = str(row["stated_cutoff"])[:7]
    if first == stated == last:
        return f"{place}, as {known_by}"
    low, high, index = (Month(each).index for each in (first, last, stated))
    if max(low - index, index - high) <= _margin(high - low + 1, num_models):
        return f"{place}; {stated} is {known_by}"
    return f"{place}, {'later' if index < low else 'earlier'} than the {known_by} {stated}"


def known_cutoff(provenance: str | None) -> str:
    """Return how a cutoff is known: stated by the maker, inferred, or planted."""
    return provenance if provenance in ("inferred", "planted") else "stated"


def registry_finding(rows: Sequence[Row]) -> str:
    """Return how many known cutoffs are inside the interval of the measured one."""
    # Intervals of which only one end is known are counted separately.
    dated = [row for row in rows if row["scope"] == "all" and row["is_contradicted"] is not None]
    two_ended = []
    one_ended = []
    for row in dated:
        has_low = row["measured_cutoff_low"] is not None
        has_high = row["measured_cutoff_high"] is not None
        if has_low and has_high:
            two_ended.append(row)
        elif has_low or has_high:
            one_ended.append(row)
    if two_ended:
        outside = sum(row["is_contradicted"] for row in two_ended)
        inside = len(two_ended) - outside
        are = "is" if len(two_ended) == 1 else "are"
        title = (
            f"{counted(len(two_ended), 'known cutoff')} {are} measured: {inside} inside "
            f"the 95 % interval, {outside} outside"
        )
        return f"{title}; of {len(one_ended)} more, {_beyond(one_ended)}" if one_ended else title
    if one_ended:
        return f"Of {counted(len(one_ended), 'known cutoff')}, {_beyond(one_ended)}"
    return "No known cutoff can be held against the losses yet"


def _beyond(rows: Sequence[Row]) -> str:
    """Return how many known cutoffs contradict intervals of which one end is known."""
    beyond = sum(row["is_contradicted"] for row in rows)
    are = "1 is" if beyond == 1 else f"{beyond or 'none'} are"
    return f"only one end is told, and {are} beyond it"


def two_rises_finding(rows: Sequence[Row]) -> str:
    """Return where the losses rise twice, over all sources or on some of them."""
    sources = [row["source"] for row in rows if row["source"] is not None]
    is_overall = len(sources) < len(rows)
    where = "" if is_overall else f" on {listed(sources)}"
    return f"The losses{where} rise twice: no single change explains them as well"


def _margin(num_months: int, num_tests: int) -> float:
    """Return by how many months Bonferroni's correction widens each end of an interval.

    ``num_months`` is the interval's length before. By Hansen 2000, the test's statistic is at most
    x with probability (1 - exp(-x/2))^2, which gives ``limit`` for a number of tests. An interval
    would grow in proportion to the limit if squares grew evenly. In simulated data sets, where
    squares do not grow evenly, twice as much is right.
    """
    limit, single = (-2 * math.log1p(-math.sqrt(1 - MAX_Q / num)) for num in (num_tests, 1))
    return 2 * num_months * (limit / single - 1)
