"""Titles of figures: findings in words, never stronger than the rows' intervals allow.

A title names an effect only where its q-value is at most ``MAX_Q``. A q-value is the false
discovery rate over the table, or a p-value times the number of rows (Bonferroni). A rank is named
only where its interval overlaps no other. Otherwise a title says what cannot be told yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import polars as pl

from core.progress import counted
from reports.site.context import SEEN
from reports.site.figure import Row

MAX_Q = 0.05
_MOST_LISTED = 3
_HOUR_S = 3600


def span(values: Sequence[float], form: str) -> str:
    """Return the least and the greatest value as ``2 to 4``, or ``3`` if they look alike."""
    ends = [format(end, form) for end in (min(values), max(values))]
    return " to ".join(dict.fromkeys(ends))


def board_finding(rows: Sequence[Row], *, is_window: bool = False) -> str:
    """Return which model has the lowest loss, or how many models share the first rank."""
    # The board's rows include models that cannot be compared; those of a window leave them out.
    ranked = [row for row in rows if row["rank"] is not None]
    if not ranked:
        if is_window or any(not row["model"].startswith("control:") for row in rows):
            return "No model can be compared on months after its cutoff"
        return "No model is measured"
    months = "this month" if ranked[0]["num_months"] == 1 else "these months"
    best = [row for row in ranked if row["rank_low"] == 1]
    if not best:
        return "Documents are too few to rank models"
    if _is_below(rows, min(row["bits_per_byte_low"] for row in best)):
        return "No model is better than the best compressor"
    if len(ranked) == 1:
        return f"No other model can be compared with {best[0]['model']} yet"
    if len(best) > 1:
        return f"{len(best)} models share the first rank: {months} cannot tell them apart"
    near = _not_above(rows, best[0])
    if near:
        return f"{best[0]['model']} has the lowest loss, but cannot be told apart from {near[0]}"
    if best[0]["basis"].startswith("after"):
        return f"{best[0]['model']} predicts {months} best"
    return f"{best[0]['model']} has the lowest loss, maybe on text seen in training"


def _is_below(rows: Sequence[Row], level: float) -> bool:
    """Return True if a compressor's interval is below ``level``, in bits per byte."""
    ends = [row["bits_per_byte_high"] for row in rows if row["model"].startswith("control:")]
    return any(end is not None and end < level for end in ends)


def _not_above(rows: Sequence[Row], model: Row) -> list[str]:
    """Return the compressors whose interval is not wholly above that of a model."""
    names: list[str] = []
    for row in rows:
        low = row["bits_per_byte_low"]
        is_compressor = row["model"].startswith("control:")
        if is_compressor and low is not None and low <= model["bits_per_byte_high"]:
            names.append(row["model"])
    return names


def untold_gap(reasons: Sequence[Row]) -> str:
    """Return that no model's gap can be told, and the commonest reason of query gaps_untold."""
    known = "it needs models of known cutoff, with months on both sides of it"
    return f"No gap can be told yet: {reasons[0]['reason'] if reasons else known}"


def rise_about(rows: pl.DataFrame) -> str:
    """Return what the rises of the queries over_time and model_curves are measured from."""
    level = "Bits per byte above the level up to the known cutoff"
    if rows["stated_end"].is_null().all():
        level = "Bits per byte above the mean of the months"
    if rows["is_adjusted"].any():
        return f"{level}, less what makes a month hard for all models."
    return f"{level}. What makes a month hard is in it, since too few models tell that."


def ageing_finding(rows: Sequence[Row], reasons: Sequence[Row]) -> str:
    """Return for how many models the text after the cutoff is harder.

    ``reasons`` are the rows of query gaps_untold.
    """
    tested = [row for row in rows if row["adjusted_gap"] is not None]
    found = [row for row in tested if is_sure(row["gap_q_value"]) and row["adjusted_gap"] > 0]
    if not tested:
        return untold_gap(reasons)
    if not found:
        return "No model predicts the months after its cutoff worse by more than chance"
    if len(tested) == 1:
        return f"{tested[0]['model']} predicts text from after its cutoff worse"
    return (
        f"{len(found)} of {len(tested)} models with months on both sides of their cutoff predict "
        "later text worse"
    )


def is_sure(q_value: float | None) -> bool:
    """Return True if an effect may be named in a title."""
    return q_value is not None and q_value <= MAX_Q


def listed(names: Iterable[str]) -> str:
    """Return names as ``a, b and c``, or ``a, b, c and 4 more``."""
    names = list(names)
    if len(names) > _MOST_LISTED + 1:
        return f"{', '.join(names[:_MOST_LISTED])} and {len(names) - _MOST_LISTED} more"
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def sources_finding(rows: Sequence[Row]) -> str:
    """Return on which sources a model's gap is more than chance."""
    tested = [row for row in rows if row["adjusted_gap"] is not None]
    worse = [r["source"] for r in tested if is_sure(r["gap_q_value"]) and r["adjusted_gap"] > 0]
    if not tested:
        return "No gap by source can be told yet"
    if not worse:
        return f"On no single source is the gap more than chance, of {len(tested)}"
    return f"Worse after the cutoff on {listed(worse)}"


