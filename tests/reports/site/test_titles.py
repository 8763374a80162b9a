"""Titles in planted worlds: without an effect they seldom name one, and with one they do."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from core.month import Month
from reports.site import answer_findings as answers
from reports.site import cutoff_findings, findings
from reports.site.build import opened_site
from reports.site.pages import compare, model, overview
from reports.site.pages import source as source_pages
from tests.reports.curves import step
from warehouse.database.schema import list_macros, list_views, read_sql

NUM_WORLDS = 500
# 5 % of the worlds, and three standard errors
MOST_WRONG = NUM_WORLDS * 0.05 + 3 * math.sqrt(NUM_WORLDS * 0.05 * 0.95)
QUERIES = Path(findings.__file__).parent / "queries"
CUTOFFS = dict(zip("abcde", ("2024-12", "2024-06", "2024-09", "2025-03", "2025-06"), strict=True))
Row = dict[str, Any]
World = Callable[[np.random.Generator, bool], list[Row]]


def _p_values(dice: np.random.Generator, num: int, has_effect: bool) -> list[float]:
    """Two-sided p-values of ``num`` tests; with an effect of five standard errors in the first."""
    z = np.abs(dice.standard_normal(num) + 5.0 * has_effect * (np.arange(num) == 0))
    return [math.erfc(each / math.sqrt(2)) for each in z]


def _q_values(p_values: Sequence[float]) -> list[float]:
    order = sorted(range(len(p_values)), key=lambda i: -p_values[i])
    q_values, least = [0.0] * len(p_values), 1.0
    for place, i in enumerate(order):
        least = min(least, p_values[i] * len(p_values) / (len(p_values) - place))
        q_values[i] = least
    return q_values


def _holm(p_values: Sequence[float]) -> list[float]:
    adjusted, greatest = [0.0] * len(p_values), 0.0
    for place, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        greatest = max(greatest, min(1.0, p_values[i] * (len(p_values) - place)))
        adjusted[i] = greatest
    return adjusted


def _gaps(num: int, dice: np.random.Generator, has_effect: bool) -> list[Row]:
    q_values = _q_values(_p_values(dice, num, has_effect))
    signs = [1, *dice.choice([-1, 1], num - 1)] if has_effect else dice.choice([-1, 1], num)
    return [
        {"model": f"m{i}", "source": f"s{i}", "adjusted_gap": sign, "gap_q_value": q,
         "bits_per_byte_gap": sign, "q_value": q, "is_suspected": sign < 0 and q <= 0.05}
        for i, (sign, q) in enumerate(zip(signs, q_values, strict=True))
    ]  # fmt: skip


def _suspects(num: int, dice: np.random.Generator, has_effect: bool) -> list[Row]:
    q_values = _q_values(_p_values(dice, num, has_effect))
    return [{"is_suspected": q <= 0.05} for q in q_values]


def _pairs(num: int, dice: np.random.Generator, has_effect: bool) -> list[Row]:
    return [{"p_value_adjusted": p} for p in _holm(_p_values(dice, num, has_effect))]


def _last_months(num: int, dice: np.random.Generator, has_effect: bool) -> list[Row]:
    """The last month of each source."""
    p_values = _p_values(dice, num, has_effect)
    return [{"month": "2024-06-01", "difficulty": dice.choice([-1, 1]), "p_value": p}
            for p in p_values]  # fmt: skip


def _cutoffs(num: int, dice: np.random.Generator, has_effect: bool) -> list[Row]:
    """Steps by one standard deviation after month 100, dated as in Hansen 2000, at known levels.

    ``lost`` is how much worse each month fits than the best one. With an effect, the first model's
    maker states a month four years too early.
    """
    months = np.arange(-100, 101)
    noise = np.cumsum(dice.standard_normal((num, 2, 100)), axis=2)
    noise = np.concatenate([noise[:, 0, ::-1], np.zeros((num, 1)), noise[:, 1]], axis=1)
    fits = 2 * noise - np.abs(months)
    rows = []
    for i, lost in enumerate(fits.max(axis=1, keepdims=True) - fits):
        inside = months[lost <= 7.35]
        found = {"estimated_cutoff_low": inside[0], "estimated_cutoff_high": inside[-1],
                 "stated_cutoff": -48 * (has_effect and i == 0)}  # fmt: skip
        rows.append({key: (Month("2020-01") + int(each)).first_day for key, each in found.items()})
    return rows


def _classes(dice: np.random.Generator, has_effect: bool) -> list[Row]:
    """Return classes of bytes; as the view does, without shares where the whole may be 0."""
    halves = np.array([1.96, 1.0, 1.0])
    parts = dice.standard_normal(3) * halves / 1.96 + 8.0 * has_effect * (np.arange(3) == 0)
    is_told = abs(parts.sum()) > math.sqrt((halves**2).sum())
    names = ("names", "words", "numbers")
    return [
        {
            "label": name,
            "share_of_gap": part / parts.sum() if is_told else None,
            "share_of_gap_low": (part - half) / parts.sum() if is_told else None,
            "share_of_gap_high": (part + half) / parts.sum() if is_told else None,
        }
        for name, part, half in zip(names, parts, halves, strict=True)
    ]


def _titles_of_site(find: Callable[[Row, int], str]) -> Callable[[list[Row]], str]:
    """Return a function that joins the titles of a site with a page per row."""
    return lambda rows: " | ".join(find(row, len(rows)) for row in rows)


def _scores(num: int, dice: np.random.Generator, has_effect: bool) -> list[Row]:
    p_values = _p_values(dice, num, has_effect)
    return [{"level": "all", "score_low": dice.choice([-1, 1]) + 2 * has_effect, "p_value": p}
            for p in p_values]  # fmt: skip


def _valleys(num: int, dice: np.random.Generator, has_effect: bool) -> list[Row]:
    return [
        {"status": "found", "joint_p_value": p, "model": f"m{i}", "protocol": "cot",
         "level": 1 + i % 5, "is_critical": True}
        for i, p in enumerate(_p_values(dice, num, has_effect))
    ]  # fmt: skip


def _biases(num: int, dice: np.random.Generator, has_effect: bool) -> list[Row]:
    p_values = _holm(_p_values(dice, num, has_effect))
    return [
        {"model": f"m{i}", "tested_class": "Nostalgia", "p_adjusted": p}
        for i, p in enumerate(p_values)
    ]


CASES: dict[str, tuple[Callable[[list[Row]], str], str, World]] = {
    **{f"ageing, {n} models": (partial(findings.ageing_finding, reasons=[]), "later text worse",
                               partial(_gaps, n))
       for n in (2, 5, 20)},
    "gap by source": (findings.sources_finding, "Worse after", partial(_gaps, 8)),
    "gap on a source": (
        lambda rows: findings.source_finding(rows, "code"), "worse after", partial(_gaps, 8)
    ),
    "pairs": (findings.neighbours_finding, "apart", partial(_pairs, 9)),
    "contamination": (findings.contamination_finding, "predicted better", partial(_suspects, 50)),
    "classes of bytes": (findings.classes_finding, "is in names", _classes),
    "difficulty": (
        _titles_of_site(lambda row, num: findings.difficulty_finding([row], num)),
        "than the average", partial(_last_months, 8),
    ),
    **{f"cutoffs of {n} models": (
        _titles_of_site(cutoff_findings.cutoff_finding), "than the stated", partial(_cutoffs, n)
    ) for n in (1, 12)},
    "puzzles of models": (
        _titles_of_site(lambda row, num: answers.puzzle_finding([row], num)),
        "Scores above zero", partial(_scores, 40),
    ),
    "gap of puzzles": (answers.valley_finding, "are worse", partial(_valleys, 6)),
    "level of the gap": (
        lambda rows: answers.levels_finding(rows, rows), "largest", partial(_valleys, 6)
    ),
    "bias over time": (answers.bias_finding, "are answered worse", partial(_biases, 6)),
}  # fmt: skip
_DENIALS = ("No ", "On no ", "A score above zero on inputs of others is not")


def _claims(title: str, claim: str) -> bool:
    return claim in title and not title.startswith(_DENIALS)


@pytest.mark.parametrize("case", CASES)
def test_a_title_seldom_names_an_effect_where_there_is_none(case: str) -> None:
    find, claim, world = CASES[case]
    dice = np.random.default_rng(0)
    titles = [find(world(dice, False)) for _ in range(NUM_WORLDS)]
    assert sum(_claims(title, claim) for title in titles) <= MOST_WRONG


@pytest.mark.parametrize("case", CASES)
def test_a_title_names_an_effect_that_is_there(case: str) -> None:
    find, claim, world = CASES[case]
    dice = np.random.default_rng(0)
    titles = [find(world(dice, True)) for _ in range(100)]
    assert sum(_claims(title, claim) for title in titles) >= 80


@pytest.fixture(scope="module")
def database() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    for name in list_macros():
        connection.execute(read_sql("macros", name))
    return connection


def _titles(
    database: duckdb.DuckDBPyConnection, query: str, find: Callable[[list[Row]], str], world: str
) -> list[str]:
    """Return a title per world, which is a part of a text column's values."""
    sql = (QUERIES / f"{query}.sql").read_text().replace("$protocol", "'default'")
    rows = database.sql(f"select *, split_part({world}, '/', 1) as world from ({sql})").pl()
    return [find(each.to_dicts()) for each in rows.partition_by("world")]


