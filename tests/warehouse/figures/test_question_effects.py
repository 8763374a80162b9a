"""Adjusted scores of forecasts, against least squares with a column for each model and question."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from warehouse.estimates.questions import (
    ALIKE,
    MIN_DAYS,
    ONE_LINK,
    Floats,
    Scores,
    connected_models,
    difficulties,
    fit_scores,
)


def answers(pairs: list[tuple[int, int, int, float]]) -> Scores:
    """Return the scores of answers: model, question, day of the question, and score."""
    numbers = sorted({question for _, question, *_ in pairs})
    values = np.full((len(numbers), 1 + max(model for model, *_ in pairs)), np.nan)
    days = np.zeros(len(numbers), dtype=int)
    for model, question, day, score in pairs:
        values[numbers.index(question), model] = score
        days[numbers.index(question)] = day
    return Scores(values, np.array(numbers), days, np.full(len(numbers), 0.5))


def plain(scores: Scores) -> Floats:
    """Return theta by numpy's least squares on columns of zeros and ones."""
    question, model = np.nonzero(~np.isnan(scores.values))
    num_questions, num_models = scores.values.shape
    rows = np.arange(len(question))
    design = np.zeros((len(question), num_models + num_questions))
    design[rows, model] = 1
    design[rows, num_models + question] = 1
    found, *_ = np.linalg.lstsq(design, scores.values[question, model], rcond=None)
    return np.asarray(found[:num_models] + found[num_models:].mean())


def world(seed: int, num_models: int = 5, num_days: int = 12, share: float = 0.6) -> Scores:
    """Return scores of models that answer a share of 1 to 4 questions a day, each its own."""
    rng = np.random.default_rng(seed)
    day = np.repeat(np.arange(num_days), rng.integers(1, 5, num_days))
    hard = rng.normal(0, 0.3, num_days)[day] + rng.normal(0, 0.2, len(day))
    skill = np.linspace(0.2, 0.8, num_models)
    answered = rng.random((num_models, len(day))) < share
    answered[0] |= rng.random(len(day)) < 0.7  # one that connects the others
    model, question = np.nonzero(answered)
    noise = rng.normal(0, 0.2, len(model))
    score = skill[model] + hard[question] + noise
    columns = model.tolist(), question.tolist(), day[question].tolist(), score.tolist()
    return answers(list(zip(*columns, strict=True)))


def test_two_models_that_share_one_question() -> None:
    """a = (1/2, -1/2) from the shared question; b = 1/2, 1/2, 3/2 with the mean 5/6."""
    fit = fit_scores(answers([(0, 0, 0, 1), (0, 1, 0, 1), (1, 1, 0, 0), (1, 2, 1, 1)]))
    assert fit.values == pytest.approx([4 / 3, 1 / 3])
    assert fit.effects == pytest.approx([1 / 2, -1 / 2])
    assert (fit.guess, fit.num_days.tolist()) == (0.5, [1, 2])


def test_models_that_answered_all_have_their_own_means() -> None:
    score = np.random.default_rng(1).random((3, 20))
    days = np.arange(20)
    fit = fit_scores(Scores(score.T, days, days, np.zeros(20)))
    assert fit.values == pytest.approx(score.mean(axis=1))
    assert fit.errors == pytest.approx(stats.sem(score, axis=1))  # a day for each question


@pytest.mark.parametrize("seed", range(6))
def test_least_squares_with_all_columns_agrees(seed: int) -> None:
    scores = world(seed)
    fit = fit_scores(scores)
    assert fit.values == pytest.approx(plain(scores), abs=1e-9)
    days = np.unique(scores.days)
    models = np.arange(5)
    without = np.array([plain(scores.take(scores.days != day, models)) for day in days])
    squares = ((without - fit.values) ** 2).sum(axis=0) * (len(days) - 1) / len(days)
    assert fit.errors == pytest.approx(np.sqrt(squares), rel=1e-6)
    assert fit.reasons == (None,) * 5


