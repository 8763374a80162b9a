import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Tidemark = Callable[..., Any]

RATES = "model,source,month,compression_rate\n"


@pytest.mark.slow
def test_rates(tidemark: Tidemark, home: Path, tmp_path: Path) -> None:
    path = tmp_path / "rates.csv"
    path.write_text(RATES + "gpt2,arxiv,2017-01,0.125\ngpt2,arxiv,2024-01,0.25\n")
    ran = tidemark("land", "rates", path, "--reference", "A paper")
    assert (ran.code, ran.out, ran.err) == (0, "2 rates landed\n", "")
    # The catalogue's cutoff splits the rows, and its category groups them.
    ran = tidemark("sql", "select protocol, bits_per_byte_gap from train_test_gap", "--format=json")
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


@pytest.mark.long
def test_scores(tidemark: Tidemark, tmp_path: Path) -> None:
    scores, rates = tmp_path / "scores.csv", tmp_path / "rates.csv"
    rates.write_text(RATES + "a,w,2024-01,0.1\nb,w,2024-01,0.2\nc,w,2024-01,0.3\n")
    scores.write_text("model,benchmark,score,shots\na,mmlu,60,5\nb,mmlu,50,5\nc,mmlu,40,5\n")
    assert tidemark("land", "rates", rates).code == 0
    ran = tidemark("land", "benchmarks", scores)
    assert (ran.code, ran.out) == (0, "3 scores loaded\nignored columns: shots\n")
    assert tidemark("land", "benchmarks", scores).out.startswith("0 scores loaded, 3 were loaded")
    query = "select num_models, spearman from benchmark_correlation where scope = 'source'"
    ran = tidemark("sql", query, "--format=json")
    assert json.loads(ran.out) == [{"num_models": 3, "spearman": -1.0}]


@pytest.mark.long
def test_a_bad_file_changes_nothing_and_good_neighbours_land(
    tidemark: Tidemark, losses_file: Callable[..., Path], dump: Any, tmp_path: Path, home: Path
) -> None:
    good = [losses_file("good"), losses_file("fine")]
    assert tidemark("land", "losses", *good, at=tmp_path / "only-good").code == 0
    bad = losses_file("bad", broken=41)
    text = tmp_path / "text.parquet"
    text.write_text("model,nll_nats\n")
    missing = tmp_path / "missing.parquet"
    ran = tidemark("land", "losses", good[0], bad, text, missing, tmp_path, good[1])
    assert ran.code == 1
    assert ran.out == "2 of 6 files landed\n"
    failures = ran.err.splitlines()
    assert len(failures) == 4
    assert f"{bad}: row 41: nll_nats must be >= 0" in failures[0]
    for path, failure in zip((text, missing, tmp_path), failures[1:], strict=True):
        assert f"{path} cannot be read as Parquet" in failure
    assert dump() == dump(tmp_path / "only-good")


@pytest.mark.long
def test_only_bad_files_publish_nothing(
    tidemark: Tidemark, losses_file: Callable[..., Path], home: Path
) -> None:
    tidemark("land", "losses", losses_file("bad", broken=0)).expect(1, out="0 of 1 file landed\n")
    assert not (home / "warehouse.duckdb").exists()


@pytest.mark.slow
def test_other_losses_need_replace(
    tidemark: Tidemark, losses_file: Callable[..., Path], dump: Any
) -> None:
    file = losses_file("foreign")
    assert tidemark("land", "losses", file, file).out == "2 of 2 files landed\n"
    before = dump()
    losses_file("foreign", nll_nats=3.0)
    tidemark("land", "losses", file).expect(
        1, "disagrees with what is landed: model=foreign", "--replace"
    )
    assert dump() == before
    assert tidemark("land", "losses", file, "--replace").code == 0
    assert dump() != before


def test_a_start_token_is_chosen_and_a_set_is_cut(
    tidemark: Callable[..., Any], tiny_model: Path, tmp_path: Path
) -> None:
    raw, cut = tmp_path / "raw.jsonl", tmp_path / "cut.jsonl"
    records = [
        {"content": text, "category": "news"} for text in (" cafe\u0301", "The tide. " * 5000)
    ]
    raw.write_text("\n".join(map(json.dumps, records)))
    assert tidemark("protocols", "cut", raw, cut, "--tokenizer", tiny_model).out == "2 texts\n"
    texts = [json.loads(line)["content"] for line in cut.read_text().splitlines()]
    assert texts[0] == "café"
    assert 1000 < len(texts[1]) < 40_000

    cut.write_text("\n".join(map(json.dumps, [{"content": "café"}, {"content": "The tide."}])))
    ran = tidemark("protocols", "choose", tiny_model, cut, "--chunk", "16")
    assert (ran.code, ran.err) == (0, "")
    assert "uncheatable-add-newline-16" in ran.out
    ran = tidemark("protocols", "choose", "control:zstd", cut)
    assert "choose a start token for a language model" in ran.err
