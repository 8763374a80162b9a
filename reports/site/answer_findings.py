"""Titles of figures about forecasting questions and puzzles.

The rules are those of ``findings``: an effect is named only where chance does not explain it.
"""

from __future__ import annotations

from collections.abc import Sequence

from reports.site.figure import Row
from reports.site.findings import MAX_Q, listed, span

# Probabilities are skewed, so Student's t finds a preferred place too often: at 0.05, in 9 % of
# simulated data sets without one, with 30 answers of four models each.
_MAX_Q_PLACES = 0.01


def _significant(rows: Sequence[Row], p_value: str, max_q: float = MAX_Q) -> list[Row]:
    """Return the rows with an effect, by Bonferroni's correction over those that were tested."""
    tested = [row for row in rows if row[p_value] is not None]
    return [row for row in tested if row[p_value] * len(tested) <= max_q]


def _with_answers(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row["num_unparsed"] < row["num_all_questions"]]


def forecast_finding(rows: Sequence[Row], num_tests: int) -> str:
    """Return where a model forecasts better than by guessing, on questions from after its cutoff.

    Bonferroni's correction is over the ``num_tests`` rows of all models with a p-value.
    """
    if not _with_answers(rows):
        return "No answers to forecasting questions could be read"
    tested = [row for row in rows if row["p_value"] is not None]
    if not tested:
        return "No question from after the cutoff is answered yet"
    better = [row["source"] for row in tested if row["p_value"] * num_tests <= MAX_Q]
    if not better:
        return "Forecasts no better than guessing, as far as these questions tell"
    return f"Forecasts better than guessing on {listed(dict.fromkeys(better))}"


def board_of_forecasts_finding(rows: Sequence[Row]) -> str:
    """Return how many models are better than guessing on questions from after their cutoff."""
    better = {row["model"] for row in _significant(rows, "p_value")}
    models = {row["model"] for row in _with_answers(rows) if row["p_value"] is not None}
    if not models:
        return "No model has answered a question from after its cutoff yet"
    if not better:
        return "No model forecasts better than guessing, as far as these questions tell"
    return f"{len(better)} of {len(models)} models forecast better than guessing"


def adjusted_finding(rows: Sequence[Row]) -> str:
    """Return of how many models the adjusted share's interval is above guessing."""
    least = min(row["min_days_before_close"] for row in rows)
    found = [row for row in rows if row["min_days_before_close"] == least]
    above = {r["model"] for r in found if r["adjusted_accuracy_low"] > r["expected_accuracy"]}
    models = {row["model"] for row in found}
    if not above:
        return "No model would be above guessing on all questions, as far as these tell"
    return (
        f"On all questions, the interval of {len(above)} of {len(models)} models would be above "
        "guessing"
    )


def quarters_finding(rows: Sequence[Row]) -> str:
    """Return how precisely a quarter's questions measure a share; quarters are not tested."""
    # Half the width of an interval, in percentage points.
    half = min(50 * (row["high"] - row["low"]) for row in rows)
    return f"A quarter's questions tell the share of right answers to ±{half:.0f} points at best"


def bias_finding(rows: Sequence[Row]) -> str:
    """Return which models answer recent questions worse, by the test."""
    worse = [
        r["model"] for r in _significant(rows, "p_adjusted") if r["tested_class"] == "Nostalgia"
    ]
    if worse:
        return f"Recent questions are answered worse by {listed(dict.fromkeys(worse))}"
    if all(row["p_adjusted"] is None for row in rows):
        return "No model has answers that could tell a bias over time"
    return "No model answers recent questions worse by more than chance"


def positions_finding(rows: Sequence[Row]) -> str:
    """Return how many models prefer a place where each option is equally often in each place."""
    rotated = [row for row in rows if row["rotated"] == "yes"]
    tested = {row["model"] for row in rotated if row["p_value"] is not None}
    partial = {row["model"] for row in _significant(rotated, "p_value", _MAX_Q_PLACES)}
    if not tested:
        return "Whether models prefer a place is not tested: it needs 30 answers to rotated options"
    if not partial:
        return "No model prefers a place in the list by more than chance"
    return f"{len(partial)} of {len(tested)} models prefer a place in the list of options"


def crowd_finding(rows: Sequence[Row]) -> str:
    """Return how often the crowd has the lower score on the same questions; a count, not a test."""
    both = [row for row in rows if row["crowd_brier_score"] is not None]
    if not both:
        scores = [row["brier_score"] for row in rows]
        return f"Brier scores are {span(scores, '.3f')}; no crowd forecast these questions"
    crowd = sum(row["crowd_brier_score"] < row["model_brier_score_there"] for row in both)
    return (
        f"On the same questions, the crowd has the lower Brier score in {crowd} of {len(both)} rows"
    )


def puzzle_finding(rows: Sequence[Row], num_models: int, *, has_gap: bool = False) -> str:
    """Return whether a model solves puzzles on inputs that others wrote, in every way of asking.

    Bonferroni's correction is over the models with a score. ``has_gap``: the model is worse on such
    inputs than on its own, by ``with_gap``.
    """
    whole = [row for row in rows if row["level"] == "all" and row["p_value"] is not None]
    if not whole:
        return "Puzzles: no level is complete yet"
    worse = "worse on inputs of others than on its own"
    if all(r["score_low"] > 0 and r["p_value"] * num_models <= MAX_Q for r in whole):
        return "Scores above zero on inputs of others" + f", but is {worse}" * has_gap
    return f"Is {worse}" if has_gap else "A score above zero on inputs of others is not shown"


def valley_finding(rows: Sequence[Row]) -> str:
    """Return how many models have a gap between their own inputs and others."""
    complete = [row for row in rows if row["status"] in ("found", "none")]
    if not complete:
        return "No level has enough answers yet"
    with_gaps = with_gap(rows)
    if not with_gaps:
        return "No model is worse on other inputs than on its own, by more than chance"
    return f"{len(with_gaps)} of {len(complete)} models are worse on other inputs than on their own"


def with_gap(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of models and ways of asking with a gap, by Bonferroni's correction."""
    complete = [row for row in rows if row["status"] in ("found", "none")]
    tested = [row for row in complete if row["joint_p_value"] is not None]
    return [row for row in tested if row["joint_p_value"] * len(complete) <= MAX_Q]


def levels_finding(rows: Sequence[Row], levels_of: Sequence[Row]) -> str:
    """Return at which levels models with a gap have the largest; which level is not tested."""
    found = {(row["model"], row["protocol"]) for row in with_gap(rows)}
    largest = [row for row in levels_of if row["is_critical"]]
    levels = [row["level"] for row in largest if (row["model"], row["protocol"]) in found]
    if not levels:
        return "At no level is the gap more than chance"
    which = "level" if len(set(levels)) == 1 else "levels"
    return f"Where models have a gap, the largest was measured at {which} {span(levels, 'd')}"


def printed_levels_finding(rows: Sequence[Row]) -> str:
    """Return which critical levels the paper prints."""
    levels = [row["critical_level"] for row in rows if row["critical_level"] is not None]
    printed = f"critical levels of {span(levels, 'd')}" if levels else "no critical level"
    return f"Qi et al. print {printed} for {len(rows)} models"
