"""Forecast views: the published figures, planted forecasters, guessers, and intervals."""

from __future__ import annotations

import csv
import datetime as dt
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from core.settings import Settings
from warehouse.foreign_answers import land_foreign_answers
from warehouse.objects import create_objects
from warehouse.publish import publish
from warehouse.query import query

PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "data" / "published"
RELEASED = dt.date(2023, 9, 1)
NUM_QUESTIONS = 2_400


@pytest.mark.skipif(not PUBLISHED.exists(), reason="needs ../shared/data/published")
def test_published_answers_give_the_printed_figures(settings: Settings, tmp_path: Path) -> None:
    """Tables 7 and 14, to the printed digits, by way of the file that a user would land."""
    with duckdb.connect() as connection:
        connection.execute(
            f"""
            copy (
                select model, release_date, question_id, opened, closed,
                    n_options_by_text as num_options, is_correct
                from '{PUBLISHED}/gjo_answers.csv'
                join '{PUBLISHED}/gjo_questions.csv' using (question_id, opened, closed)
            ) to '{tmp_path}/answers.csv'
            """
        )
    land_foreign_answers(settings, tmp_path / "answers.csv", "gjo")
    publish(settings)
    fits = _by(query(settings, "from forecast_tbi").to_pylist(), "model")
    with (PUBLISHED / "gjo_table7.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            fit = fits[_own_name(row["model"], fits)]
            assert f"{fit['tbi_x1000']:.2f}" == row["tbi_x1000_per_30d"]
            assert f"{fit['intercept']:.2f}" == row["intercept"]
            printed = "Symmetrical" if fit["bias_class"] == "Balanced" else fit["bias_class"]
            assert printed == row["bias_category"]
    scores = _by(query(settings, "from forecast_recency").to_pylist(), "model")
    with (PUBLISHED / "gjo_table14.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            score = scores[_own_name(row["model"], scores)]["recency_score"]
            assert score == float(row["score"])


def _by(rows: list[dict[str, Any]], key: str) -> dict[str, dict[str, Any]]:
    return {row[key]: row for row in rows}


def _own_name(printed: str, names: dict[str, Any]) -> str:
    """The paper spells a model in several ways."""

    def letters(name: str) -> str:
        return "".join(c for c in name.lower() if c.isalnum())

    [name] = [name for name in names if letters(name) == letters(printed)]
    return name


class Worlds:
    """One list of questions, and forecasters who are right with the probability given."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._rng, self._connection = rng, connection
        self.days = np.sort(rng.integers(0, 3_100, NUM_QUESTIONS))  # 2015-09 to 2024-02
        # Later questions have more options: a guesser is right less often, and not biased.
        self.options = np.where(rng.random(NUM_QUESTIONS) < self.days / 4_000, 4, 2)
        self._ids = [f"q{number}" for number in range(NUM_QUESTIONS)]
        opened = [dt.date(2015, 9, 1) + dt.timedelta(int(day)) for day in self.days]
        questions = pa.table(
            {
                "source": ["made"] * NUM_QUESTIONS,
                "question_id": self._ids,
                "month": pa.array([dt.date(2024, 6, 1)] * NUM_QUESTIONS, pa.date32()),
                "opened": pa.array(opened, pa.date32()),
                "num_options": pa.array(self.options, pa.int32()),
                "status": ["resolved"] * NUM_QUESTIONS,
            }
        )
        self._insert("forecast_questions", questions)

    def add(self, name: str, chance: Any) -> None:
        """Add a forecaster; ``chance`` of being right by question."""
        answers = {
            "model": [name] * NUM_QUESTIONS,
            "source": ["made"] * NUM_QUESTIONS,
            "question_id": self._ids,
            "protocol": ["given"] * NUM_QUESTIONS,
            "released": pa.array([RELEASED] * NUM_QUESTIONS, pa.date32()),
            "is_parsed": [True] * NUM_QUESTIONS,
            "is_correct": self._rng.random(NUM_QUESTIONS) < chance,
        }
        self._insert("forecast_answers", pa.table(answers))

    def ask(self, text: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self._connection.sql(text).to_arrow_table().to_pylist()
        return rows

    def _insert(self, table: str, rows: pa.Table) -> None:
        self._connection.register("rows", rows)
        self._connection.execute(f"insert into {table} by name select * from rows")
        self._connection.unregister("rows")


@pytest.fixture(scope="module")
def worlds() -> Iterator[Worlds]:
    with duckdb.connect() as connection:
        create_objects(connection)
        worlds = Worlds(connection, seed=7)
        knows = worlds.days < 1_900  # until November 2020
        guess = 1 / worlds.options
        worlds.add("nostalgic", np.where(knows, 1.0, guess))
        worlds.add("neophile", np.where(knows, guess, 0.9))
        worlds.add("even", np.full(NUM_QUESTIONS, 0.8))
        for number in range(100):
            worlds.add(f"guesser {number}", guess)
        yield worlds


def test_who_knows_all_until_a_day_is_nostalgic(worlds: Worlds) -> None:
    [fit] = worlds.ask("from forecast_tbi where model = 'nostalgic'")
    assert fit["bias_class"] == "Nostalgia"
    assert fit["tbi_x1000_high"] < 0
    [peak] = worlds.ask("from forecast_peak where model = 'nostalgic'")
    assert peak["peak_accuracy"] == 1
    assert peak["peak"] == dt.date(2020, 7, 1), "the last whole quarter before the day"
    rows = worlds.ask("from forecast_bias_test where model = 'nostalgic'")
    assert {row["comparison"]: row["bias_class"] for row in rows} == dict.fromkeys(
        [
            "40 to 20 months before", "60 to 40 months before", "80 to 60 months before",
            "older half",
        ],
        "Nostalgia",
    )  # fmt: skip
    assert all(row["difference_high"] < 0 for row in rows)


def test_who_knows_what_is_new_is_a_neophile(worlds: Worlds) -> None:
    [fit] = worlds.ask("from forecast_tbi where model = 'neophile'")
    assert fit["bias_class"] == "Neophilia"
    assert fit["tbi_x1000_low"] > 0
    [peak] = worlds.ask("from forecast_peak where model = 'neophile'")
    assert peak["peak"] >= dt.date(2020, 10, 1)
    rows = worlds.ask("from forecast_bias_test where model = 'neophile'")
    assert "Neophilia" in {row["bias_class"] for row in rows if row["comparison"] == "older half"}
    assert "Nostalgia" not in {row["bias_class"] for row in rows}


def test_guessers_are_balanced_though_questions_get_harder(worlds: Worlds) -> None:
    """In at least 90 of 100 worlds by the test; by the paper's rule in about two of three."""
    rows = worlds.ask("from forecast_bias_test where model like 'guesser%'")
    biased = {row["model"] for row in rows if row["bias_class"] != "Balanced"}
    assert len({row["model"] for row in rows}) == 100
    assert len(biased) <= 10
    fits = worlds.ask("from forecast_tbi where model like 'guesser%'")
    wrong = sum(fit["bias_class"] != "Balanced" for fit in fits)
    assert 20 <= wrong <= 50, "docs/metrics.md says: about a third"
    # The shares right do fall, so that a test that ignored the options would find them biased.
    assert sum(row["difference"] < 0 for row in rows) > 350


def test_intervals_hold_the_truth(worlds: Worlds) -> None:
    """Guessers' true slope is 0 and their true accuracy that of a guess."""
    fits = worlds.ask("from forecast_tbi where model like 'guesser%'")
    assert sum(fit["tbi_x1000_low"] <= 0 <= fit["tbi_x1000_high"] for fit in fits) >= 88
    rows = worlds.ask("from forecast_accuracy where model like 'guesser%'")
    held = [r["accuracy_low"] <= r["expected_accuracy"] <= r["accuracy_high"] for r in rows]
    assert sum(held) >= 88
    truth = _weighted(worlds, 1 / worlds.options)
    rows = worlds.ask("from forecast_recency where model like 'guesser%'")
    ends = [(r["weighted_accuracy_low"], r["weighted_accuracy_high"]) for r in rows]
    assert sum(low <= truth <= high for low, high in ends) >= 88
    rows = worlds.ask("from forecast_change_after_release where model = 'even'")
    assert all(row["change_mean_pct_low"] <= 0 <= row["change_mean_pct_high"] for row in rows)


def _weighted(worlds: Worlds, chance: Any) -> float:
    """The weighted accuracy of a forecaster who is right as often as expected."""
    months = [dt.date(2015, 9, 1) + dt.timedelta(int(day)) for day in worlds.days]
    quarters = np.array([(day.year - 2015) * 4 + (day.month - 1) // 3 for day in months])
    means = {quarter: chance[quarters == quarter].mean() for quarter in set(quarters.tolist())}
    return float(sum(q * mean for q, mean in means.items()) / sum(means))


def test_the_line_is_that_of_least_squares(worlds: Worlds) -> None:
    for model in ("nostalgic", "even", "guesser 3"):
        points = worlds.ask(f"from forecast_bins_at('null') where model = '{model}'")
        line = stats.linregress(
            [point["bin"] for point in points], [point["adjusted_score"] for point in points]
        )
        [fit] = worlds.ask(f"from forecast_tbi where model = '{model}'")
        quantile = stats.t.ppf(0.975, len(points) - 2)
        assert fit["tbi_x1000"] == pytest.approx(1000 * line.slope)
        assert fit["tbi_x1000_low"] == pytest.approx(
            1000 * (line.slope - quantile * line.stderr), rel=1e-6
        )
        assert fit["p_value"] == pytest.approx(line.pvalue, rel=1e-6)
        assert fit["intercept_high"] == pytest.approx(
            line.intercept + quantile * line.intercept_stderr, rel=1e-6
        )


@pytest.mark.parametrize("p_correct", [[0.5, 0.25, 1.0, 0.75, 0.0], [0.5, 0.25, 0.75, 0.625, 0.5]])
def test_the_interval_of_a_score_is_students(worlds: Worlds, p_correct: list[float]) -> None:
    """And within what a score can be."""
    given = enumerate(p_correct)
    rows = ", ".join(f"('prob', 'made', 'q{n}', 'x', {p}, true, {p > 0.5})" for n, p in given)
    worlds.ask(
        "insert into forecast_answers "
        "(model, source, question_id, protocol, p_correct, is_parsed, is_correct) "
        f"values {rows} returning model"
    )
    try:
        [found] = worlds.ask("from forecast_calibration where model = 'prob'")
        losses = [-math.log(max(p, 1e-4)) for p in p_correct]
        low, high = stats.t.interval(0.95, 4, np.mean(losses), stats.sem(losses))
        assert (low < 0) == (0.0 in p_correct)
        assert found["log_score"] == pytest.approx(np.mean(losses))
        ends = (found["log_score_low"], found["log_score_high"])
        assert ends == pytest.approx((max(0, low), high), 1e-6)
        assert found["num_ruled_out"] == p_correct.count(0.0)
    finally:
        worlds.ask("delete from forecast_answers where model = 'prob' returning model")


def test_another_variance_is_refused(worlds: Worlds) -> None:
    with pytest.raises(duckdb.Error, match="variance must be null or observed"):
        worlds.ask("from forecast_tbi_at('nul')")
