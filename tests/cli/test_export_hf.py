"""`tidemark export hf`: open months only, as a data set that the hub's own library reads."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import datasets
import pytest
from huggingface_hub import DatasetCard

Tidemark = Callable[..., Any]
OPEN = ("CC-BY-4.0", "http://creativecommons.org/licenses/by/4.0/")
CLOSED = "http://arxiv.org/licenses/nonexclusive-distrib/1.0/"


@pytest.fixture
def imported(tidemark: Tidemark, tmp_path: Path) -> None:
    """Two open months of one source, and a month of another with one closed text."""
    months = [("o:pen", "2024-02", OPEN), ("o:pen", "2024-03", OPEN[:1])]
    for source, month, licences in [*months, ("mixed", "2024-02", (OPEN[0], CLOSED))]:
        rows = [
            {"text": f"2024-01-0{number} {source} in {month}, é 🙂", "licence": licence,
             "title": "42", "event_time": f"{month}-0{number}"}
            for number, licence in enumerate(licences, 1)
        ]  # fmt: skip
        file = tmp_path / "texts.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        named = ("--source", source, "--month", month, "--min-chars", "1")
        ran = tidemark("import", "texts", file, *named)
        assert ran.code == 0, ran.err


@pytest.mark.long
def test_open_months_are_a_data_set_and_others_are_named(
    tidemark: Tidemark, imported: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "set"
    ran = tidemark("export", "hf", "--output", folder)
    assert ran.code == 0, ran.err
    assert "3 documents of 2 months" in ran.out
    assert "mixed 2024-02 has 1 documents whose licence is not known as open" in ran.err
    assert CLOSED in ran.err
    card = DatasetCard.load(folder / "README.md")
    [config] = card.data.to_dict()["configs"]
    assert len(config["data_files"]) == 2
    rows = datasets.load_dataset(
        str(folder), config["config_name"], split="train", cache_dir=str(tmp_path / "cache")
    ).to_list()
    assert [row["text"] for row in rows] == [
        "2024-01-01 o:pen in 2024-02, é 🙂",
        "2024-01-02 o:pen in 2024-02, é 🙂",
        "2024-01-01 o:pen in 2024-03, é 🙂",
    ]
    assert {row["title"] for row in rows} == {"42"}
    assert [str(row["month"]) for row in rows] == ["2024-02-01", "2024-02-01", "2024-03-01"]
    assert [row["licence"] for row in rows] == [*OPEN, OPEN[0]]
    assert {row["simulated"] for row in rows} == {False}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (("--source", "mixed"), "mixed 2024-02 has 1 documents"),
        (("--source", "o:pen", "--source", "mixed"), "mixed 2024-02 has 1 documents"),
        (("--source", "nosuch"), "nothing is sealed"),
        (("--month", "2023-01"), "nothing is sealed"),
    ],
)
def test_what_is_not_open_or_not_there_is_refused(
    tidemark: Tidemark, imported: None, tmp_path: Path, given: tuple[str, ...], says: str
) -> None:
    folder = tmp_path / "set"
    ran = tidemark("export", "hf", "--output", folder, *given)
    assert ran.code == 2
    assert says in ran.err
    assert not folder.exists()
