"""Scores of forecasts, adjusted for the difficulty of the questions that each model answered.

The model of scope (a source, or all), at least D days before closing, is ForecastBench's:

    s_ij = a_i + b_j + u_ij

- s: the score of model i on question j: 1 or 0 for a right or wrong answer, or Brier's score.
- a: the effect of a model under a protocol. b: the effect of a question, its difficulty.

Least squares over the answered pairs give a up to a constant. The adjusted score is the score that
the model would have on all questions: theta_i = a_i + mean_j b_j. It does not depend on that
constant. If every model answered every question, it is the mean of the model's own scores. With
z_ij = 1 for an answered pair, m_j = sum_i z_ij, and s_ij = 0 without an answer:

    L = sum_j (diag(z_j) - z_j z_j' / m_j)      r = sum_j (s_j - z_j sum_i s_ij / m_j)
    a = L+ r                  mean_j b_j = mean_j (sum_i s_ij - z_j' a) / m_j

Models are compared only if questions connect them: one that shares no question has no adjusted
score. The error is for other days like these: all questions of a day are left out at once (the
jackknife), because questions of one event are resolved on one day. The squared error is
(G - 1)/G sum_g (theta_i without day g - theta_i)^2, G days. Student's t has as many degrees of
freedom as days with an answer of the model, less one.

Source: ForecastBench's technical report of 2025-10, and ``two_way_fixed_effects`` of its public
code (github.com/forecastingresearch/forecastbench, src/leaderboard/main.py, commit 05f612ec). There
the scores are moved until "always 0.5" has 0.25, which gives the same as the mean of b. Its
intervals are bootstrapped over questions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import numpy as np
from numpy.typing import NDArray

from core.progress import counted
from warehouse.database.schema import read_sql
from warehouse.database.statements import Row, rows_of
from warehouse.estimates.changes import finite
from warehouse.estimates.panel_rows import TableRow

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]

HORIZONS = (0, 30, 90, 180, 365)  # least days from the end of a model's knowledge to the closing
MIN_DAYS = 5  # of resolution, with an answer of the model, for an interval
MIN_ANSWERS = 3  # to a question, for the interval of its difficulty
_TINY = 1e-18  # of a sum of squares: errors of rounding
ALONE = "no other model answered these questions"
ONE_LINK = "no interval: one day connects it to the other models"
ALIKE = "no interval: all days are alike"


@dataclass(frozen=True)
class Scores:
    """The scores of models on questions; questions are rows, and models are columns."""

    values: Floats  # (questions, models); NaN without an answer
    questions: Whole  # the number of each question
    days: Whole  # of each question
    guesses: Floats  # expected score of a guess on each question

    def take(self, chosen: Flags, models: Whole) -> Scores:
        """Return the scores of some models on those of the chosen questions that they answered."""
        values = self.values[:, models]
        kept = chosen & ~np.isnan(values).all(axis=1)
        return Scores(values[kept], self.questions[kept], self.days[kept], self.guesses[kept])


class Sums(NamedTuple):
    """Sums over questions, of which least squares needs no more; M models."""

    links: Floats  # (M, M): questions that two models answered
    squares: Floats  # (M, M): L
    rights: Floats  # (M,): r
    shares: Floats  # (M,): sum_j z_j / m_j
    mean: Floats  # (): sum_j of the mean score
    num_questions: Floats  # ()

    @classmethod
    def of(cls, values: Floats) -> Sums:
        """Return the sums over scores (questions, M) of answered questions."""
        answered = 1.0 - np.isnan(values)
        scores = np.nan_to_num(values)
        shares = answered / answered.sum(axis=1, keepdims=True)
        means = np.nanmean(values, axis=1)
        return cls(
            links=answered.T @ answered,
            squares=np.diag(answered.sum(axis=0)) - answered.T @ shares,
            rights=scores.sum(axis=0) - means @ answered,
            shares=shares.sum(axis=0),
            mean=np.asarray(means.sum()),
            num_questions=np.asarray(float(len(values))),
        )

    def less(self, other: Sums) -> Sums:
        """Return the sums without some of the questions."""
        return Sums(*(whole - part for whole, part in zip(self, other, strict=True)))

    def effects(self) -> Floats:
        """Return a (M,), with mean 0; the models must be connected."""
        count = len(self.rights)
        effects = np.linalg.solve(self.squares + np.ones((count, count)), self.rights)
        return np.asarray(effects, dtype=np.float64)

    def adjusted(self) -> Floats:
        """Return theta (M,); the models must be connected."""
        effects = self.effects()
        level = (self.mean - self.shares @ effects) / self.num_questions
        return np.asarray(effects + level)


@dataclass(frozen=True)
class Fit:
    """Adjusted scores of models that questions connect, (M,); errors are NaN with a reason."""

    effects: Floats
    values: Floats
    errors: Floats
    num_days: Whole  # days with an answer of the model
    reasons: tuple[str | None, ...]
    guess: float  # mean over all questions


def connected_models(links: Floats) -> Whole:
    """Return the number of each model's group (M,): models that questions connect, from 0."""
    reached = (links > 0.5) | np.eye(len(links), dtype=bool)
    while True:
        further = (reached.astype(float) @ reached) > 0
        if (further == reached).all():
            break
        reached = further
    _, groups = np.unique(reached.argmax(axis=1), return_inverse=True)
    return groups.astype(np.int64)


