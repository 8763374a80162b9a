import datetime as dt
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from core.errors import CellConflict, MalformedInput, SchemaMismatch
from core.settings import Settings
from extras.imported_results.answers import land_imported_answers
from extras.imported_results.tests.lander import lander
from tests.tiers import few, needs_extra

pytestmark = pytest.mark.usefixtures("kept_open")

MORE = ",probabilities,chosen_option,correct_option,p_correct,tags"
GIVEN = ["model", "release_date", "question_id", "opened", "closed", "num_options", "is_correct"]
GOOD = "a,2023-05-01,q1,2022-01-05,2022-03-01,2,1\na,2023-05-01,q2,2024-01-05,2024-03-01,3,0\n"


@pytest.fixture
def refuse(settings: Settings, tmp_path: Path) -> Callable[..., int]:
    give = lander(settings, tmp_path)
    give(GOOD)
    return give


def test_answers_land_once(give: Any, peek: Any) -> None:
    assert (give(GOOD), give(GOOD)) == (2, 0)
    rows = peek("from forecast_answers order by question_id")
    assert [(r["model"], r["protocol"], r["is_correct"]) for r in rows] == [
        ("a", "given", True), ("a", "given", False),
    ]  # fmt: skip
    assert [r["released"] for r in rows] == [dt.date(2023, 5, 1)] * 2
    [question] = peek("from forecast_questions where question_id = 'q1'")
    assert (question["opened"], question["num_options"]) == (dt.date(2022, 1, 5), 2)
    assert question["month"] == dt.date(2022, 3, 1)
    assert peek("select model from models") == [{"model": "a"}]


@pytest.mark.parametrize(
    ("right", "wrong"), [("1", "0"), ("true", "false"), ("True", "False"), ("1.0", "0.0")]
)
def test_dates_and_truth_are_read_in_the_usual_forms(
    give: Any, peek: Any, right: str, wrong: str
) -> None:
    give(
        f"a,2023-05,q1,2022-01-06T23:30:00Z,,2.0,{right}\n"
        f"a,2023-05-01 00:00:00,q2,2022-01-05,2022-03-01,2,{wrong}\n"
    )
    columns = "opened, closed, is_correct"
    rows = peek(f"select {columns} from internal.judged_answers order by question_id")
    assert rows == [
        {"opened": dt.date(2022, 1, 6), "closed": None, "is_correct": True},
        {"opened": dt.date(2022, 1, 5), "closed": dt.date(2022, 3, 1), "is_correct": False},
    ]


BAD = yaml.safe_load(Path(__file__).with_name("bad_answers.yml").read_text(encoding="utf-8"))


def test_a_bad_row_lands_nothing_of_its_file(refuse: Any, subtests: pytest.Subtests) -> None:
    good = "b,2023-05-01,q9,2022-01-05,,2,1\n"
    for row, says in BAD["rows"]:
        wanted = f"row 2: {says}.* Nothing of the file was landed"
        with subtests.test(says[:40]), pytest.raises(SchemaMismatch, match=wanted):
            refuse(good + row, source="t")
    assert refuse(GOOD) == 0, "what was landed before is there"


AGREED = "the same opened, closed and num_options wherever"
TOGETHER = [
    ("a,2023-05-01,q1,2022-01-05,,2,1", "one row for each; row 1 is of the same"),
    ("a,2023-05-02,q2,2022-01-05,,2,1", "one release_date for each model"),
    ("a,,q2,2022-01-05,,2,1", "one release_date for each model"),
    *((f"b,,q1,{rest}", AGREED) for rest in ("2022-01-06,,2,1", "2022-01-05,,3,1",
                                             "2022-01-05,2022-02-01,2,1")),
]  # fmt: skip


def test_rows_that_do_not_agree_are_refused(refuse: Any, subtests: pytest.Subtests) -> None:
    for row, says in TOGETHER:
        with subtests.test(row), pytest.raises(SchemaMismatch, match=f"row 2: .*{says}"):
            refuse(f"a,2023-05-01,q1,2022-01-05,,2,1\n{row}\n", source="t")


