"""Command `land answers`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import home, own_environment, tidemark

__all__ = ["home", "own_environment", "tidemark"]

Tidemark = Callable[..., Any]
ANSWERS = """\
model,release_date,question_id,opened,closed,num_options,is_correct,mood
m,2023-01-01,q1,2022-01-05,2022-03-01,2,1,good
m,2023-01-01,q2,2024-01-05,2024-03-01,2,0,good
"""


@pytest.mark.smoke
def test_answers_land_and_are_published(tidemark: Tidemark, tmp_path: Path) -> None:
    file = tmp_path / "answers.csv"
    file.write_text(ANSWERS, encoding="utf-8")
    ran = tidemark("land", "answers", file, "--source", "gjo")
    ran.expect(0, out="2 answers landed\nignored columns: mood\n")
    again = tidemark("land", "answers", file, "--source", "gjo")
    again.expect(0, out="0 answers landed, 2 were landed already\nignored columns: mood\n")
    sql = "select question_id, is_correct from forecast_answers order by question_id"
    rows = json.loads(tidemark("sql", sql, "--format", "json").expect(0).out)
    assert rows == [
        {"question_id": "q1", "is_correct": True},
        {"question_id": "q2", "is_correct": False},
    ]


def test_options_by_text_need_questions(tidemark: Tidemark, home: Path) -> None:
    ran = tidemark("land", "answers", "answers.csv", "--options-by-text")
    ran.expect(2, "--options-by-text is of the questions of --questions", out="")
    assert not (home / "warehouse.duckdb").exists()