def fit_scores(scores: Scores) -> Fit:
    """Fit the scores of connected models, with errors by the jackknife over days."""
    total = Sums.of(scores.values)
    values = total.adjusted()
    days = np.unique(scores.days)
    squares = np.zeros(len(values))
    for day in days:
        squares += (_without(day, scores, total) - values) ** 2
    errors = np.sqrt(squares * (len(days) - 1) / len(days))
    num_days = [len(np.unique(scores.days[own])) for own in ~np.isnan(scores.values.T)]
    reasons = [
        _reason(days_of_model, float(error), float(value))
        for days_of_model, error, value in zip(num_days, errors, values, strict=True)
    ]
    errors = np.where([each is None for each in reasons], errors, np.nan)
    guess = float(scores.guesses.mean())
    return Fit(total.effects(), values, errors, np.array(num_days), tuple(reasons), guess)


def _without(day: int, scores: Scores, total: Sums) -> Floats:
    """Return theta (M,) without a day; NaN for models that are not connected without it."""
    is_left = scores.days != day
    rest = total.less(Sums.of(scores.values[~is_left]))
    is_lost = (total.links > 0.5) & (rest.links < 0.5)
    if not is_lost.any():
        return rest.adjusted()
    groups = connected_models(rest.links)
    largest = np.bincount(groups).argmax()
    kept = np.flatnonzero((groups == largest) & (rest.links.diagonal() > 0.5))
    values = np.full(len(groups), np.nan)
    if len(kept) > 1:
        values[kept] = Sums.of(scores.take(is_left, kept).values).adjusted()
    return values


def _reason(num_days: int, error: float, value: float) -> str | None:
    if num_days < MIN_DAYS:
        days = counted(num_days, "day")
        return f"no interval: {days} of resolution; {MIN_DAYS} are needed"
    if np.isnan(error):
        return ONE_LINK
    return ALIKE if error <= 1e-9 * max(1.0, abs(value)) else None


def question_rows(connection: duckdb.DuckDBPyConnection) -> Iterator[TableRow]:
    """Yield rows of ``forecast_effects`` and ``question_effects``, each with its table's name."""
    rows = rows_of(connection.execute(read_sql("estimates/sql", "question_answers")))
    by_source: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        by_source[row["source"]].append(row)
        if not row["source"].endswith(":documents"):  # these ask the questions of others again
            by_source[None].append(row)
    for source, of_source in by_source.items():
        for horizon in HORIZONS:
            for measure in ("accuracy", "brier_score"):
                chosen = [row for row in of_source if _counts(row, measure, horizon)]
                key = {"source": source, "measure": measure}
                for table, row in _fit_rows(chosen, measure):
                    if table == "forecast_effects":
                        yield table, {**key, "min_days_before_close": horizon, **row}
                    elif source is not None and horizon == 0:
                        yield table, {**key, **row}


