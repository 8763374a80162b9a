"""Each benchmark at a tiny size, so that none rots; what their figures are worth is not tested."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks import crawling, landing, scoring
from benchmarks.__main__ import SIZES, main
from benchmarks.measure import Contender, Report, Timing, as_markdown, measure, peak_rss, ratios
from core.errors import ModelError
from core.schemas import LOSSES, validate
from crawlers.contract import list_sources
from models.protocols import get_protocol


def timing(name: str, *seconds: float, baseline: str | None = None) -> Timing:
    contender = Contender(name, lambda _: None, {"rows": 1000.0}, baseline)
    return Timing(contender, seconds, seconds, 2**20)


def test_rounds_are_interleaved_and_each_begins_with_another() -> None:
    order: list[str] = []
    folders: list[Path] = []

    def run_as(name: str) -> Contender:
        def run(folder: Path) -> None:
            order.append(name)
            folders.append(folder)
            assert list(folder.iterdir()) == []
            (folder / "left behind").touch()

        return Contender(name, run, {"rows": 1.0})

    timings = measure([run_as("a"), run_as("b"), run_as("c")], rounds=2)
    assert "".join(order) == "abcbcacab"  # the first round is not counted
    assert [len(t.seconds) for t in timings] == [2, 2, 2]
    assert not any(folder.exists() for folder in folders)


def test_time_is_the_run_s_own() -> None:
    sleeper = Contender("sleeper", lambda _: time.sleep(0.05), {"rows": 1.0})
    (slept,) = measure([sleeper], rounds=1)
    assert slept.median_s >= 0.05
    assert slept.cpu_seconds[0] < slept.seconds[0]


def test_memory_is_seen_while_it_is_held() -> None:
    with peak_rss() as peak:
        before = peak[0]
        held = bytearray(b"x" * 2**26)
        time.sleep(0.2)
        del held
    assert peak[0] - before > 2**25


def test_a_ratio_is_taken_within_each_round() -> None:
    ours, plain = timing("ours", 1, 2, 4, baseline="plain"), timing("plain", 2, 6, 4)
    assert ratios(ours, plain) == [2, 3, 1]
    text = as_markdown(Report("scoring", "Conditions.", (ours, plain)))
    assert "| ours | 2.000 | 2.000 | 500 rows/s | 2.00 (1.00–3.00) × plain | 1 MiB |" in text
    assert "| plain | 4.000 | 4.000 | 250 rows/s | – | 1 MiB |" in text


def test_every_source_is_crawled_and_text_is_cleaned() -> None:
    report = crawling.run(rounds=1, stories=6)
    names = {t.contender.name for t in report.timings}
    assert {f"crawl {source}" for source in list_sources()} <= names
    assert {"clean prose", "clean prose in HTML", "clean code", "bare arxiv"} <= names
    assert all(amount > 0 for t in report.timings for amount in t.contender.amounts.values())


def test_html_of_the_cleaning_benchmark_is_cleaned_away() -> None:
    cleaned = crawling.clean(crawling._as_html("One thing & another. It ended."))
    assert cleaned == "“One thing & another.\xa0It ended.”"


def test_scoring_compares_equal_work(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"n_layer": 1, "n_embd": 32, "n_head": 2, "n_positions": 1024, "vocab_size": 2048}
    monkeypatch.setitem(scoring.SHAPES, "toy", ("gpt2", sizes))
    report = scoring.run(rounds=1, texts=2, shape="toy")
    tokens = {t.contender.name: t.contender.amounts["tokens"] for t in report.timings}
    assert list(tokens) == [
        f"{who}, {protocol}" for protocol in scoring.PROTOCOLS for who in ("ours", "plain loop")
    ]
    assert len(set(tokens.values())) == 1  # both protocols score every token once
    assert 1000 < tokens["ours, disjoint-1024"] < 3000


def test_scoring_refuses_to_compare_unequal_work() -> None:
    protocol = get_protocol("disjoint-1024")
    scoring._check_same([10.0, 20.0], [10.00001, 20.0], protocol)
    for other in ([10.0, 20.1], [10.0], [10.0, float("nan")]):
        with pytest.raises(ModelError, match="disjoint-1024"):
            scoring._check_same([10.0, 20.0], other, protocol)


def test_landing_and_the_bare_insert_take_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "losses.parquet"
    num_documents, num_rows = landing.write_losses(path, rows=4000)
    table = validate(pq.read_table(path), LOSSES)
    assert table.num_rows == num_rows
    assert len(table["document_id"].unique()) == num_documents * 100
    for job in (landing.insert_bare, landing.land, landing.land_without_replicates):
        home = tmp_path / job.__name__
        home.mkdir()
        assert job(home, path) == num_rows


def test_the_runner_prints_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["landing", "--rows", "400", "--rounds", "1"]) == 0
    printed = capsys.readouterr()
    assert "- Command: `python -m benchmarks landing --rows 400 --rounds 1`" in printed.out
    assert re.search(r"\| land_file \|.* rows/s \| 0\.\d+ .* × bare insert \|", printed.out)
    assert "### crawling" not in printed.out
    assert "round 1: land_file" in printed.err


@pytest.mark.parametrize("wrong", [["speed"], ["--rows", "0"], ["--rounds", "many"]])
def test_the_runner_refuses_what_it_does_not_know(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(wrong)
    assert wrong[-1] in capsys.readouterr().err


def test_every_benchmark_has_a_size_and_a_module() -> None:
    folder = Path(crawling.__file__).parent
    assert all((folder / f"{name}.py").exists() for name in SIZES)
