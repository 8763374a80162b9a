"""Titles of figures: findings in words, never stronger than the rows' intervals allow.

A title names an effect only where its q-value is at most ``MAX_Q``. A q-value is the false
discovery rate over the table, or a p-value times the number of rows (Bonferroni). A rank is named
only where its interval overlaps no other. Otherwise a title says what cannot be told yet.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
MAX_Q = 0.05
_MOST_LISTED = 3


def board_finding(rows: Sequence[Row]) -> str:
    """Return who has the lowest loss, or how many models share the first rank."""
    best = [row for row in rows if row["rank_low"] == 1 and not row["model"].startswith("control:")]
    if all(row["rank_low"] is None for row in rows):
        return "Documents are too few to rank models"
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
        return "Figures by source"
    if not worse:
        return f"No gap on {_sources(len(tested))} by more than chance"
    return f"Worse after the cutoff on {listed(worse)}"


def contamination_finding(rows: Sequence[Row]) -> str:
    """Return how many months are suspected to have been in the training text."""
    suspected = [row for row in rows if row["is_suspected"]]
    if not suspected:
        return "No month is suspected to have been seen in training"
    months = "month is" if len(suspected) == 1 else "months are"
    return f"{len(suspected)} {months} predicted better than neighbours and other models explain"


def forecast_finding(rows: Sequence[Row]) -> str:
    """Return where a model forecasts better than by guessing."""
    better = [row["source"] for row in rows if _is_above(row, "accuracy", "expected_accuracy")]
    if not better:
        return "Forecasts no better than guessing, as far as these questions tell"
    return f"Better than guessing on questions of {listed(dict.fromkeys(better))}"


def puzzle_finding(rows: Sequence[Row]) -> str:
    """Return whether a model solves puzzles on inputs that it did not write."""
    whole = [row for row in rows if row["level"] == "all" and row["score_low"] is not None]
    if not whole:
        return "Puzzles: no level is complete yet"
    above = any(row["score_low"] > 0 for row in whole)
    return "Generalises to inputs of others" if above else "Generalisation is not shown"


def _is_above(row: Row, name: str, limit: str) -> bool:
    low, bound = row[f"{name}_low"], row[limit]
    return low is not None and bound is not None and bool(low > bound)


def _sources(number: int) -> str:
    return "1 source" if number == 1 else f"{number} sources"


def difficulty_finding(rows: Sequence[Row]) -> str:
    """Return whether the months of a source became harder or easier for language models.

    Only the interval of the last month against zero, the mean over months, is judged.
    """
    told = [row for row in rows if row["difficulty_low"] is not None]
    if not told:
        return "How hard the months are cannot be told yet"
    last = told[-1]
    when = str(last["month"])[:7]
    if last["difficulty_low"] > 0:
        return f"{when} is harder than the average month"
    if last["difficulty_high"] < 0:
        return f"{when} is easier than the average month"
    return f"{when} is as hard as the average month, as far as can be told"


def neighbours_finding(rows: Sequence[Row]) -> str:
    """Return how many neighbours on the board differ by more than chance."""
    sure = [row for row in rows if is_sure(row["p_value_adjusted"])]
    if not sure:
        return "No two neighbours on the board can be told apart"
    if len(sure) == len(rows):
        return "Every two neighbours on the board can be told apart"
    return f"{len(sure)} of {len(rows)} neighbours on the board can be told apart"


def plane_finding(rows: Sequence[Row]) -> str:
    """Return how many models have a gap whose interval excludes zero."""
    told = [row for row in rows if row["q_value"] is not None]
    if not told:
        return "Level and gap: months are too few for intervals"
    worse = sum(is_sure(row["q_value"]) and row["bits_per_byte_gap"] > 0 for row in told)
    return f"The raw gap of {worse} of {len(told)} models is above zero by more than chance"


def ranks_finding(rows: Sequence[Row]) -> str:
    """Return in how many months a model alone had the best mean rank; a count, not a test."""
    best: dict[Any, list[Row]] = {}
    for row in rows:
        former = best.get(row["month"], [row])
        if row["mean_rank"] < former[0]["mean_rank"] or former == [row]:
            best[row["month"]] = [row]
        elif row["mean_rank"] == former[0]["mean_rank"]:
            former.append(row)
    alone = Counter(first[0]["model"] for first in best.values() if len(first) == 1)
    if not alone:
        return "No model alone has the best mean rank of a month"
    [(model, months)] = alone.most_common(1)
    return f"{model} has the best mean rank in {months} of {len(best)} months"


def board_of_forecasts_finding(rows: Sequence[Row]) -> str:
    """Return how many models are better than guessing on questions from after their cutoff."""
    tested = [row for row in rows if row["p_value"] is not None]
    better = {row["model"] for row in tested if is_sure(row["p_value"] * len(tested))}
    models = {row["model"] for row in tested}
    if not tested:
        return "No question is from after a model's cutoff yet"
    if not better:
        return "No model forecasts better than guessing, as far as these questions tell"
    return f"{len(better)} of {len(models)} models forecast better than guessing"


def bias_finding(rows: Sequence[Row]) -> str:
    """Return which models answer recent questions worse, by the test."""
    worse = [
        row["model"]
        for row in rows
        if row["tested_class"] == "Nostalgia" and is_sure(row["p_adjusted"] * len(rows))
    ]
    if worse:
        return f"Recent questions are answered worse by {listed(dict.fromkeys(worse))}"
    return "No model answers recent questions worse by more than chance"


def valley_finding(rows: Sequence[Row]) -> str:
    """Return how many models have a gap between their own inputs and others."""
    told = [row for row in rows if row["status"] in ("found", "none")]
    found = [row for row in told if row["joint_p_value"] is not None]
    found = [row for row in found if is_sure(row["joint_p_value"] * len(told))]
    if not told:
        return "No level has enough answers yet"
    if not found:
        return "No model is worse on other inputs than on its own, by more than chance"
    return f"{len(found)} of {len(told)} models are worse on other inputs than on their own"


def simulations_finding(rows: Sequence[Row]) -> str:
    """Return how often intervals over months hold the truth, and how many shares are too bad."""
    covering = [row for row in rows if row["truth"] == "coverage, other months"]
    outside = sum(row["num_outside"] for row in rows)
    kinds = sum(row["num_kinds"] for row in rows)
    told = f"{outside} of {kinds} shares are outside their bounds" if outside else ""
    if not covering:
        return told or "No share is outside its bounds"
    share = min(row["worst_share"] for row in covering)
    worst = f"95 % intervals over months hold the truth in at least {100 * share:.0f} % of worlds"
    return f"{worst} of each kind" + (f"; {told}" if told else "")
