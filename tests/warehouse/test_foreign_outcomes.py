"""What came true, by files of foreign answers: one outcome a question, known sooner or later."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.errors import CellConflict, SchemaMismatch
from core.settings import Settings
from tests.warehouse.foreign import MORE, lander
from warehouse.writer import connected


@pytest.fixture
def land(settings: Settings, tmp_path: Path) -> Callable[..., int]:
    """Land a text, and return how many rows changed."""
    return lander(settings, tmp_path)


@pytest.fixture
def ask(settings: Settings) -> Callable[[str], list[dict[str, Any]]]:
    def ask(text: str) -> list[dict[str, Any]]:
        with connected(settings) as connection:
            rows: list[dict[str, Any]] = connection.sql(text).to_arrow_table().to_pylist()
        return rows

    return ask


A_WRONG, B_RIGHT = "a,,q1,2022-01-05,,4,0,,2,,,\n", "b,,q1,2022-01-05,,4,1,,2,,,\n"


def test_an_option_is_right_or_wrong_for_all(land: Any, ask: Any) -> None:
    with pytest.raises(SchemaMismatch, match="row 1: is_correct is '0'; .* came true, 2"):
        land(A_WRONG + B_RIGHT, MORE)
    for rows in ((A_WRONG, B_RIGHT), (B_RIGHT, A_WRONG)):
        source = rows[0][0]
        land(rows[0], MORE, source=source)
        for replace in (False, True):
            with pytest.raises(CellConflict, match="disagrees with what is landed: model="):
                land(rows[1], MORE, source=source, replace=replace)
    # What came true is not known any more: the file has all answers, and none of them says it.
    assert land(B_RIGHT.replace("4,1", "4,0"), MORE, source="b", replace=True) == 1
    [row] = ask("from forecast_questions where source = 'b'")
    assert row["answer_index"] is None


def test_a_choice_that_cannot_stay_goes(land: Any, ask: Any) -> None:
    land(A_WRONG, MORE)
    less = A_WRONG.replace(",,2,", ",,,")
    with pytest.raises(CellConflict, match="correct_option='2', landed_correct_option='not 2'"):
        land(less + B_RIGHT, MORE)
    assert land(less + B_RIGHT, MORE, replace=True) == 2
    rows = ask("select chosen_index from forecast_answers order by model")
    assert [row["chosen_index"] for row in rows] == [None, 2]


def test_dates_and_tags_of_a_question_are_replaced_only_if_asked(land: Any, ask: Any) -> None:
    more, row = ",resolved,tags", "a,2023-05-01,q1,2022-01-05,2022-03-01,2,1"
    land(f"{row},2022-03-02,Finance\n", more)
    assert land(f"{row},,\n", more) == 0
    for cells, says in {
        "2022-05-02,Finance": "resolved=2022-05-02, landed_resolved=2022-03-02. Nothing",
        ",Sports": "tags=..Sports.., landed_tags=..Finance... Nothing",
    }.items():
        with pytest.raises(CellConflict, match=f"question_id='q1', {says}"):
            land(f"{row},{cells}\n", more)
        assert land(f"{row},{cells}\n", more, replace=True) == 1
    [question] = ask("from forecast_questions")
    assert (question["resolved"], question["tags"]) == (dt.date(2022, 5, 2), ["Sports"])


def test_a_refusal_shows_what_differs_and_nothing_else(land: Any) -> None:
    row = 'a,2023-05-01,q1,2022-01-05,2022-03-01,3,1,"[0.75, 0.125, 0.125]",0,0,,\n'
    land(row, MORE)
    with pytest.raises(CellConflict) as caught:
        land(row.replace("0.75, 0.125, 0.125", "0.75, 0.25, 0"), MORE)
    assert (
        "landed: model='a', source='s', question_id='q1', probabilities=[0.75, 0.25, 0.0], "
        "landed_probabilities=[0.75, 0.125, 0.125]. Nothing"
    ) in str(caught.value)
    with pytest.raises(
        CellConflict, match="correct_option='1', landed_correct_option='0'. Nothing"
    ):
        land("b,,q1,2022-01-05,2022-03-01,3,1,,1,1,,\n", MORE)


def test_scores_of_answers_whose_outcome_is_not_known_are_left_open(land: Any, ask: Any) -> None:
    """One of two right answers says what came true; by those alone a guesser would look good."""
    guess = '"[0.5, 0.25, 0.25]"'
    land(f"a,,q1,2022-01-05,,3,1,{guess},0,,,\na,,q2,2022-01-05,,3,0,{guess},0,,,\n", MORE)
    [row] = ask("from forecast_calibration")
    assert (row["num_answers"], row["num_unknown"], row["num_brier"]) == (2, 1, 0)
    figures = ("brier_score", "log_score", "log_score_low", "calibration_error", "bins")
    assert [row[name] for name in figures] == [None] * 5
    # Another model's answer says it.
    land("b,,q2,2022-01-05,,3,1,,2,,,\n", MORE)
    [row] = ask("from forecast_calibration")
    assert (row["num_unknown"], row["num_brier"], row["brier_score"]) == (0, 2, (0.375 + 0.875) / 2)
    assert row["log_score"] == pytest.approx(1.5 * math.log(2))
    assert len(row["bins"]) == 1


def test_an_outcome_completes_answers_that_come_before_and_after(land: Any, ask: Any) -> None:
    wrong = 'a,,q1,2022-01-05,,3,0,"[0.5, 0.375, 0.125]",0,,,\n'
    right = "b,,q1,2022-01-05,,3,1,,2,,,\n"
    for source, files in {
        "one": [wrong + right], "after": [wrong, right], "before": [right, wrong]
    }.items():  # fmt: skip
        for rows in files:
            land(rows, MORE, source=source)
    rows = ask("from judged_answers where model = 'a'")
    assert [(row["p_correct"], row["brier"]) for row in rows] == [(0.125, 1.15625)] * 3
    assert land(wrong, MORE, source="after") == 0


def test_ties_need_no_outcome(land: Any, ask: Any) -> None:
    land('a,,q1,2022-01-05,,2,0,"[0.5, 0.5]",,,,\na,,q2,2022-01-05,,4,1,0.5|0.5|0|0,,,,\n', MORE)
    assert [row["p_correct"] for row in ask("from judged_answers")] == [0.5, 0.5]
