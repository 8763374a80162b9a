"""`land-answers`: what is taken, what is refused and why, and that nothing good is lost."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from core.errors import CellConflict, MalformedInput, SchemaMismatch, TidemarkError
from core.settings import Settings
from tests.warehouse.foreign import HEADER, MORE, lander
from warehouse.foreign_answers import land_foreign_answers
from warehouse.writer import connected

GOOD = "a,2023-05-01,q1,2022-01-05,2022-03-01,2,1\na,2023-05-01,q2,2024-01-05,2024-03-01,3,0\n"


@pytest.fixture
def land(settings: Settings, tmp_path: Path) -> Callable[..., int]:
    """Land a text, and return how many rows changed."""
    return lander(settings, tmp_path)


@pytest.fixture(scope="module")
def refuse(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., int]:
    """As ``land``, for all that is refused: it leaves the one warehouse as it is."""
    folder = tmp_path_factory.mktemp("refused")
    land = lander(Settings(home=str(folder / "home")), folder)
    land(GOOD)
    return land


@pytest.fixture
def ask(settings: Settings) -> Callable[[str], list[dict[str, Any]]]:
    def ask(text: str) -> list[dict[str, Any]]:
        with connected(settings) as connection:
            rows: list[dict[str, Any]] = connection.sql(text).to_arrow_table().to_pylist()
        return rows

    return ask


def test_answers_land_once(land: Any, ask: Any) -> None:
    assert (land(GOOD), land(GOOD)) == (2, 0)
    rows = ask("from forecast_answers order by question_id")
    assert [(r["model"], r["protocol"], r["is_correct"]) for r in rows] == [
        ("a", "given", True), ("a", "given", False),
    ]  # fmt: skip
    assert [r["released"] for r in rows] == [dt.date(2023, 5, 1)] * 2
    [question] = ask("from forecast_questions where question_id = 'q1'")
    assert (question["opened"], question["num_options"]) == (dt.date(2022, 1, 5), 2)
    assert question["month"] == dt.date(2022, 3, 1)
    assert ask("select model from models") == [{"model": "a"}]


@pytest.mark.parametrize(
    ("right", "wrong"), [("1", "0"), ("true", "false"), ("True", "False"), ("1.0", "0.0")]
)
def test_dates_and_truth_are_read_in_the_usual_forms(
    land: Any, ask: Any, right: str, wrong: str
) -> None:
    land(
        f"a,2023-05,q1,2022-01-06T23:30:00Z,,2.0,{right}\n"
        f"a,2023-05-01 00:00:00,q2,2022-01-05,2022-03-01,2,{wrong}\n"
    )
    rows = ask("select opened, closed, is_correct from judged_answers order by question_id")
    assert rows == [
        {"opened": dt.date(2022, 1, 6), "closed": None, "is_correct": True},
        {"opened": dt.date(2022, 1, 5), "closed": dt.date(2022, 3, 1), "is_correct": False},
    ]


BAD = [
    (",2023-05-01,q1,2022-01-05,,2,1", "model is missing; expected the name of a model"),
    ("a,2023-05-01,,2022-01-05,,2,1", "question_id is missing"),
    ("a,May 2023,q1,2022-01-05,,2,1", "release_date is 'May 2023'; expected YYYY-MM-DD"),
    ("a,2023-13-01,q1,2022-01-05,,2,1", "release_date is '2023-13-01'"),
    ("a,2023-05-01,q1,,,2,1", "opened is missing; expected the day the question was opened"),
    ("a,2023-05-01,q1,05/01/2022,,2,1", "opened is '05/01/2022'"),
    ("a,2023-05-01,q1,2022-02-30,,2,1", "opened is '2022-02-30'"),
    ("a,2023-05-01,q1,9999-12-31,,2,1", "opened is '9999-12-31'"),
    ("a,2023-05-01,q1,2022-01-05T20:00:00-08:00,,2,1", "opened is .* .with Z., not in another"),
    (
        "a,2023-05-01,q1,2022-01-05,2022-02-05 20:00 PST,2,1",
        "closed is .* not in another zone, or",
    ),
    ("a,2023-05-01,q1,2022-01-05T99:99,,2,1", "opened is '2022-01-05T99:99'; .* YYYY-MM-DD[.]"),
    ("a,2023-05-01,q1,2022-01,,2,1", "opened is '2022-01'; .* YYYY-MM-DD[.]"),
    ("a,2023-13,q1,2022-01-05,,2,1", "release_date is '2023-13'; .* YYYY-MM-DD, YYYY-MM, or"),
    ("a,2023-05-01,q1,2022-01-05,soon,2,1", "closed is 'soon'"),
    ("a,2023-05-01,q1,2022-01-05,2021-12-31,2,1", "closed is .* no day before the question was"),
    ("a,2023-05-01,q1,2022-01-05,,1,1", "num_options is '1'; expected a whole number of at least"),
    ("a,2023-05-01,q1,2022-01-05,,2.5,1", "num_options is '2.5'"),
    ("a,2023-05-01,q1,2022-01-05,,nan,1", "num_options is 'nan'"),
    ("a,2023-05-01,q1,2022-01-05,,two,1", "num_options is 'two'"),
    ("a,2023-05-01,q1,2022-01-05,,2,", "is_correct is missing; expected true or false"),
    ("a,2023-05-01,q1,2022-01-05,,2,0.5", "is_correct is '0.5'"),
    ("a,2023-05-01,q1,2022-01-05,,2,maybe", "is_correct is 'maybe'"),
]


@pytest.mark.parametrize(("row", "says"), BAD, ids=[says[:40] for _, says in BAD])
def test_a_bad_row_lands_nothing_of_its_file(refuse: Any, row: str, says: str) -> None:
    good = "b,2023-05-01,q9,2022-01-05,,2,1\n"
    with pytest.raises(SchemaMismatch, match=f"row 2: {says}.* Nothing of the file was landed"):
        refuse(good + row, source="t")
    assert refuse(GOOD) == 0, "what was landed before is there"


TOGETHER = [
    ("a,2023-05-01,q1,2022-01-05,,2,1", "one row for each; row 1 is of the same"),
    ("a,2023-05-02,q2,2022-01-05,,2,1", "one release_date for each model"),
    ("a,,q2,2022-01-05,,2,1", "one release_date for each model"),
    ("b,,q1,2022-01-06,,2,1", "the same opened, closed and num_options wherever"),
    ("b,,q1,2022-01-05,,3,1", "the same opened, closed and num_options wherever"),
    ("b,,q1,2022-01-05,2022-02-01,2,1", "the same opened, closed and num_options wherever"),
]


@pytest.mark.parametrize(("row", "says"), TOGETHER)
def test_rows_that_do_not_agree_are_refused(refuse: Any, row: str, says: str) -> None:
    with pytest.raises(SchemaMismatch, match=f"row 2: .*{says}"):
        refuse(f"a,2023-05-01,q1,2022-01-05,,2,1\n{row}\n", source="t")


BAD_MORE = [
    ('"[0.5, 0.6]",,,,', "probabilities is '\\[0.5, 0.6\\]'; expected one number an option"),
    ('"[1.0]",,,,', "probabilities"),
    ('"[1.5, -0.5]",,,,', "probabilities"),
    ('"[0.5, x]",,,,', "probabilities"),
    ('"[nan, 1]",,,,', "probabilities"),
    (",2,,,", "chosen_option is '2'; expected which option, counted from 0"),
    (",-1,,,", "chosen_option is '-1'"),
    (",0.5,,,", "chosen_option is '0.5'"),
    (",,9,,", "correct_option is '9'"),
    (",0,1,,", "is_correct is '1'; expected what follows from the chosen option, 0, and"),
    (",,,1.5,", "p_correct is '1.5'; expected a probability"),
    ('"[0.7, 0.3]",,0,0.3,', "p_correct is '0.3'; expected what probabilities say"),
    ('"[0.7, 0.3]",,,0.3,', "p_correct is '0.3'; expected what probabilities say .* true: 0.7"),
    ('"[0.7, 0.3]",,1,,', "is_correct is '1'; .* option, 0 .the likeliest.* came true, 1"),
]


@pytest.mark.parametrize(("cells", "says"), BAD_MORE)
def test_bad_probabilities_are_refused(refuse: Any, cells: str, says: str) -> None:
    with pytest.raises(SchemaMismatch, match=says):
        refuse(f"a,,q1,2022-01-05,,2,1,{cells}\n", MORE, source="t")


def test_a_probability_of_no_option_is_refused(refuse: Any) -> None:
    with pytest.raises(SchemaMismatch, match="p_correct is '0.3'; expected one of the probabil"):
        refuse('a,,q1,2022-01-05,,3,0,"[0.5, 0.25, 0.25]",0,,0.3,\n', MORE, source="t")


def test_nothing_is_resolved_before_it_is_asked(refuse: Any) -> None:
    with pytest.raises(SchemaMismatch, match="row 1: resolved is '2020-05-02'; expected no day be"):
        refuse("a,,q1,2022-01-05,,2,1,2020-05-02\n", ",resolved", source="t")


def test_what_follows_from_choice_and_probabilities_is_filled_in(land: Any, ask: Any) -> None:
    land(
        'a,,q1,2022-01-05,,3,1,"[0.5, 0.25, 0.25]",0,,,US Politics|Finance\n'
        "a,,q2,2022-01-05,,2,0,0.75|0.25,0,,,\n"
        "a,,q3,2022-01-05,,2,0,,,,0.25,\n"
        "a,,q4,2022-01-05,,3,0,,,,0.25,\n"
        "a,,q5,2022-01-05,,3,1,,,,0.5,\n"
        "a,,q6,2022-01-05,,3,1,,,,,\n",
        MORE,
    )
    rows = ask("from judged_answers order by question_id")
    assert [row["p_correct"] for row in rows] == [0.5, 0.25, 0.25, 0.25, 0.5, None]
    # What a wrong choice among three was given is not told; to know it of right ones alone would
    # make a model look better calibrated than it is.
    assert [row["p_chosen"] for row in rows] == [0.5, 0.75, 0.75, None, None, None]
    assert [row["brier"] for row in rows] == [0.375, 1.125, 1.125, None, None, None]
    answers = ask("select answer_index from forecast_questions order by question_id")
    assert [row["answer_index"] for row in answers] == [0, 1, None, None, None, None]
    groups = ask("from grouped_answers where question_id in ('q1', 'q2') order by question_group")
    assert [row["question_group"] for row in groups] == [
        "Economic and Business Items", "Political and Government Affairs", "none",
    ]  # fmt: skip


CONFLICTS = [
    "a,2023-05-01,q1,2022-01-05,2022-03-01,2,0",
    "b,2023-05-01,q1,2022-01-06,2022-03-01,2,1",
    "b,2023-05-01,q1,2022-01-05,2022-03-02,2,1",
]


@pytest.mark.parametrize("row", CONFLICTS)
def test_another_value_is_refused_unless_it_shall_replace(land: Any, ask: Any, row: str) -> None:
    land(GOOD)
    with pytest.raises(CellConflict, match="disagrees with what is landed: .*q1.* --replace takes"):
        land(row)
    before = ask("from judged_answers order by all")
    assert land(row, source="elsewhere") == 1, "it is a question of another source"
    assert land(row, replace=True) == 1
    assert ask("from judged_answers where source = 's' order by all") != before
    assert land(row) == 0


def test_answers_of_others_to_a_question_that_changes_are_not_left_behind(land: Any) -> None:
    land(GOOD)
    row = "b,2023-05-01,q1,2022-01-05,2022-03-01,4,1\n"
    with pytest.raises(CellConflict, match="model='a'.* give the answers of all models"):
        land(row, replace=True)
    assert land(row + "a,2023-05-01,q1,2022-01-05,2022-03-01,4,0\n", replace=True) == 2


def test_a_model_has_one_release(land: Any, ask: Any) -> None:
    land(GOOD)
    later = "a,2024-01-01,q3,2023-08-01,,2,1\n"
    with pytest.raises(CellConflict, match="landed_release_date=2023-05-01"):
        land(later)
    land("a,,q3,2023-08-01,,2,1\n")
    assert {row["released"] for row in ask("from judged_answers")} == {dt.date(2023, 5, 1)}
    land("a,,q1,2022-01-05,,2,0\n", replace=True)
    assert {row["released"] for row in ask("from judged_answers")} == {dt.date(2023, 5, 1)}
    land(later, replace=True)
    assert {row["released"] for row in ask("from judged_answers")} == {dt.date(2024, 1, 1)}


def test_choice_and_probabilities_are_replaced_together(land: Any, ask: Any) -> None:
    land('a,,q1,2022-01-05,,2,1,"[0.75, 0.25]",0,0,,\n', MORE)
    assert land("a,,q1,2022-01-05,,2,1,,,,0.75,\n", MORE) == 0
    assert land("a,,q1,2022-01-05,,2,1,,,,0.875,\n", MORE, replace=True) == 1
    [row] = ask("from judged_answers")
    assert (row["p_correct"], row["p_chosen"], row["brier"]) == (0.875, 0.875, 0.03125)


@pytest.mark.parametrize(
    "rows",
    [
        "a,,q1,2022-01-05,,2,1,,,0,,\nb,,q1,2022-01-05,,2,1,,,1,,\n",
        "a,,q1,2022-01-05,,2,1,,0,,,\nb,,q1,2022-01-05,,2,1,,1,,,\n",
        '"a",,q1,2022-01-05,,2,1,"[0.9, 0.1]",,,,\nb,,q1,2022-01-05,,2,1,"[0.1, 0.9]",,,,\n',
        "a,,q1,2022-01-05,,2,1,,,,,Finance\nb,,q1,2022-01-05,,2,1,,,,,Sports\n",
    ],
)
def test_a_question_has_one_outcome(refuse: Any, rows: str) -> None:
    with pytest.raises(SchemaMismatch, match="row 2: question_id is 'q1'.* the same outcome"):
        refuse(rows, MORE, source="t")


@pytest.mark.parametrize("tags", ["Finance|Sports", "\"['Finance', 'Sports']\"", "Finance; Sports"])
def test_tags_are_read_as_people_write_them(land: Any, ask: Any, tags: str) -> None:
    land(f"a,,q1,2022-01-05,,2,1,,,,,{tags}\n", MORE)
    [row] = ask("from judged_answers")
    assert row["tags"] == ["Finance", "Sports"]


def test_parquet_lists_are_checked_as_texts_are(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "answers.parquet"
    with duckdb.connect() as connection:
        for value, is_good in (("[0.5, null]", False), ("[0.5, 0.5]::double[2]", True)):
            connection.execute(
                "copy (select 'a' as model, '' as release_date, 'q' as question_id, "
                "'2022-01-05' as opened, '' as closed, 2 as num_options, true as is_correct, "
                f"{value} as probabilities) to '{path}'"
            )
            if is_good:
                assert land_foreign_answers(settings, path, "s").num_changed == 1
                continue
            with pytest.raises(SchemaMismatch, match="one number an option"):
                land_foreign_answers(settings, path, "s")


def test_a_file_that_says_less_takes_nothing_away(land: Any, ask: Any) -> None:
    land('a,2023-05-01,q1,2022-01-05,2022-03-01,2,1,"[0.75, 0.25]",0,0,0.75,Finance\n', MORE)
    before = ask("from judged_answers")
    assert land("a,,q1,2022-01-05,,2,1\n") == 0
    assert ask("from judged_answers") == before
    assert land("a,,q1,2022-01-05,,2,0\n", replace=True) == 1
    [row] = ask("from judged_answers")
    assert (row["is_correct"], row["p_correct"], row["p_chosen"]) == (False, None, None)


def test_columns_are_named_and_files_are_files(settings: Settings, tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    path.write_text("model,question_id\na,b\n")
    with pytest.raises(SchemaMismatch, match="lacks release_date, opened, closed, num_options"):
        land_foreign_answers(settings, path, "s")
    for end in ("", "\n"):
        path.write_text(HEADER + end)
        with pytest.raises(SchemaMismatch, match="has no rows under its header"):
            land_foreign_answers(settings, path, "s")
    path.write_bytes(b"PAR1 rubbish")
    with pytest.raises(MalformedInput, match="cannot be read as Parquet"):
        land_foreign_answers(settings, path, "s")
    with pytest.raises(TidemarkError):
        land_foreign_answers(settings, tmp_path / "missing.csv", "s")


def test_parquet_may_have_lists_and_dates(settings: Settings, tmp_path: Path, ask: Any) -> None:
    path = tmp_path / "answers.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "copy (select 'a' as model, date '2023-05-01' as release_date, 7 as question_id, "
            "timestamp '2022-01-05 10:00' as opened, null::date as closed, 2 as num_options, "
            "true as is_correct, [0.625, 0.375] as probabilities, ['Finance', 'Sports'] as tags) "
            f"to '{path}'"
        )
    assert land_foreign_answers(settings, path, "s").num_changed == 1
    [row] = ask("from judged_answers")
    assert (row["question_id"], row["tags"]) == ("7", ["Finance", "Sports"])
    [answer] = ask("from forecast_answers")
    assert answer["probabilities"] == [0.625, 0.375]
    # The likeliest option is the chosen one, and it was right.
    assert (row["p_correct"], row["p_chosen"]) == (0.625, 0.625)


def test_hostile_texts_are_texts(land: Any, ask: Any) -> None:
    name = "'); drop table forecast_answers; --"
    land(f'"{name}",,"=cmd|\' /C calc\'!A0",2022-01-05,,2,1\n')
    assert [row["model"] for row in ask("from forecast_accuracy")] == [name]


def test_the_recipe_for_two_files_makes_one(
    settings: Settings, tmp_path: Path, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/published.md has it, line by line."""
    page = Path(__file__).parents[2].joinpath("docs", "published.md").read_text(encoding="utf-8")
    [recipe] = re.findall(r"```sql\n(copy .*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("questions.csv").write_text(
        "question_id,opened,closed,n_options,correct_idx,tags\n"
        "0,2024-02-09,2024-03-06,2,0,US Politics|Elections\n1,2024-01-22,2024-03-06,5,1,\n"
    )
    Path("answers.csv").write_text(
        "model,release_date,question_id,opened,closed,is_correct,p_correct\n"
        "m,2023-08-24,0,2024-02-09,2024-03-06,1,0.75\nm,2023-08-24,1,2024-01-22,2024-03-06,0,0.0\n"
    )
    with duckdb.connect() as connection:
        connection.execute(recipe)
    landed = land_foreign_answers(settings, Path("landable.csv"), "gjo")
    assert (landed.num_changed, landed.ignored) == (2, ())
    rows = ask("from judged_answers order by question_id")
    assert [(row["is_correct"], row["p_correct"]) for row in rows] == [(True, 0.75), (False, 0.0)]
    rows = ask("from forecast_questions order by question_id")
    assert [(row["num_options"], row["answer_index"]) for row in rows] == [(2, 0), (5, 1)]
    assert rows[0]["tags"] == ["US Politics", "Elections"]