def _plant(database: duckdb.DuckDBPyConnection, name: str, rows: pl.DataFrame) -> None:
    database.register("planted", rows)
    database.execute(f"create or replace table {name} as from planted")


def _forecasts(database: duckdb.DuckDBPyConnection, chance: float, num: int, right: float) -> None:
    """Plant the forecasts of six models in each world."""
    dice = np.random.default_rng(0)
    counts = dice.binomial(num, right, 6 * NUM_WORLDS)
    planted = pl.DataFrame({
        "model": [f"m{i % 6}" for i in range(len(counts))],
        "source": [f"{i // 6}/" for i in range(len(counts))],
        "accuracy": counts / num,
    }).with_columns(  # fmt: skip
        protocol=pl.lit("p"), num_questions=num, num_all_questions=num, num_unparsed=0,
        accuracy_of_all_questions="accuracy", expected_accuracy=chance,
        expected_accuracy_of_all_questions=chance, reason=pl.lit(None, pl.String),
        **{name: 0.0 for name in ("accuracy_low", "accuracy_high", "accuracy_of_all_questions_low",
                                  "accuracy_of_all_questions_high")},
    )  # fmt: skip
    _plant(database, "forecast_accuracy", planted)


@pytest.mark.parametrize(
    ("query", "find", "no_claim"),
    [("forecasts_board", answers.board_of_forecasts_finding, "No model forecasts better"),
     ("model_forecasts", lambda rows: answers.forecast_finding(rows, len(rows)),
      "Forecasts no better")],
)  # fmt: skip
def test_guessing_is_seldom_called_forecasting(
    database: duckdb.DuckDBPyConnection, query: str, find: Callable[[list[Row]], str], no_claim: str
) -> None:
    def wrong(chance: float, num: int, right: float) -> int:
        _forecasts(database, chance, num, right)
        titles = _titles(database, query, find, "source")
        return sum(not title.startswith(no_claim) for title in titles)

    assert wrong(0.5, 8, 0.5) <= MOST_WRONG
    assert wrong(0.1, 2, 0.1) <= MOST_WRONG
    assert wrong(0.5, 400, 0.2) == 0  # far worse than guessing
    assert wrong(0.5, 400, 0.7) == NUM_WORLDS