def test_bad_probabilities_are_refused(refuse: Any, subtests: pytest.Subtests) -> None:
    for cells, says in BAD["cells"]:
        with subtests.test(cells), pytest.raises(SchemaMismatch, match=says):
            refuse(f"a,,q1,2022-01-05,,2,1,{cells}\n", MORE, source="t")


def test_what_follows_from_choice_and_probabilities_is_filled_in(give: Any, peek: Any) -> None:
    give(
        'a,,q1,2022-01-05,,3,1,"[0.5, 0.25, 0.25]",0,,,US Politics|Finance\n'
        "a,,q2,2022-01-05,,2,0,0.75|0.25,0,,,\n"
        "a,,q3,2022-01-05,,2,0,,,,0.25,\n"
        "a,,q4,2022-01-05,,3,0,,,,0.25,\n"
        "a,,q5,2022-01-05,,3,1,,,,0.5,\n"
        "a,,q6,2022-01-05,,3,1,,,,,\n",
        MORE,
    )
    rows = peek("from internal.judged_answers order by question_id")
    assert [row["p_correct"] for row in rows] == [0.5, 0.25, 0.25, 0.25, 0.5, None]
    # What a wrong choice among three was given is not told; to know it of right ones alone would
    # make a model look better calibrated than it is.
    assert [row["p_chosen"] for row in rows] == [0.5, 0.75, 0.75, None, None, None]
    assert [row["brier"] for row in rows] == [0.375, 1.125, 1.125, None, None, None]
    answers = peek("select answer_index from forecast_questions order by question_id")
    assert [row["answer_index"] for row in answers] == [0, 1, None, None, None, None]


@needs_extra("papers")
def test_tags_of_an_answer_give_its_groups(give: Any, peek: Any) -> None:
    give(
        'a,,q1,2022-01-05,,3,1,"[0.5, 0.25, 0.25]",0,,,US Politics|Finance\n'
        "a,,q2,2022-01-05,,2,0,0.75|0.25,0,,,\n",
        MORE,
    )
    sql = "from internal.grouped_answers where question_id in ('q1', 'q2')"
    groups = peek(f"{sql} order by question_group")
    assert [row["question_group"] for row in groups] == [
        "Economic and Business Items", "Political and Government Affairs", "none",
    ]  # fmt: skip


CONFLICTS = [
    "a,2023-05-01,q1,2022-01-05,2022-03-01,2,0",
    "b,2023-05-01,q1,2022-01-06,2022-03-01,2,1",
    "b,2023-05-01,q1,2022-01-05,2022-03-02,2,1",
]


@pytest.mark.parametrize("row", few(CONFLICTS, 1))
def test_another_value_is_refused_unless_it_shall_replace(give: Any, peek: Any, row: str) -> None:
    give(GOOD)
    with pytest.raises(CellConflict, match="disagrees with what is landed: .*q1.* --replace takes"):
        give(row)
    before = peek("from internal.judged_answers order by all")
    assert give(row, source="elsewhere") == 1, "it is a question of another source"
    assert give(row, replace=True) == 1
    assert peek("from internal.judged_answers where source = 's' order by all") != before
    assert give(row) == 0


def test_answers_of_others_to_a_question_that_changes_are_not_left_behind(give: Any) -> None:
    give(GOOD)
    row = "b,2023-05-01,q1,2022-01-05,2022-03-01,4,1\n"
    with pytest.raises(CellConflict, match="model='a'.* give the answers of all models"):
        give(row, replace=True)
    assert give(row + "a,2023-05-01,q1,2022-01-05,2022-03-01,4,0\n", replace=True) == 2


def test_a_model_has_one_release(give: Any, peek: Any) -> None:
    give(GOOD)
    later = "a,2024-01-01,q3,2023-08-01,,2,1\n"
    with pytest.raises(CellConflict, match="landed_release_date=2023-05-01"):
        give(later)
    for row, replace, released in (
        ("a,,q3,2023-08-01,,2,1\n", False, dt.date(2023, 5, 1)),
        ("a,,q1,2022-01-05,,2,0\n", True, dt.date(2023, 5, 1)),
        (later, True, dt.date(2024, 1, 1)),
    ):
        give(row, replace=replace)
        assert {r["released"] for r in peek("from internal.judged_answers")} == {released}


