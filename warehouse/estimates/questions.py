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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from warehouse.database.schema import qualify, read_sql
from warehouse.database.statements import Row, Statements, rows_of
from warehouse.estimates.changes import finite

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]

HORIZONS = (0, 30, 90, 180, 365)  # least days from the end of a model's knowledge to the closing
MIN_DAYS = 5  # of resolution, with an answer of the model, for an interval
MIN_ANSWERS = 3  # to a question, for the interval of its difficulty
ALONE = "no other model answered these questions"
FEW_DAYS = f"no interval: fewer than {MIN_DAYS} days of resolution"
ONE_LINK = "no interval: one day connects it to the other models"
ALIKE = "no interval: all days are alike"


@dataclass(frozen=True)
class Answers:
    """Answered pairs, one element each; models, questions and days are numbers from 0."""

    model: Whole
    question: Whole
    day: Whole  # of the question
    score: Floats
    guess: Floats  # expected score of a guess on the question

    def take(self, chosen: Flags) -> Answers:
        """Return some of the pairs."""
        return Answers(
            self.model[chosen],
            self.question[chosen],
            self.day[chosen],
            self.score[chosen],
            self.guess[chosen],
        )


@dataclass(frozen=True)
class Sums:
    """Sums over questions, of which least squares needs no more; M models."""

    links: Floats  # (M, M): questions that two models answered
    squares: Floats  # (M, M): L
    rights: Floats  # (M,): r
    shares: Floats  # (M,): sum_j z_j / m_j
    mean: float  # sum_j of the mean score
    guess: float
    num_questions: int

    @classmethod
    def of(cls, answers: Answers, num_models: int) -> Sums:
        """Return the sums over all questions of some answers."""
        names, question = np.unique(answers.question, return_inverse=True)
        answered = np.zeros((len(names), num_models))
        scores = np.zeros((len(names), num_models))
        guesses = np.zeros(len(names))
        answered[question, answers.model] = 1
        scores[question, answers.model] = answers.score
        guesses[question] = answers.guess
        shares = answered / answered.sum(axis=1, keepdims=True)
        means = scores.sum(axis=1) / answered.sum(axis=1)
        return cls(
            links=answered.T @ answered,
            squares=np.diag(answered.sum(axis=0)) - answered.T @ shares,
            rights=scores.sum(axis=0) - means @ answered,
            shares=shares.sum(axis=0),
            mean=float(means.sum()),
            guess=float(guesses.sum()),
            num_questions=len(names),
        )

    def less(self, other: Sums) -> Sums:
        """Return the sums without some of the questions."""
        return Sums(
            self.links - other.links,
            self.squares - other.squares,
            self.rights - other.rights,
            self.shares - other.shares,
            self.mean - other.mean,
            self.guess - other.guess,
            self.num_questions - other.num_questions,
        )

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
    num_questions: int


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


def fit_scores(answers: Answers, num_models: int) -> Fit:
    """Fit the scores of connected models, with errors by the jackknife over days."""
    total = Sums.of(answers, num_models)
    values = total.adjusted()
    days = np.unique(answers.day)
    squares = np.zeros(num_models)
    for day in days:
        squares += (_without(day, answers, total) - values) ** 2
    errors = np.sqrt(squares * (len(days) - 1) / len(days))
    num_days = np.zeros(num_models, dtype=np.int64)
    pairs = np.unique(np.stack([answers.model, answers.day]), axis=1)
    np.add.at(num_days, pairs[0], 1)
    reasons = tuple(
        _reason(int(days_of_model), float(error), float(value))
        for days_of_model, error, value in zip(num_days, errors, values, strict=True)
    )
    errors = np.where([each is None for each in reasons], errors, np.nan)
    guess = total.guess / total.num_questions
    effects = total.effects()
    return Fit(effects, values, errors, num_days, reasons, guess, total.num_questions)


def _without(day: int, answers: Answers, total: Sums) -> Floats:
    """Return theta (M,) without a day; NaN for models that are not connected without it."""
    rest = total.less(Sums.of(answers.take(answers.day == day), len(total.rights)))
    is_lost = (total.links > 0.5) & (rest.links < 0.5)
    if not is_lost.any():
        return rest.adjusted()
    groups = connected_models(rest.links)
    group = np.bincount(groups).argmax()
    kept = np.flatnonzero((groups == group) & (np.diag(rest.links) > 0.5))
    values = np.full(len(groups), np.nan)
    if len(kept) > 1:
        chosen = np.isin(answers.model, kept) & (answers.day != day)
        left = answers.take(chosen)
        numbered = Answers(
            np.searchsorted(kept, left.model), left.question, left.day, left.score, left.guess
        )
        values[kept] = Sums.of(numbered, len(kept)).adjusted()
    return values


def _reason(num_days: int, error: float, value: float) -> str | None:
    if num_days < MIN_DAYS:
        return FEW_DAYS
    if np.isnan(error):
        return ONE_LINK
    return ALIKE if error <= 1e-9 * max(1.0, abs(value)) else None


