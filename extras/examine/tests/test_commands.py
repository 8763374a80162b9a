import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.month import Month, month_range
from core.settings import Settings
from core.storage.store import Store
from extras.examine import examination
from extras.examine.examination import ExamineRequest
from extras.examine.rendering import _interval
from extras.examine.sampling import LEAST_BYTES
from tests.seals import Sealer

Tidemark = Callable[..., Any]


@pytest.fixture
def text(seal: Sealer) -> None:
    for month in month_range(Month("2023-01"), Month("2023-09")):
        seal("posts", str(month), words=f"{month} sand and tide, ", num=12)


def test_a_home_without_text_names_the_command_that_brings_some(
    tidemark: Tidemark, tiny_model: Path
) -> None:
    ran = tidemark("examine", tiny_model)
    assert ran.code == 2
    assert "`tidemark crawl --source git_posts:" in ran.err


@pytest.mark.usefixtures("text")
def test_other_sources_name_those_that_are_here(tidemark: Tidemark, tiny_model: Path) -> None:
    tidemark("examine", tiny_model, "--source", "news").expect(2, "(here: posts)")
    tidemark("examine", tiny_model, "--source", "pots").expect(2, "did you mean posts?")
    tidemark("examine", "control:zstd").expect(2, "no training data")


@pytest.mark.long
@pytest.mark.usefixtures("text")
def test_a_folder_of_weights_gets_an_answer_and_its_next_step(
    tidemark: Tidemark, tiny_model: Path, home: Path, store: Store
) -> None:
    """Weights that were never trained have no cutoff, and every figure says why it is missing."""
    ran = tidemark("examine", tiny_model, "--minutes", "0.5", "--json")
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    assert answer["plan"]["months"][0::8] == ["2023-01", "2023-09"]
    assert answer["plan"]["companions"] == []
    assert [each.partition(":")[0] for each in answer["cannot_be_told"]] == [
        "gap", "ageing, and what other models feel of the same months",
    ]  # fmt: skip
    assert answer["cutoff"]["estimated_cutoff"] is None
    assert answer["cutoff"]["reason"]
    assert answer["next_steps"]
    levels = {row["model"]: row["bits_per_byte"] for row in answer["level"]}
    assert set(levels) == {"tiny", "control:zstd", "control:xz"}
    assert 7.5 < levels["tiny"] < 8.5  # 257 tokens of equal probability: 8.006 bits a byte
    assert answer["cost"]["num_tokens"] > 0
    assert answer["simulated"] == []
    assert Path(answer["page"]).exists()
    [sample] = (home / "work" / "examine").iterdir()
    assert not (sample / "corpus").exists()  # one place for a takedown
    assert not store.exists("warehouse.duckdb")  # the figures of whole months are elsewhere


@pytest.mark.smoke
@pytest.mark.usefixtures("text")
def test_a_plan_loads_the_model_and_scores_nothing(
    tidemark: Tidemark, tiny_model: Path, home: Path
) -> None:
    ran = tidemark("examine", tiny_model, "--plan", "--cutoff", "2023-05")
    assert ran.code == 0, ran.err
    assert "2023-01 to 2023-09 (9 months) of posts" in ran.out
    assert "no other language model is on this machine" in ran.out
    assert "gap: no interval of 5 months up to the cutoff and 4 after it" in ran.out
    assert not (home / "work" / "examine").exists()


@pytest.mark.usefixtures("text")
def test_the_time_of_the_plan_counts(
    tiny_model: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 137.0])
    monkeypatch.setattr(examination, "time", SimpleNamespace(monotonic=clock.__next__))
    planned = examination.plan_examination(ExamineRequest(str(tiny_model), 0.5), settings)
    assert planned.planning_minutes == 137 / 60
    assert planned.sample.quota == LEAST_BYTES  # nothing is left of 30 seconds


def test_the_reason_of_a_missing_interval_is_told_once() -> None:
    row = {"gap_low": None, "gap_high": None, "reason": "no interval: 2 months; 3 are needed"}
    assert _interval(row, "gap") == "no interval: 2 months; 3 are needed"
    assert _interval(row | {"reason": "a single month"}, "gap") == "no interval: a single month"
    assert _interval(row | {"reason": None}, "gap") == "no interval"
    assert _interval({"gap_low": 0.1, "gap_high": 0.2}, "gap") == "95 % interval 0.100 to 0.200"