def test_choice_and_probabilities_are_replaced_together(give: Any, peek: Any) -> None:
    give('a,,q1,2022-01-05,,2,1,"[0.75, 0.25]",0,0,,\n', MORE)
    assert give("a,,q1,2022-01-05,,2,1,,,,0.75,\n", MORE) == 0
    assert give("a,,q1,2022-01-05,,2,1,,,,0.875,\n", MORE, replace=True) == 1
    [row] = peek("from internal.judged_answers")
    assert (row["p_correct"], row["p_chosen"], row["brier"]) == (0.875, 0.875, 0.03125)


TWO_OUTCOMES = [
    (MORE, "2,1,,,0,, 2,1,,,1,,", "row 2: question_id is 'q1'.* the same outcome"),
    (MORE, "2,1,,0,,, 2,1,,1,,,", "row 2: question_id is 'q1'.* the same outcome"),
    (MORE, "2,1,0.9|0.1,,,, 2,1,0.1|0.9,,,,", "row 2: question_id is 'q1'.* the same outcome"),
    (MORE, "2,1,,,,,Finance 2,1,,,,,Sports", "row 2: question_id is 'q1'.* the same outcome"),
    (MORE, "3,0,0.5|0.25|0.25,0,,0.3,", "p_correct is '0.3'; expected one of the probabil"),
    (",resolved", "2,1,2020-05-02", "row 1: resolved is '2020-05-02'; expected no day be"),
]


def test_a_question_has_one_outcome_that_fits(refuse: Any, subtests: pytest.Subtests) -> None:
    for more, rows, says in TWO_OUTCOMES:
        given = zip("ab", rows.split(), strict=False)
        text = "".join(f"{name},,q1,2022-01-05,,{row}\n" for name, row in given)
        with subtests.test(rows), pytest.raises(SchemaMismatch, match=says):
            refuse(text, more, source="t")


@pytest.mark.parametrize("tags", ["Finance|Sports", "\"['Finance', 'Sports']\"", "Finance; Sports"])
def test_tags_are_read_as_people_write_them(give: Any, peek: Any, tags: str) -> None:
    give(f"a,,q1,2022-01-05,,2,1,,,,,{tags}\n", MORE)
    [row] = peek("from internal.judged_answers")
    assert row["tags"] == ["Finance", "Sports"]


def test_a_file_that_says_less_takes_nothing_away(give: Any, peek: Any) -> None:
    give('a,2023-05-01,q1,2022-01-05,2022-03-01,2,1,"[0.75, 0.25]",0,0,0.75,Finance\n', MORE)
    before = peek("from internal.judged_answers")
    assert give("a,,q1,2022-01-05,,2,1\n") == 0
    assert peek("from internal.judged_answers") == before
    assert give("a,,q1,2022-01-05,,2,0\n", replace=True) == 1
    [row] = peek("from internal.judged_answers")
    assert (row["is_correct"], row["p_correct"], row["p_chosen"]) == (False, None, None)