def decay_finding(rows: Sequence[Row]) -> str:
    """Return on which sources a model's loss is higher in the year after its release."""
    tested = [row for row in rows if row["decay_q_value"] is not None]
    worse = [
        row["source"]
        for row in tested
        if is_sure(row["decay_q_value"]) and row["decay_mean_pct"] > 0
    ]
    if not tested:
        return "No rise after the release can be told yet"
    if not worse:
        return "On no source is the loss after the release higher by more than chance"
    return f"The loss is higher after the release on {listed(worse)}"


def source_finding(rows: Sequence[Row], source: str) -> str:
    """Return how many models predict a source's months after their cutoff worse."""
    tested = [row for row in rows if row["adjusted_gap"] is not None]
    worse = [row for row in tested if is_sure(row["gap_q_value"]) and row["adjusted_gap"] > 0]
    if not tested:
        return f"No gap on {source} can be told yet"
    if not worse:
        return f"No model has a gap on {source} by more than chance"
    return f"{len(worse)} of {len(tested)} models predict {source} worse after their cutoff"


def costs_finding(rows: Sequence[Row]) -> str:
    """Return how long scoring took."""
    cells = sum(row["num_cells"] for row in rows)
    hours = sum(row["seconds"] or 0 for row in rows) / _HOUR_S
    took = f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.1f} minutes"
    took = took if hours >= 1 / 60 else f"{_HOUR_S * hours:.0f} s"
    return f"Scoring {cells:,} {'cell' if cells == 1 else 'cells'} took {took}"


def collected_finding(rows: Sequence[Row]) -> str:
    """Return the share of found items that was not kept, and the commonest reason."""
    items = 0
    reasons: Counter[str] = Counter()
    for row in rows:
        items += row["num_items"]
        if row["outcome"] != "kept":
            reasons[row["outcome"]] += row["num_items"]
    lost = reasons.total()
    if not lost:
        return f"All {counted(items, 'item')} that crawls found are in the corpus"
    [(reason, num)] = reasons.most_common(1)
    return f"{lost:,} of {items:,} items are not in the corpus, {num:,} for the reason: {reason}"


def cells_finding(rows: Sequence[Row]) -> str:
    """Return how many cells are missing, stale or held back."""
    cells: Counter[str] = Counter()
    for row in rows:
        cells[row["state"]] += row["num_cells"]
    others = [f"{num:,} {state}" for state, num in sorted(cells.items()) if state != "there"]
    if not others:
        return "Every model is scored on every month of every source"
    return f"Of {cells.total():,} cells, {', '.join(others)}"


def left_out_finding(rows: Sequence[Row]) -> str:
    """Return how many views lack some of the models."""
    models: set[str] = set()
    for row in rows:
        models.update(row["models"].split(", "))
    views = len({row["left_out_of"] for row in rows})
    return f"{views} views leave out some of {len(models)} models, with reasons"


def contamination_finding(rows: Sequence[Row]) -> str:
    """Return how many months are suspected to have been in the training text."""
    suspected = [row for row in rows if row["is_suspected"]]
    if not suspected:
        return "No month stands out from its neighbours and from other models"
    months = "month is" if len(suspected) == 1 else "months are"
    return f"{len(suspected)} {months} predicted better than neighbours and other models explain"


def classes_finding(rows: Sequence[Row]) -> str:
    """Return the class of bytes with the largest share of the gap, if the gap is there."""
    known = [row for row in rows if row["share_of_gap"] is not None]
    if not known:
        return "Which kinds of text have become harder cannot be told yet"
    largest = max(known, key=lambda row: row["share_of_gap"])
    if largest["share_of_gap_low"] <= 0:
        return "No kind of text is known to have a part of the gap"
    low, high = (format(100 * largest[f"share_of_gap_{end}"], ".0f") for end in ("low", "high"))
    share = format(100 * largest["share_of_gap"], ".0f")
    return f"{share} % of the plain gap ({low} to {high} %) is in {largest['label']}"


def difficulty_finding(rows: Sequence[Row], num_sources: int) -> str:
    """Return whether a source's last month is hard for language models."""
    # It is tested against zero, the mean over months. Bonferroni's correction is over the sources.
    tested = [row for row in rows if row["p_value"] is not None]
    if not tested:
        return "How hard the months are cannot be told yet"
    last = tested[-1]
    when = str(last["month"])[:7]
    if last["p_value"] * num_sources <= MAX_Q:
        how = "harder" if last["difficulty"] > 0 else "easier"
        return f"{when} is {how} than the average month"
    return f"{when} is as hard as the average month, as far as can be told"


def contexts_finding(rows: Sequence[Row]) -> str:
    """Return how often the longest context has the lowest loss; a count, not a test."""
    curves: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        curves.setdefault((row["model"], row["source"]), []).append(row)
    found = 0
    for curve in curves.values():
        best = min(curve, key=lambda row: row["bits_per_byte"])
        found += best["context"] == max(row["context"] or 0 for row in curve)
    return f"The longest context has the lowest loss in {found} of {len(curves)} curves"