def test_the_title_of_adjusted_shares_counts_intervals_above_guessing() -> None:
    def row(model: str, low: float, days: int = 0) -> Row:
        return {"model": model, "adjusted_accuracy_low": low, "expected_accuracy": 0.5,
                "min_days_before_close": days}  # fmt: skip

    found = answers.adjusted_finding([row("a", 0.6), row("b", 0.5), row("c", 0.4), row("d", 1, 30)])
    assert found == "On all questions, the interval of 1 of 3 models would be above guessing"
    assert answers.adjusted_finding([row("a", 0.5)]).startswith("No model would be above guessing")


def test_a_model_that_refuses_all_has_no_verdict() -> None:
    silent = {"model": "m", "source": "s", "num_all_questions": 9, "num_unparsed": 9,
              "p_value": 1.0, "p_adjusted": None, "tested_class": "No answers"}  # fmt: skip
    finders = (
        lambda rows: answers.forecast_finding(rows, 1),
        answers.board_of_forecasts_finding,
        answers.bias_finding,
    )
    assert not [find([silent]) for find in finders if "answer" not in find([silent])]


def _answers(database: duckdb.DuckDBPyConnection, excess: float, num: int = 30) -> None:
    """Plant answers of four models with four options each; the first place gets ``excess``."""
    dice = np.random.default_rng(0)
    given = dice.dirichlet([2.0] * 4, 4 * num * NUM_WORLDS) * (1 - excess)
    given[:, 0] += excess
    number = np.arange(len(given))
    planted = pl.DataFrame({
        "model": [f"m{i % 4}" for i in number],
        "source": [f"{i // (4 * num)}/" for i in number],
        "place_probabilities": given.tolist(),
    }).with_columns(protocol=pl.lit("letter-rotated"))  # fmt: skip
    _plant(database, "forecast_answers", planted)
    database.execute(list_views()["forecast_position_bias"].read_text())


