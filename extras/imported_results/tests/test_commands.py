"""Commands `land rates`, `land benchmarks` and `land answers`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import home, own_environment, tidemark
from tests.tiers import needs_extra

__all__ = ["home", "own_environment", "tidemark"]

Tidemark = Callable[..., Any]
RATES = "model,source,month,compression_rate\n"
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


@pytest.mark.slow
def test_rates(tidemark: Tidemark, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(RATES + "gpt2,arxiv,2017-01,0.125\ngpt2,arxiv,2024-01,0.25\n")
    ran = tidemark("land", "rates", path, "--reference", "A paper")
    assert (ran.code, ran.out, ran.err) == (0, "2 rates landed\n", "")
    # The catalogue's cutoff splits the rows, and its category groups them.
    sql = "select protocol, bits_per_byte_gap from train_test_gap where scope = 'source'"
    ran = tidemark("sql", sql, "--format=json")
    assert json.loads(ran.out) == [{"protocol": "published", "bits_per_byte_gap": 1.0}]
    ran = tidemark("sql", "select source, category from sources", "--format=json")
    assert json.loads(ran.out) == [{"source": "arxiv", "category": "science"}]
    before = tidemark("sql", "from internal.published_rates order by all").out
    tidemark("land", "rates", path).expect(0, out="0 rates landed, 2 were landed already\n")
    assert tidemark("sql", "from internal.published_rates order by all").out == before


@pytest.mark.slow
def test_a_mix_up_of_units_changes_nothing(tidemark: Tidemark, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(RATES + "a,wiki,2024-01,7.825\n")
    ran = tidemark("land", "rates", path)
    assert (ran.code, ran.out) == (1, "")
    assert "row 1: compression_rate is '7.825'" in ran.err and "--percent" in ran.err
    assert not (home / "warehouse.duckdb").exists()
    assert tidemark("land", "rates", path, "--percent").out == "1 rates landed\n"
    path.write_text(RATES + "a,wiki,2024-01,8\n")
    tidemark("land", "rates", path, "--percent").expect(1, "--replace")
    assert tidemark("land", "rates", path, "--percent", "--replace").out == "1 rates landed\n"


@needs_extra("papers")
@pytest.mark.long
def test_scores(tidemark: Tidemark, tmp_path: Path) -> None:
    scores = tmp_path / "scores.csv"
    rates = tmp_path / "rates.csv"
    rates.write_text(RATES + "a,w,2024-01,0.1\nb,w,2024-01,0.2\nc,w,2024-01,0.3\n")
    scores.write_text("model,benchmark,score,shots\na,mmlu,60,5\nb,mmlu,50,5\nc,mmlu,40,5\n")
    assert tidemark("land", "rates", rates).code == 0
    ran = tidemark("land", "benchmarks", scores)
    assert (ran.code, ran.out) == (0, "3 scores loaded\nignored columns: shots\n")
    assert tidemark("land", "benchmarks", scores).out.startswith("0 scores loaded, 3 were loaded")
    query = "select num_models, spearman from papers.benchmark_correlation where scope = 'source'"
    ran = tidemark("sql", query, "--format=json")
    assert json.loads(ran.out) == [{"num_models": 3, "spearman": -1.0}]
