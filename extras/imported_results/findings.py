"""Titles of figures that others have published; they count, and claim no effect."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from core.progress import counted
from reports.site.context import is_control
from reports.site.figure import Row

_COMPRESSOR = "Gzip"  # the one that Li et al. print for text


def printed_rates_finding(rows: Sequence[Row]) -> str:
    """Return how many printed rates of models are worse on newer text."""
    of_models = [row for row in rows if row["model"] != _COMPRESSOR]
    worse = sum(row["change"] > 0 for row in of_models)
    cases = f"{worse} of {len(of_models)} cases"
    models = len({row["model"] for row in of_models})
    return f"Li et al. print worse rates for 2023 in {cases} of {models} models"


def growth_finding(rows: Sequence[Row]) -> str:
    """Return how often the larger of two sizes of a family grew more; a count, not a test."""
    sized = [row for row in rows if row["family"] and row["parameters"]]
    sized.sort(key=lambda row: (row["family"], row["parameters"]))
    pairs = [(a, b) for a, b in pairwise(sized) if a["family"] == b["family"]]
    if not pairs:
        return f"Rates of {counted(len(rows), 'model')}, as published"
    more = sum(larger["change"] > smaller["change"] for smaller, larger in pairs)
    told = f"in {more} of {len(pairs)} pairs"
    return f"The larger of two sizes of a family lost more on newer text {told}"


def published_gaps_finding(rows: Sequence[Row], before: str, after: int) -> str:
    """Return how many published rates are higher for the last year; a count, not a test."""
    controls = [row for row in rows if is_control(row["model"])]
    num_models = len(rows) - len(controls)
    others = sum(row["change"] > 0 for row in controls)
    worse = sum(row["change"] > 0 for row in rows) - others
    told = f"{worse} of {num_models} models have a higher rate for {after} than for {before}"
    return f"{told}; so have {others} of {len(controls)} compressors" if controls else told
