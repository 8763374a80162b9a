import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import MalformedInput, SchemaMismatch
from core.settings import Settings
from extras.imported_results.answers import land_answer_table
from extras.imported_results.freshbench import read_freshbench

HEADER = "Model_x,Release Date,model,Question,Model_y,Start Time,End Time,Acc,Right Possibility\n"
WHO = "m,2023-08-24,m"
LATER = "This Question is proposed on 2024-02-09. "
ANSWERS = (
    f"{WHO},Who wins?,m,2023-01-05,2023-02-05,1,0.75\n"
    f'{WHO},"{LATER}Who wins?",m,2024-02-09,2024-03-06,0.0,0.2\n'
)
ASKED = [("2023-01-05", "2023-02-05", 2), ("2024-02-09", "2024-03-06", 5)]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Write FreshBench's columns: one question that was asked twice, with 2 and 5 options."""
    answers = tmp_path / "gjo_m.csv"
    questions = tmp_path / "gjo.json"
    answers.write_text(HEADER + ANSWERS, encoding="utf-8")
    lines = [
        {
            "Question": "Who wins?", "Started_time": opened, "Closed_time": closed,
            "Tags_list": ["Sports", "Polls"], "choices": [f"{n}" for n in range(num_options)],
            "Possible_Answers_dict": {"0": {"Correct?": True}}, "Description": "",
        }
        for opened, closed, num_options in ASKED
    ]  # fmt: skip
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return answers, questions


@pytest.mark.parametrize(("by_text", "num_options"), [(False, [2, 5]), (True, [5, 5])])
def test_freshbench_columns_land(
    settings: Settings, files: Any, peek: Any, by_text: bool, num_options: list[int]
) -> None:
    landed = land_answer_table(settings, read_freshbench(*files, by_text), "gjo")
    assert (landed.num_changed, landed.ignored) == (2, ("Model_x", "Model_y"))
    rows = peek("from internal.judged_answers order by opened")
    assert [(r["is_correct"], r["p_correct"]) for r in rows] == [(True, 0.75), (False, 0.2)]
    assert [r["num_options"] for r in rows] == num_options
    assert [r["is_before_release"] for r in rows] == [True, False]
    assert rows[0]["tags"] == ["Sports", "Polls"]


def test_what_is_not_freshbench_is_refused(files: Any) -> None:
    answers, questions = files
    lines = questions.read_text(encoding="utf-8").splitlines()
    questions.write_text(lines[0], encoding="utf-8")
    with pytest.raises(SchemaMismatch, match="row 2: .*no question 'Who wins.*1 rows have none"):
        read_freshbench(answers, questions, False)
    for text in ('{"Question": 5}', "[[[[", '{"choices": {"a": 1}}', "[" * 50_000):
        questions.write_text(text, encoding="utf-8")
        with pytest.raises(MalformedInput, match="cannot be read as JSON lines"):
            read_freshbench(answers, questions, False)
    with pytest.raises(MalformedInput, match="No such file"):
        read_freshbench(answers, answers.parent / "none", False)
    with pytest.raises(SchemaMismatch, match="lacks Release Date"):
        answers.write_text("model\nm\n", encoding="utf-8")
        read_freshbench(answers, questions, False)
