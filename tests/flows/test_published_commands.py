"""Landing published rates and benchmark scores as a user types it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

Tidemark = Callable[..., Any]

RATES = "model,source,month,compression_rate\n"


def test_rates(tidemark: Tidemark, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(RATES + "gpt2,arxiv,2017-01,0.125\ngpt2,arxiv,2024-01,0.25\n")
    ran = tidemark("land-published", path, "--reference", "A paper")
    assert (ran.code, ran.out, ran.err) == (0, "2 rates landed\n", "")
    # The catalogue's cutoff splits them, and its category is there to group by.
    ran = tidemark("sql", "select protocol, bits_per_byte_gap from train_test_gap", "--format=json")
    assert json.loads(ran.out) == [{"protocol": "published", "bits_per_byte_gap": 1.0}]
    ran = tidemark("sql", "select source, category from sources", "--format=json")
    assert json.loads(ran.out) == [{"source": "arxiv", "category": "science"}]
    before = tidemark("sql", "from published_rates order by all").out
    ran = tidemark("land-published", path)
    assert (ran.code, ran.out) == (0, "0 rates landed, 2 were landed already\n")
    assert tidemark("sql", "from published_rates order by all").out == before


def test_a_mix_up_of_units_changes_nothing(tidemark: Tidemark, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(RATES + "a,wiki,2024-01,7.825\n")
    ran = tidemark("land-published", path)
    assert (ran.code, ran.out) == (1, "")
    assert "row 1: compression_rate is '7.825'" in ran.err and "--percent" in ran.err
    assert not (home / "warehouse.duckdb").exists()
    assert tidemark("land-published", path, "--percent").out == "1 rates landed\n"
    path.write_text(RATES + "a,wiki,2024-01,8\n")
    ran = tidemark("land-published", path, "--percent")
    assert ran.code == 1 and "--replace" in ran.err
    assert tidemark("land-published", path, "--percent", "--replace").out == "1 rates landed\n"


def test_scores(tidemark: Tidemark, tmp_path: Path) -> None:
    scores, rates = tmp_path / "scores.csv", tmp_path / "rates.csv"
    rates.write_text(RATES + "a,w,2024-01,0.1\nb,w,2024-01,0.2\nc,w,2024-01,0.3\n")
    scores.write_text("model,benchmark,score,shots\na,mmlu,60,5\nb,mmlu,50,5\nc,mmlu,40,5\n")
    assert tidemark("land-published", rates).code == 0
    ran = tidemark("load-benchmarks", scores)
    assert (ran.code, ran.out) == (0, "3 scores loaded\npassed over: columns shots\n")
    assert tidemark("load-benchmarks", scores).out.startswith("0 scores loaded, 3 were loaded")
    query = "select num_models, spearman from benchmark_correlation where scope = 'source'"
    ran = tidemark("sql", query, "--format=json")
    assert json.loads(ran.out) == [{"num_models": 3, "spearman": -1.0}]


def test_what_papers_print_is_there(tidemark: Tidemark, tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(RATES + "a,w,2024-01,0.1\n")
    tidemark("land-published", path)
    query = "select count(*) as n from published_figures where not unit_known and model = 'Phi-2'"
    assert json.loads(tidemark("sql", query, "--format=json").out) == [{"n": 4}]