def _counts(row: Row, measure: str, horizon: int) -> bool:
    days = row["days_before_close"]
    return row[measure] is not None and (horizon == 0 or (days is not None and days >= horizon))


def _fit_rows(rows: Sequence[Row], measure: str) -> Iterator[TableRow]:
    """Yield rows without source, measure and horizon, each with its table's name."""
    if not rows:
        return
    scores, models, questions = _numbered(rows, measure)
    groups = connected_models(Sums.of(scores.values).links)
    every = np.ones(len(questions), dtype=bool)
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        part = scores.take(every, members)
        fit = fit_scores(part) if len(members) > 1 else None
        for number, member in enumerate(members):
            model, protocol = models[member]
            row: Row = {"model": model, "protocol": protocol}
            yield "forecast_effects", row | _effect(part, number, fit)
        if fit is not None:
            for number, row in zip(part.questions, difficulties(part, fit), strict=True):
                source, question_id = questions[number]
                row |= {"source": source, "question_id": question_id}
                yield "question_effects", row


def _numbered(
    rows: Sequence[Row], measure: str
) -> tuple[Scores, list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the scores, with the (model, protocol) and (source, id) of columns and rows."""
    models = _places((row["model"], row["protocol"]) for row in rows)
    questions = _places((row["source"], row["question_id"]) for row in rows)
    days = _places(row["day"] for row in rows)
    values = np.full((len(questions), len(models)), np.nan)
    day = np.zeros(len(questions), dtype=np.int64)
    guesses = np.zeros(len(questions))
    for row in rows:
        question = questions[row["source"], row["question_id"]]
        values[question, models[row["model"], row["protocol"]]] = row[measure]
        day[question] = days[row["day"]]
        guesses[question] = row["expected"] if measure == "accuracy" else 1 - row["expected"]
    scores = Scores(values, np.arange(len(questions)), day, guesses)
    return scores, list(models), list(questions)


def _places(names: Iterable[Any]) -> dict[Any, int]:
    """Return the place of each name in the sorted names, without repetition."""
    return {name: place for place, name in enumerate(sorted(set(names)))}


def _effect(scores: Scores, number: int, fit: Fit | None) -> Row:
    """Return a row of ``forecast_effects`` without names; ``fit`` is None of a model alone."""
    answered = ~np.isnan(scores.values)
    own = answered[:, number]
    row: Row = {
        "own_score": float(scores.values[own, number].mean()),
        "num_answers": int(own.sum()),
        "num_shared": int((answered[own].sum(axis=1) > 1).sum()),
        "num_days": len(np.unique(scores.days[own])),
        "num_models": answered.shape[1],
        "num_questions": len(answered),
        "reason": ALONE,
    }
    if fit is not None:
        row |= {
            "score": finite(fit.values[number]),
            "score_error": finite(fit.errors[number]),
            "degrees_of_freedom": float(fit.num_days[number] - 1),
            "guess": fit.guess,
            "reason": fit.reasons[number],
        }
    return row


def difficulties(scores: Scores, fit: Fit) -> Iterator[Row]:
    """Yield the row of each question in ``question_effects``, without names.

    The difficulty is the score of a model of mean effect. Its error is of other models like these.
    All questions have one variance of u: three right answers alone would seem to be certain.
    """
    left = scores.values - fit.effects
    counts = (~np.isnan(left)).sum(axis=1)
    means = np.nanmean(left, axis=1)
    num_free = int(counts.sum()) - len(counts) - len(fit.effects) + 1
    squares = float(np.nansum((left - means[:, None]) ** 2))
    spread = np.sqrt(squares / num_free) if num_free > 0 and squares > _TINY else 0
    for difficulty, count in zip(means, counts, strict=True):
        error = spread / np.sqrt(count) if count >= MIN_ANSWERS else 0
        yield {
            "difficulty": float(difficulty),
            "difficulty_error": float(error) if error > 0 else None,
            "degrees_of_freedom": float(num_free),
            "num_answers": int(count),
        }