def test_easy_questions_make_no_model_better() -> None:
    """Model 1 answers easy questions, 2 hard ones, 0 all; all are equally good."""
    pairs = []
    for question in range(40):
        score = 0.9 if question % 2 else 0.1
        pairs += [
            (0, question, question, score),
            (1 + (question + 1) % 2, question, question, score),
        ]
    fit = fit_scores(answers(pairs))
    assert fit.values == pytest.approx([0.5, 0.5, 0.5])


def test_links_are_followed_over_several_models() -> None:
    links = np.zeros((6, 6))
    for one, other in ((0, 3), (3, 5), (1, 4)):
        links[one, other] = links[other, one] = 1
    assert connected_models(links).tolist() == [0, 1, 2, 0, 1, 0]


def chain(day_of_link: list[int]) -> Scores:
    """Return models 0 and 1 with ten days each, and common questions on the given days."""
    rng = np.random.default_rng(4)
    pairs = [(0, n, n, float(rng.random())) for n in range(10)]
    pairs += [(1, 20 + n, n, float(rng.random())) for n in range(10)]
    for number, day in enumerate(day_of_link):
        pairs += [(model, 40 + number, day, float(rng.random())) for model in (0, 1)]
    return answers(pairs)


def test_what_hangs_on_one_day_has_no_interval() -> None:
    assert fit_scores(chain([3, 3, 3])).reasons == (ONE_LINK, ONE_LINK)
    assert fit_scores(chain([3, 4])).reasons == (None, None)


def test_few_days_and_equal_days_have_no_interval() -> None:
    days = range(MIN_DAYS)
    few = fit_scores(answers([(m, d, d % 4, m + d) for d in days for m in (0, 1)]))
    told = "no interval: 4 days of resolution; 5 are needed"
    assert few.reasons == (told, told) and np.isnan(few.errors).all()
    alike = fit_scores(answers([(m, d, d, m) for d in days for m in (0, 1)]))
    assert alike.reasons == (ALIKE, ALIKE) and alike.values == pytest.approx([0, 1])


def drawn(seed: int) -> Iterator[tuple[Scores, Floats]]:
    for number in range(seed, seed + 120):
        scores = world(number, num_models=4, num_days=25, share=0.5)
        yield scores, np.linspace(0.2, 0.8, 4)


@pytest.mark.long
def test_the_interval_over_days_holds_the_truth() -> None:
    """Questions of a day are alike, so that an interval over questions would be too narrow."""
    held = []
    for scores, truth in drawn(1_000):
        fit = fit_scores(scores)
        half = stats.t.ppf(0.975, fit.num_days - 1) * fit.errors
        held.append(np.abs(fit.values - truth) <= half)
    assert 0.92 <= np.mean(held) <= 0.98


@pytest.mark.parametrize("num_models", [3, 6, 12])
def test_the_interval_of_a_difficulty_holds_it(num_models: int) -> None:
    """Answers are right or wrong; many questions are answered rightly by all models."""
    held = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        hard = 0.6 + rng.normal(0, 0.2, 100)
        skill = rng.uniform(-0.15, 0.15, num_models)
        chance = np.clip(hard[:, None] + skill, 0.02, 0.98)
        right = (rng.random(chance.shape) < chance).astype(float)
        right[rng.random(chance.shape) < 0.1] = np.nan
        asked = ~np.isnan(right).all(axis=1)
        days = np.arange(asked.sum()) % 20
        scores = Scores(right[asked], np.arange(len(days)), days, np.full(len(days), 0.5))
        rows = list(difficulties(scores, fit_scores(scores)))
        for row, truth in zip(rows, chance[asked].mean(axis=1), strict=True):
            if row["difficulty_error"] is not None:
                half = stats.t.ppf(0.975, row["degrees_of_freedom"]) * row["difficulty_error"]
                held.append(abs(row["difficulty"] - truth) <= half)
    assert len(held) > 1_000
    assert 0.93 <= np.mean(held) <= 0.97


def test_a_difficulty_without_spread_has_no_interval() -> None:
    exact = answers([(m, d, d, m + d) for d in range(6) for m in range(3)])
    rows = list(difficulties(exact, fit_scores(exact)))
    assert [row["difficulty_error"] for row in rows] == [None] * 6
    assert [row["difficulty"] for row in rows] == pytest.approx([1, 2, 3, 4, 5, 6])