def estimate_questions(connection: duckdb.DuckDBPyConnection) -> None:
    """Insert the rows of ``forecast_effects`` and ``question_effects``, which must be empty."""
    rows = rows_of(connection.execute(read_sql("estimates/sql", "question_answers")))
    by_source: dict[str | None, list[Row]] = defaultdict(list)
    for row in rows:
        by_source[row["source"]].append(row)
        if not row["source"].endswith(":documents"):  # these ask the questions of others again
            by_source[None].append(row)
    written: dict[str, list[Row]] = defaultdict(list)
    for source, of_source in by_source.items():
        for horizon in HORIZONS:
            for measure in ("accuracy", "brier_score"):
                chosen = [row for row in of_source if _counts(row, measure, horizon)]
                key = {"source": source, "measure": measure}
                for table, found in _fit_rows(chosen, measure):
                    if table == "forecast_effects":
                        written[table].append({**key, "min_days_before_close": horizon, **found})
                    elif source is not None and horizon == 0:
                        written[table].append({**key, **found})
    statements = Statements(connection)
    for table, values in written.items():
        arrow = pa.Table.from_pylist(values, schema=statements.columns(table))
        with statements.given(effects_to_write=arrow):
            connection.table("effects_to_write").insert_into(qualify(table))


def _counts(row: Row, measure: str, horizon: int) -> bool:
    days = row["days_before_close"]
    return row[measure] is not None and (horizon == 0 or (days is not None and days >= horizon))


def _fit_rows(rows: Sequence[Row], measure: str) -> Iterator[tuple[str, Row]]:
    """Yield pairs: a table's name, and a row without source, measure and horizon."""
    if not rows:
        return
    answers, models, questions = _numbered(rows, measure)
    groups = connected_models(_links(answers, len(models), len(questions)))
    for group in range(groups.max() + 1):
        members = np.flatnonzero(groups == group)
        inside = answers.take(np.isin(answers.model, members))
        part = Answers(
            np.searchsorted(members, inside.model),
            inside.question, inside.day, inside.score, inside.guess,
        )  # fmt: skip
        names = [models[member] for member in members]
        if len(members) == 1:
            yield "forecast_effects", _row(names[0], part, 0, None)
            continue
        fit = fit_scores(part, len(members))
        for number, name in enumerate(names):
            yield "forecast_effects", _row(name, part, number, fit)
        for question, row in _difficulties(part, fit):
            source, question_id = questions[question]
            yield "question_effects", {"source": source, "question_id": question_id, **row}


def _numbered(
    rows: Sequence[Row], measure: str
) -> tuple[Answers, list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the answers, and what their numbers stand for: (model, protocol), (source, id)."""

    def number(key: Callable[[Row], Any]) -> tuple[list[Any], Whole]:
        names = sorted({key(row) for row in rows})
        places = {name: place for place, name in enumerate(names)}
        return names, np.array([places[key(row)] for row in rows], dtype=np.int64)

    models, model = number(lambda row: (row["model"], row["protocol"]))
    questions, question = number(lambda row: (row["source"], row["question_id"]))
    _, day = number(lambda row: row["day"])
    score = np.array([row[measure] for row in rows], dtype=float)
    expected = np.array([row["expected"] for row in rows], dtype=float)
    guess = expected if measure == "accuracy" else 1 - expected
    return Answers(model, question, day, score, guess), models, questions


def _links(answers: Answers, num_models: int, num_questions: int) -> Floats:
    answered = np.zeros((num_questions, num_models), dtype=np.float32)
    answered[answers.question, answers.model] = 1
    return np.asarray(answered.T @ answered, dtype=float)


def _row(name: tuple[str, str], answers: Answers, number: int, fit: Fit | None) -> Row:
    """Return a row of ``forecast_effects`` of one model; ``fit`` is None if it is alone."""
    own = answers.model == number
    counts = np.bincount(answers.question)
    row: Row = {
        "model": name[0],
        "protocol": name[1],
        "own_score": float(answers.score[own].mean()),
        "num_answers": int(own.sum()),
        "num_shared": int((counts[answers.question[own]] > 1).sum()),
        "num_days": len(np.unique(answers.day[own])),
        "num_models": 1 if fit is None else len(fit.values),
        "num_questions": int((counts > 0).sum()),
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


def _difficulties(answers: Answers, fit: Fit) -> Iterator[tuple[int, Row]]:
    """Yield pairs: a question's number, and its row of ``question_effects`` without names.

    The difficulty is the score of a model of mean effect. Its error is of other models like these.
    """
    rest = answers.score - fit.effects[answers.model]
    counts = np.bincount(answers.question)
    sums = np.bincount(answers.question, rest)
    residuals = rest - (sums / np.maximum(counts, 1))[answers.question]
    squares = np.bincount(answers.question, residuals**2)
    for question in np.flatnonzero(counts):
        count = int(counts[question])
        variance = squares[question] / (count * (count - 1)) if count >= MIN_ANSWERS else np.nan
        yield (
            int(question),
            {
                "difficulty": float(sums[question] / count),
                "difficulty_error": finite(np.sqrt(variance)) if variance > 0 else None,
                "degrees_of_freedom": float(count - 1),
                "num_answers": count,
            },
        )