def test_parquet_may_have_lists_and_dates(settings: Settings, tmp_path: Path, peek: Any) -> None:
    path = tmp_path / "answers.parquet"

    def land(probabilities: str) -> int:
        duckdb.sql(
            "copy (select 'a' as model, date '2023-05-01' as release_date, 7 as question_id, "
            "timestamp '2022-01-05 10:00' as opened, null::date as closed, 2 as num_options, true "
            f"as is_correct, {probabilities} as probabilities, ['Finance', 'Sports'] as tags) "
            f"to '{path}'"
        )
        return land_imported_answers(settings, path, "s").num_changed

    with pytest.raises(SchemaMismatch, match="one number an option"):
        land("[0.5, null]")
    assert land("[0.625, 0.375]::double[2]") == 1
    assert land("[0.625, 0.375]") == 0
    [row] = peek("from internal.judged_answers")
    assert (row["question_id"], row["tags"]) == ("7", ["Finance", "Sports"])
    [answer] = peek("from forecast_answers")
    assert answer["probabilities"] == [0.625, 0.375]
    assert (row["p_correct"], row["p_chosen"]) == (0.625, 0.625)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "value", "says"),
    few(
        [
            ("tags", pa.scalar(["m" * 2**18]), "2,500 MiB when decoded"),
            ("probabilities", pa.scalar([0.5] * 5_000), "50,000,000 values"),
            ("model", pa.scalar("m" * 2**20), "10,000 MiB when decoded"),
            ("p_correct", pa.scalar(b"m" * 2**17, pa.binary(2**17)), "1,251 MiB when decoded"),
        ],
        2,
    ),
)
def test_a_small_file_of_gigabytes_is_refused_before_it_is_decoded(
    settings: Settings, tmp_path: Path, name: str, value: pa.Scalar, says: str
) -> None:
    path = tmp_path / "answers.parquet"
    columns = dict.fromkeys(GIVEN, pa.scalar("1")) | {name: value}
    group = pa.table({name: pa.repeat(each, 100) for name, each in columns.items()})
    with pq.ParquetWriter(path, group.schema, compression="zstd", store_schema=False) as writer:
        for _ in range(100):
            writer.write_table(group)
    assert path.stat().st_size < 256 * 2**10
    with pytest.raises(MalformedInput, match=f"{says}.*Split|{says}.*split"):
        land_imported_answers(settings, path, "s")


def test_hostile_texts_are_texts(give: Any, peek: Any) -> None:
    name = "'); drop table forecast_answers; --"
    give(f'"{name}",,"=cmd|\' /C calc\'!A0",2022-01-05,,2,1\n')
    assert [row["model"] for row in peek("from forecast_accuracy")] == [name]


