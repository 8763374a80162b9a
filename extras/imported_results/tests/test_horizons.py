"""How long before its closing a question was unknown to a model; figures are reckoned by hand."""

import datetime as dt
from typing import Any

import pytest

from core.errors import CellConflict, SchemaMismatch

pytestmark = pytest.mark.usefixtures("kept_open")

# Question: opened, closed, resolved, which of the models a and b is right, days from 2024-01-01.
QUESTIONS = {
    "at thirty days": ("2024-01-05", "2024-01-31", "2024-02-01", "a", 30),
    "a day less": ("2024-01-05", "2024-01-30", "2024-02-01", "b", 29),
    "without closing": ("2024-01-05", "", "2024-12-31", "a", None),
    "a year": ("2024-01-05", "2024-12-31", "2025-02-01", "a", 365),
    "open for two days": ("2024-06-01", "2024-06-03", "2024-06-03", "b", 154),
    "came true early": ("2024-01-05", "2026-12-31", "2024-02-10", "b", 40),
    "of before the release": ("2023-12-20", "2024-06-30", "2024-07-01", "a", 181),
}


def rows_of(*models: str, release: str = "2024-01-01", names: Any = QUESTIONS) -> str:
    lines = []
    for name in names:
        opened, closed, resolved, right, _ = QUESTIONS[name]
        lines += [
            f"{model},{release},{name},{opened},{closed},2,{int(model == right)},{resolved}"
            for model in models
        ]
    return "\n".join(lines) + "\n"


def test_days_before_closing_by_hand(give: Any, peek: Any) -> None:
    give(rows_of("a", "b"), ",resolved")
    found = peek("select question_id, days_before_close, is_test from internal.judged_answers")
    days = {row["question_id"]: row["days_before_close"] for row in found}
    assert days == {name: row[-1] for name, row in QUESTIONS.items()}
    assert {row["question_id"] for row in found if not row["is_test"]} == {"of before the release"}


def test_only_questions_of_the_stated_horizon_count(give: Any, ask: Any) -> None:
    give(rows_of("a", "b"), ",resolved")
    rows = ask("from forecast_adjusted where scope = 'source' order by all")
    found = {
        (row["model"], row["min_days_before_close"]): (row["num_answers"], row["adjusted_accuracy"])
        for row in rows
    }
    shares = {0: (6, 3 / 6), 30: (4, 2 / 4), 90: (2, 1 / 2), 180: (1, 1), 365: (1, 1)}
    for horizon, (number, share) in shares.items():
        assert found["a", horizon] == (number, pytest.approx(share))
        assert found["b", horizon] == (number, pytest.approx(1 - share))
    assert len(found) == 2 * len(shares)


def test_with_documents_the_knowledge_ends_at_the_opening(give: Any, peek: Any) -> None:
    names = ["open for two days", "a year", "of before the release"]
    give(rows_of("a", names=names), ",resolved", source="s:documents")
    found = peek("select question_id, days_before_close from internal.judged_answers")
    opened = dt.date(2024, 1, 5)
    assert {row["question_id"]: row["days_before_close"] for row in found} == {
        "open for two days": 2,
        "a year": (dt.date(2024, 12, 31) - opened).days,
        "of before the release": 181,
    }


def test_an_answer_is_revised_only_if_told(give: Any, peek: Any) -> None:
    name = "at thirty days"
    right = rows_of("a", names=[name])
    wrong = right.replace(",2,1,", ",2,0,")
    with pytest.raises(SchemaMismatch, match="one row for each"):
        give(right + wrong, ",resolved")
    assert give(right, ",resolved") == 1
    with pytest.raises(CellConflict):
        give(wrong, ",resolved")
    assert give(wrong, ",resolved", replace=True) == 1
    assert [row["is_correct"] for row in peek("from forecast_answers")] == [False]