def months_finding(rows: Sequence[Row]) -> str:
    """Return in how many months of sources one of two models is lower; a count, not a test."""
    num_lower = sum(row["difference"] < 0 for row in rows)
    names = [rows[0]["model"], rows[0]["other"]]
    if not any(row["difference"] for row in rows):
        return f"{names[0]} and {names[1]} have equal losses in all months of sources"
    if 2 * num_lower < len(rows):
        names.reverse()
        num_lower = sum(row["difference"] > 0 for row in rows)
    found = f"in {num_lower} of {len(rows)} months of sources"
    return f"{names[0]} has a lower loss than {names[1]} {found}"


def pair_finding(row: Row, one: str, other: str) -> str:
    """Return which of two models is better, by the p-value, or without one by the interval."""
    is_over_time = row["p"] is not None
    if is_over_time:
        is_significant = row["p"] <= MAX_Q
    elif row["low"] is None or row["high"] is None:
        is_significant = False
    else:
        is_significant = row["low"] > 0 or row["high"] < 0
    if not is_significant:
        return f"{one} and {other} cannot be told apart"
    is_better = (row["difference"] < 0) == (row["model"] == one)
    finding = f"{one} is better than {other}" if is_better else f"{other} is better than {one}"
    finding += "" if is_over_time else " on these documents"
    return f"{finding}, maybe seen in training" if row["basis"] == SEEN else finding


def neighbours_finding(rows: Sequence[Row]) -> str:
    """Return how many neighbours on the board differ by more than chance."""
    distinct = [row for row in rows if is_sure(row["p_value_adjusted"])]
    if all(row["p_value_adjusted"] is None for row in rows):
        return "Months are too few to test neighbours on the board"
    if not distinct:
        return "No two neighbours on the board can be told apart"
    if len(distinct) == len(rows):
        return "Every two neighbours on the board can be told apart"
    return f"{len(distinct)} of {len(rows)} neighbours on the board can be told apart"


def plane_finding(rows: Sequence[Row]) -> str:
    """Return the range of the raw gaps, which are not tested: months may differ in difficulty."""
    gaps = [row["bits_per_byte_gap"] for row in rows if row["bits_per_byte_gap"] is not None]
    if not gaps:
        return "No raw gap can be told yet: it needs months on both sides of a cutoff"
    sizes = span(gaps, "+.3f").replace("-", "\u2212")
    if len(gaps) == 1:
        return f"The raw gap is {sizes} bits per byte, with the difficulty of the months in it"
    return f"Raw gaps are {sizes} bits per byte, with the difficulty of the months in them"


def ranks_finding(rows: Sequence[Row]) -> str:
    """Return in how many months a model alone had the best mean rank; a count, not a test."""
    if len({row["model"] for row in rows}) == 1:
        return f"Only {rows[0]['model']} has ranks"
    models, num, of = _most_often_lowest(rows, "mean_rank", "month")
    if not models:
        return "No model alone has the best mean rank of a month"
    return f"{_each_has(models)} the best mean rank in {num} of {of} months"


def lowest_finding(rows: Sequence[Row], per: str) -> str:
    """Return in how many months or sources a model alone had the lowest loss; a count, not a test.

    ``per`` is a column: month or source.
    """
    if len({row["model"] for row in rows}) == 1:
        return f"Only {rows[0]['model']} has a loss"
    models, num, of = _most_often_lowest(rows, "bits_per_byte", per)
    if not models:
        return f"No model alone has the lowest loss of a {per}"
    found = f"the lowest loss {'in' if per == 'month' else 'on'} {num} of {of} {per}s"
    return f"{_each_has(models)} {found}"


def _each_has(models: Sequence[str]) -> str:
    return f"{models[0]} has" if len(models) == 1 else f"{listed(models)} each have"


def _most_often_lowest(rows: Sequence[Row], key: str, per: str) -> tuple[list[str], int, int]:
    """Return the models that are alone lowest most often, how often, and the number of groups."""
    best: dict[Any, list[Row]] = {}
    for row in rows:
        former = best.get(row[per], [row])
        if row[key] < former[0][key] or former == [row]:
            best[row[per]] = [row]
        elif row[key] == former[0][key]:
            former.append(row)
    alone = Counter(first[0]["model"] for first in best.values() if len(first) == 1)
    num = max(alone.values(), default=0)
    return sorted(model for model in alone if alone[model] == num), num, len(best)


def simulations_finding(rows: Sequence[Row]) -> str:
    """Return how often intervals over months contain the true value, and which shares are off."""
    covering = [row for row in rows if row["truth"] == "coverage, other months"]
    outside = sum(row["num_outside"] for row in rows)
    kinds = sum(row["num_kinds"] for row in rows)
    exceptions = f"{outside} of {kinds} shares are outside their bounds" if outside else ""
    if not covering:
        return exceptions or "No share is outside its bounds"
    share = min(row["worst_share"] for row in covering)
    worst = f"95 % intervals over months hold the truth in at least {100 * share:.0f} % of worlds"
    return f"{worst} of each kind" + (f"; {exceptions}" if exceptions else "")