def test_the_recipe_for_two_files_makes_one(
    settings: Settings, tmp_path: Path, peek: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recipe of the extra's page, line by line."""
    page = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")
    recipes = re.findall(r"```sql\n(copy .*?)```", page, re.DOTALL)
    [recipe] = [each for each in recipes if "landable.csv" in each]
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
    landed = land_imported_answers(settings, Path("landable.csv"), "gjo")
    assert (landed.num_changed, landed.ignored) == (2, ())
    rows = peek("from internal.judged_answers order by question_id")
    assert [(row["is_correct"], row["p_correct"]) for row in rows] == [(True, 0.75), (False, 0.0)]
    rows = peek("from forecast_questions order by question_id")
    assert [(row["num_options"], row["answer_index"]) for row in rows] == [(2, 0), (5, 1)]
    assert rows[0]["tags"] == ["US Politics", "Elections"]


A_WRONG = "a,,q1,2022-01-05,,4,0,,2,,,\n"
B_RIGHT = "b,,q1,2022-01-05,,4,1,,2,,,\n"


@pytest.mark.long
def test_an_option_is_right_or_wrong_for_all(give: Any, peek: Any) -> None:
    with pytest.raises(SchemaMismatch, match="row 1: is_correct is '0'; .* came true, 2"):
        give(A_WRONG + B_RIGHT, MORE)
    for rows in ((A_WRONG, B_RIGHT), (B_RIGHT, A_WRONG)):
        source = rows[0][0]
        give(rows[0], MORE, source=source)
        for replace in (False, True):
            with pytest.raises(CellConflict, match="disagrees with what is landed: model="):
                give(rows[1], MORE, source=source, replace=replace)
    # The outcome is lost: the file has all answers, and none of them gives it.
    assert give(B_RIGHT.replace("4,1", "4,0"), MORE, source="b", replace=True) == 1
    [row] = peek("from forecast_questions where source = 'b'")
    assert row["answer_index"] is None


def test_a_choice_that_cannot_stay_goes(give: Any, peek: Any) -> None:
    give(A_WRONG, MORE)
    less = A_WRONG.replace(",,2,", ",,,")
    with pytest.raises(CellConflict, match="correct_option='2', landed_correct_option='not 2'"):
        give(less + B_RIGHT, MORE)
    assert give(less + B_RIGHT, MORE, replace=True) == 2
    rows = peek("select chosen_index from forecast_answers order by model")
    assert [row["chosen_index"] for row in rows] == [None, 2]


def test_dates_and_tags_of_a_question_are_replaced_only_if_asked(give: Any, peek: Any) -> None:
    more = ",resolved,tags"
    row = "a,2023-05-01,q1,2022-01-05,2022-03-01,2,1"
    give(f"{row},2022-03-02,Finance\n", more)
    assert give(f"{row},,\n", more) == 0
    for cells, says in {
        "2022-05-02,Finance": "resolved=2022-05-02, landed_resolved=2022-03-02. Nothing",
        ",Sports": "tags=..Sports.., landed_tags=..Finance... Nothing",
    }.items():
        with pytest.raises(CellConflict, match=f"question_id='q1', {says}"):
            give(f"{row},{cells}\n", more)
        assert give(f"{row},{cells}\n", more, replace=True) == 1
    [question] = peek("from forecast_questions")
    assert (question["resolved"], question["tags"]) == (dt.date(2022, 5, 2), ["Sports"])


def test_a_refusal_shows_what_differs_and_nothing_else(give: Any) -> None:
    row = 'a,2023-05-01,q1,2022-01-05,2022-03-01,3,1,"[0.75, 0.125, 0.125]",0,0,,\n'
    give(row, MORE)
    with pytest.raises(CellConflict) as caught:
        give(row.replace("0.75, 0.125, 0.125", "0.75, 0.25, 0"), MORE)
    assert (
        "landed: model='a', source='s', question_id='q1', probabilities=[0.75, 0.25, 0.0], "
        "landed_probabilities=[0.75, 0.125, 0.125]. Nothing"
    ) in str(caught.value)
    says = "correct_option='1', landed_correct_option='0'. Nothing"
    with pytest.raises(CellConflict, match=says):
        give("b,,q1,2022-01-05,2022-03-01,3,1,,1,1,,\n", MORE)


def test_scores_of_answers_whose_outcome_is_not_known_are_left_open(give: Any, peek: Any) -> None:
    """Of two right answers one has an outcome; scores of these alone favour guessers."""
    guess = '"[0.5, 0.25, 0.25]"'
    give(f"a,,q1,2022-01-05,,3,1,{guess},0,,,\na,,q2,2022-01-05,,3,0,{guess},0,,,\n", MORE)
    [row] = peek("from internal.forecast_calibration_details")
    assert (row["num_answers"], row["num_unknown"], row["num_brier"]) == (2, 1, 0)
    figures = ("brier_score", "log_score", "log_score_low", "calibration_error", "bins")
    assert [row[name] for name in figures] == [None] * 5
    give("b,,q2,2022-01-05,,3,1,,2,,,\n", MORE)
    [row] = peek("from internal.forecast_calibration_details")
    assert (row["num_unknown"], row["num_brier"], row["brier_score"]) == (0, 2, (0.375 + 0.875) / 2)
    assert row["log_score"] == pytest.approx(1.5 * math.log(2))
    assert len(row["bins"]) == 1


@pytest.mark.long
def test_an_outcome_completes_answers_that_come_before_and_after(give: Any, peek: Any) -> None:
    wrong = 'a,,q1,2022-01-05,,3,0,"[0.5, 0.375, 0.125]",0,,,\n'
    right = "b,,q1,2022-01-05,,3,1,,2,,,\n"
    for source, files in {
        "one": [wrong + right], "after": [wrong, right], "before": [right, wrong]
    }.items():  # fmt: skip
        for rows in files:
            give(rows, MORE, source=source)
    rows = peek("from internal.judged_answers where model = 'a'")
    assert [(row["p_correct"], row["brier"]) for row in rows] == [(0.125, 1.15625)] * 3
    assert give(wrong, MORE, source="after") == 0


def test_ties_need_no_outcome(give: Any, peek: Any) -> None:
    give('a,,q1,2022-01-05,,2,0,"[0.5, 0.5]",,,,\na,,q2,2022-01-05,,4,1,0.5|0.5|0|0,,,,\n', MORE)
    assert [row["p_correct"] for row in peek("from internal.judged_answers")] == [0.5, 0.5]
