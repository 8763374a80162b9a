import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Tidemark = Callable[..., Any]


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
