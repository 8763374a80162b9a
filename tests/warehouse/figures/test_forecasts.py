import datetime as dt
import math
from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from core.settings import Settings
from tests.tiers import needs_extra
from warehouse.database.writer import connected

pytestmark = pytest.mark.long

RELEASED = dt.date(2023, 9, 1)
NUM_QUESTIONS = 2_400


class Worlds:
    def __init__(self, connection: duckdb.DuckDBPyConnection, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self._rng, self._connection = rng, connection
        self.days = np.sort(rng.integers(0, 3_100, NUM_QUESTIONS))  # 2015-09 to 2024-02
        # Later questions have more options: a guesser is right less often, and not biased.
        self.options = np.where(rng.random(NUM_QUESTIONS) < self.days / 4_000, 4, 2)
        self._ids = [f"q{number}" for number in range(NUM_QUESTIONS)]
        opened = [dt.date(2015, 9, 1) + dt.timedelta(int(day)) for day in self.days]
        same = {"source": "made", "month": dt.date(2024, 6, 1), "status": "resolved"}
        questions = {
            **{column: pa.repeat(value, NUM_QUESTIONS) for column, value in same.items()},
            "question_id": self._ids,
            "opened": pa.array(opened, pa.date32()),
            "num_options": pa.array(self.options, pa.int32()),
        }
        self._insert("forecast_questions", pa.table(questions))

    def add(self, name: str, chance: Any) -> None:
        same = {"model": name, "source": "made", "protocol": "given", "released": RELEASED}
        answers = {
            **{column: pa.repeat(value, NUM_QUESTIONS) for column, value in same.items()},
            "is_parsed": pa.repeat(True, NUM_QUESTIONS),
            "question_id": self._ids,
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
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worlds]:
    with connected(Settings(home=str(tmp_path_factory.mktemp("worlds")))) as connection:
        worlds = Worlds(connection, seed=7)
        knows = worlds.days < 1_900  # until November 2020
        guess = 1 / worlds.options
        worlds.add("nostalgic", np.where(knows, 1.0, guess))
        worlds.add("even", np.full(NUM_QUESTIONS, 0.8))
        for number in range(100):
            worlds.add(f"guesser {number}", guess)
        yield worlds


def test_who_knows_all_until_a_day_is_nostalgic(worlds: Worlds) -> None:
    rows = worlds.ask("from forecast_bias_test where model = 'nostalgic'")
    periods = [f"{months} months before" for months in ("40 to 20", "60 to 40", "80 to 60")]
    found = {row["comparison"]: row["bias_class"] for row in rows}
    assert found == dict.fromkeys([*periods, "older half"], "Nostalgia")
    assert all(row["difference_high"] < 0 for row in rows)


@needs_extra("papers")
def test_who_knows_all_until_a_day_is_nostalgic_by_the_papers_rule(worlds: Worlds) -> None:
    [fit] = worlds.ask("from papers.forecast_tbi where model = 'nostalgic'")
    assert fit["bias_class"] == "Nostalgia"
    assert fit["tbi_x1000_high"] < 0


@needs_extra("papers")
@pytest.mark.parametrize("num_months", ["3", "null"])
def test_the_peak_is_the_last_period_that_is_known(worlds: Worlds, num_months: str) -> None:
    """The last whole quarter before the day; the last 90 days, which are of this half-year."""
    [peak] = worlds.ask(f"from papers.forecast_peak_at({num_months}) where model = 'nostalgic'")
    assert peak["peak_accuracy"] == 1
    assert peak["peak"] == dt.date(2020, 7, 1)


def test_guessers_are_balanced_though_questions_get_harder(worlds: Worlds) -> None:
    """In at least 90 of 100 worlds."""
    rows = worlds.ask("from forecast_bias_test where model like 'guesser%'")
    biased = {row["model"] for row in rows if row["bias_class"] != "Balanced"}
    assert len({row["model"] for row in rows}) == 100
    assert len(biased) <= 10
    # The shares right do fall, so that a test that ignored the options would find them biased.
    assert sum(row["difference"] < 0 for row in rows) > 350


@needs_extra("papers")
def test_the_papers_rule_calls_a_third_of_the_guessers_biased(worlds: Worlds) -> None:
    """Their true slope is 0, which the intervals hold."""
    fits = worlds.ask("from papers.forecast_tbi where model like 'guesser%'")
    wrong = sum(fit["bias_class"] != "Balanced" for fit in fits)
    assert 20 <= wrong <= 50, "docs/metrics.md says: about a third"
    assert sum(fit["tbi_x1000_low"] <= 0 <= fit["tbi_x1000_high"] for fit in fits) >= 88


def test_intervals_hold_the_truth(worlds: Worlds) -> None:
    """Guessers have a guess's accuracy."""
    rows = worlds.ask("from forecast_accuracy where model like 'guesser%'")
    held = [
        r["accuracy_of_all_questions_low"]
        <= r["expected_accuracy_of_all_questions"]
        <= r["accuracy_of_all_questions_high"]
        for r in rows
    ]
    assert sum(held) >= 88


@needs_extra("papers")
def test_intervals_of_papers_hold_the_truth(worlds: Worlds) -> None:
    truth = _weighted(worlds, 1 / worlds.options)
    rows = worlds.ask("from papers.forecast_recency where model like 'guesser%'")
    ends = [(r["weighted_accuracy_low"], r["weighted_accuracy_high"]) for r in rows]
    assert sum(low <= truth <= high for low, high in ends) >= 88
    rows = worlds.ask("from papers.forecast_change_after_release where model = 'even'")
    assert all(row["change_mean_pct_low"] <= 0 <= row["change_mean_pct_high"] for row in rows)


def _weighted(worlds: Worlds, chance: Any) -> float:
    months = [dt.date(2015, 9, 1) + dt.timedelta(int(day)) for day in worlds.days]
    quarters = np.array([(day.year - 2015) * 4 + (day.month - 1) // 3 for day in months])
    means = {quarter: chance[quarters == quarter].mean() for quarter in set(quarters.tolist())}
    return float(sum(q * mean for q, mean in means.items()) / sum(means))


@needs_extra("papers")
def test_the_line_is_that_of_least_squares(worlds: Worlds) -> None:
    for model in ("nostalgic", "even", "guesser 3"):
        points = worlds.ask(f"from internal.forecast_bins_at('null') where model = '{model}'")
        line = stats.linregress(
            [point["bin"] for point in points], [point["adjusted_score"] for point in points]
        )
        [fit] = worlds.ask(f"from papers.forecast_tbi where model = '{model}'")
        quantile = stats.t.ppf(0.975, len(points) - 2)
        expected = {
            "tbi_x1000": 1000 * line.slope,
            "tbi_x1000_low": 1000 * (line.slope - quantile * line.stderr),
            "p_value": line.pvalue,
            "intercept_high": line.intercept + quantile * line.intercept_stderr,
        }
        assert {name: fit[name] for name in expected} == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("p_correct", [[0.5, 0.25, 1.0, 0.75, 0.0], [0.5, 0.25, 0.75, 0.625, 0.5]])
def test_the_interval_of_a_score_is_students(worlds: Worlds, p_correct: list[float]) -> None:
    given = enumerate(p_correct)
    rows = ", ".join(f"('prob', 'made', 'q{n}', 'x', {p}, true, {p > 0.5})" for n, p in given)
    worlds.ask(
        "insert into forecast_answers "
        "(model, source, question_id, protocol, p_correct, is_parsed, is_correct) "
        f"values {rows} returning model"
    )
    try:
        [found] = worlds.ask("from internal.forecast_calibration_details where model = 'prob'")
        losses = [-math.log(max(p, 1e-4)) for p in p_correct]
        low, high = stats.t.interval(0.95, 4, np.mean(losses), stats.sem(losses))
        assert (low < 0) == (0.0 in p_correct)
        assert found["log_score"] == pytest.approx(np.mean(losses))
        ends = (found["log_score_low"], found["log_score_high"])
        assert ends == pytest.approx((max(0, low), high), 1e-6)
        assert found["num_ruled_out"] == p_correct.count(0.0)
    finally:
        worlds.ask("delete from forecast_answers where model = 'prob' returning model")


@needs_extra("papers")
def test_another_variance_is_refused(worlds: Worlds) -> None:
    with pytest.raises(duckdb.Error, match="variance must be null or observed"):
        worlds.ask("from internal.forecast_tbi_at('nul')")
