"""Adjusted scores of forecasts, against least squares with a column for each model and question."""

from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats

from warehouse.estimates.questions import (
    ALIKE,
    FEW_DAYS,
    MIN_DAYS,
    ONE_LINK,
    Answers,
    Floats,
    Whole,
    connected_models,
    fit_scores,
)


def answers(pairs: list[tuple[int, int, int, float]]) -> Answers:
    model, question, day, score = (np.array(column) for column in zip(*pairs, strict=True))
    return Answers(model, question, day, score.astype(float), np.full(len(model), 0.5))


def plain(pairs: Answers, num_models: int) -> Floats:
    """Return theta by numpy's least squares on columns of zeros and ones."""
    names, question = np.unique(pairs.question, return_inverse=True)
    rows = np.arange(len(question))
    design = np.zeros((len(question), num_models + len(names)))
    design[rows, pairs.model] = 1
    design[rows, num_models + question] = 1
    found, *_ = np.linalg.lstsq(design, pairs.score, rcond=None)
    return np.asarray(found[:num_models] + found[num_models:].mean())


def world(seed: int, num_models: int = 5, num_days: int = 12, share: float = 0.6) -> Answers:
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
    return Answers(model, question, day[question], score, np.full(len(model), 0.5))


def test_two_models_that_share_one_question() -> None:
    """a = (1/2, -1/2) from the shared question; b = 1/2, 1/2, 3/2 with the mean 5/6."""
    fit = fit_scores(answers([(0, 0, 0, 1), (0, 1, 0, 1), (1, 1, 0, 0), (1, 2, 1, 1)]), 2)
    assert fit.values == pytest.approx([4 / 3, 1 / 3])
    assert fit.effects == pytest.approx([1 / 2, -1 / 2])
    assert (fit.guess, fit.num_questions, fit.num_days.tolist()) == (0.5, 3, [1, 2])


def test_models_that_answered_all_have_their_own_means() -> None:
    score = np.random.default_rng(1).random((3, 20))
    model, question = np.nonzero(np.ones_like(score))
    fit = fit_scores(Answers(model, question, question, score.ravel(), 0 * score.ravel()), 3)
    assert fit.values == pytest.approx(score.mean(axis=1))
    assert fit.errors == pytest.approx(stats.sem(score, axis=1))  # a day for each question


@pytest.mark.parametrize("seed", range(6))
def test_least_squares_with_all_columns_agrees(seed: int) -> None:
    pairs = world(seed)
    fit = fit_scores(pairs, 5)
    assert fit.values == pytest.approx(plain(pairs, 5), abs=1e-9)
    days = np.unique(pairs.day)
    without = np.array([plain(pairs.take(pairs.day != day), 5) for day in days])
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
    fit = fit_scores(answers(pairs), 3)
    assert fit.values == pytest.approx([0.5, 0.5, 0.5])


def test_links_are_followed_over_several_models() -> None:
    links = np.zeros((6, 6))
    for one, other in ((0, 3), (3, 5), (1, 4)):
        links[one, other] = links[other, one] = 1
    assert connected_models(links).tolist() == [0, 1, 2, 0, 1, 0]


def chain(day_of_link: list[int]) -> Answers:
    """Return models 0 and 1 with ten days each, and common questions on the given days."""
    rng = np.random.default_rng(4)
    pairs = [(0, n, n, float(rng.random())) for n in range(10)]
    pairs += [(1, 20 + n, n, float(rng.random())) for n in range(10)]
    for number, day in enumerate(day_of_link):
        pairs += [(model, 40 + number, day, float(rng.random())) for model in (0, 1)]
    return answers(pairs)


def test_what_hangs_on_one_day_has_no_interval() -> None:
    assert fit_scores(chain([3, 3, 3]), 2).reasons == (ONE_LINK, ONE_LINK)
    assert fit_scores(chain([3, 4]), 2).reasons == (None, None)


def test_few_days_and_equal_days_have_no_interval() -> None:
    days = range(MIN_DAYS)
    few = fit_scores(answers([(m, d, d % 4, m + d) for d in days for m in (0, 1)]), 2)
    assert few.reasons == (FEW_DAYS, FEW_DAYS) and np.isnan(few.errors).all()
    alike = fit_scores(answers([(m, d, d, m) for d in days for m in (0, 1)]), 2)
    assert alike.reasons == (ALIKE, ALIKE) and alike.values == pytest.approx([0, 1])


def drawn(seed: int) -> Iterator[tuple[Answers, Whole]]:
    for number in range(seed, seed + 120):
        pairs = world(number, num_models=4, num_days=25, share=0.5)
        yield pairs, np.linspace(0.2, 0.8, 4)


@pytest.mark.long
def test_the_interval_over_days_holds_the_truth() -> None:
    """Questions of a day are alike, so that an interval over questions would be too narrow."""
    held = []
    for pairs, truth in drawn(1_000):
        fit = fit_scores(pairs, 4)
        half = stats.t.ppf(0.975, fit.num_days - 1) * fit.errors
        held.append(np.abs(fit.values - truth) <= half)
    assert 0.92 <= np.mean(held) <= 0.98
