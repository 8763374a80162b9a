"""Advice: the limits of a sample of text, and the next steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from core.month import Month
from core.progress import counted
from crawlers.registry import GIT_POSTS, list_sources
from extras.examine.findings import Findings
from warehouse.estimates.changes import MIN_MONTHS
from warehouse.estimates.panel import MIN_BLOCKS

# Of the interval of a gap; macro ``minimum`` of the warehouse has the same.
MONTHS_OF_A_SIDE = 3
BLOCKS_OF_A_GAP = 4  # of three months, of both sides together

_NUM_SUGGESTED = 4  # sources that the advice names
_SUGGESTED_MONTHS = 36
_BEFORE_CUTOFF = 12  # months around a stated cutoff
_AFTER_CUTOFF = 18
_PLANS = 4  # least advised time, in durations of the plan


def command_for_text(first: Month | None = None, last: Month | None = None) -> str:
    """Return a command that crawls months of freely licensed posts: the last three years."""
    names = [name for name in list_sources() if name.startswith(f"{GIT_POSTS}:")]
    last = last or Month.last_complete() - 1
    first = first or last - (_SUGGESTED_MONTHS - 1)
    sources = " ".join(f"--source {name}" for name in names[:_NUM_SUGGESTED])
    return f"tidemark crawl {sources} --from {first} --to {last}"


def limits(months: Sequence[Month], cutoff: Month | None, num_companions: int) -> list[str]:
    """Return what text of these months cannot tell, each with the remedy; empty if it tells all."""
    found = []
    if len(months) < MIN_MONTHS:
        found.append(
            f"cutoff: {counted(len(months), 'month')} here, {MIN_MONTHS} are needed; "
            f"`{command_for_text()}` brings more"
        )
    if cutoff is None:
        found.append("gap: it needs the cutoff that the maker states; give --cutoff YYYY-MM")
    elif not months[0] <= cutoff < months[-1]:
        last = min(cutoff + _AFTER_CUTOFF, Month.last_complete() - 1)
        found.append(
            f"gap: it needs months up to the cutoff {cutoff} and after it; here are {months[0]} to "
            f"{months[-1]}; `{command_for_text(cutoff - _BEFORE_CUTOFF, last)}` brings some"
        )
    else:
        num_before = sum(month <= cutoff for month in months)
        num_after = len(months) - num_before
        if lacks_interval(num_before, num_after):
            found.append(
                f"gap: no interval of {counted(num_before, 'month')} up to the cutoff and "
                f"{num_after} after it; six on each side are enough"
            )
    quarters = {(month.first_day.year, (month.first_day.month - 1) // 3) for month in months}
    if not num_companions:
        found.append(
            "ageing, and what other models feel of the same months: no other language model is on "
            "this machine; `tidemark models fetch pythia-70m` brings one"
        )
    elif len(quarters) < MIN_BLOCKS:
        found.append(
            "ageing, and what other models feel of the same months: text of "
            f"{counted(len(quarters), 'quarter')} of a year here, {MIN_BLOCKS} are needed"
        )
    return found


def lacks_interval(num_before: int, num_after: int) -> bool:
    """Return True if months on the two sides of a cutoff are too few for an interval of the gap."""
    if min(num_before, num_after) < MONTHS_OF_A_SIDE:
        return True
    return num_before // 3 + num_after // 3 < BLOCKS_OF_A_GAP


def next_steps(
    findings: Findings, cutoff: Month | None, minutes: float, planning_minutes: float = 0.0
) -> list[str]:
    """Return what would make the answer about the cutoff better; empty if it is told and stated.

    The advised time is twice as much, or four times that of the plan if this is more.
    """
    row = findings.cutoff
    if row is not None and row["estimated_cutoff"] is not None:
        if cutoff is not None:
            return []
        month = row["estimated_cutoff"].strftime("%Y-%m")
        return [
            f"if the maker states a cutoff, give it as --cutoff for the gap; {month} is found on "
            "this text, and a gap at a month chosen by the gap is too large"
        ]
    if row is not None and row["is_at_edge"]:
        return [
            "the change is at the edge of these months: crawl months beyond it, and examine again"
        ]
    advised = 2 * minutes
    if advised < _PLANS * planning_minutes:
        advised = math.ceil(_PLANS * planning_minutes)
    return [
        f"more text narrows it: more sources or months, or --minutes {advised:g}; so does "
        "another language model of known cutoff on the same months"
    ]