@pytest.mark.long
def test_a_place_is_seldom_called_preferred_where_none_is(
    database: duckdb.DuckDBPyConnection,
) -> None:
    def claims(excess: float, num: int = 30, claim: str = "models prefer a place") -> int:
        _answers(database, excess, num)
        find = answers.positions_finding
        titles = _titles(database, "forecasts_positions", find, "source")
        return sum(claim in title for title in titles)

    assert claims(0.0) <= MOST_WRONG
    assert claims(0.3) == NUM_WORLDS
    assert claims(0.3, 29, "is not tested") == NUM_WORLDS


@pytest.mark.long
@pytest.mark.parametrize("effect", [pytest.param(0.0, marks=pytest.mark.slow), 0.5])
def test_titles_of_a_published_world(publish_figures: Any, effect: float) -> None:
    """Five equal models; or one that is best, and that is worse after its cutoff."""
    dice = random.Random(0)
    figures = {}
    for name, cutoff in CUTOFFS.items():
        is_best = effect * (name == "a")
        for source in ("news", "code"):
            before, after = 2.0 - is_best, 2.0 - 0.5 * is_best
            planted = step(name, source, cutoff, before, after, 32)
            figures |= {key: bits + dice.gauss(0, 0.02) for key, bits in planted.items()}
    settings = publish_figures(figures, CUTOFFS)
    with opened_site(settings) as site:
        modules = (overview, compare, model, source_pages)
        pages = [page for module in modules for page in module.make_pages(site)]
        titles = {figure.name: figure.title for page in pages for figure in page.figures}
        assert not site.failures
    claims = {
        "board": titles["board"] == "a predicts these months best",
        "over-time": titles["over-time"].endswith("later text worse"),
        "neighbours": not titles["neighbours"].startswith("No two"),
        "sources": titles["model-a-sources"].startswith("Worse after the cutoff on"),
        "source": titles["source-code-models"].startswith("1 of 5 models"),
    }
    assert claims == dict.fromkeys(claims, effect > 0), titles
