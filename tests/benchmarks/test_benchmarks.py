"""Each benchmark at a tiny size, to find broken ones; their figures are not tested."""

import functools
import re
import time
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from transformers import PreTrainedModel

from benchmarks import crawling, site
from benchmarks.__main__ import main
from benchmarks.measure import Contender, Report, Timing, as_markdown, measure, peak_rss, ratios
from benchmarks.scoring import byte_classes, generation, gpu, options
from benchmarks.scoring import losses as scoring
from benchmarks.scoring.shapes import SHAPES, Shape, make_model, make_texts, make_tokenizer
from benchmarks.warehouse import generated_losses
from benchmarks.warehouse import landing as warehouse
from core.errors import BatchTooLarge, ModelError, NotMeasurable
from core.schemas.tables import LOSSES
from core.schemas.validation import validate
from crawlers.registry import list_sources
from tests.loopback import wait_for


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
        wait_for(lambda: peak[0] - before > 2**25)
        del held


def test_a_ratio_is_taken_within_each_round() -> None:
    ours, plain = timing("ours", 1, 2, 4, baseline="plain"), timing("plain", 2, 6, 4)
    assert ratios(ours, plain) == [2, 3, 1]
    text = as_markdown(Report("scoring", "Conditions.", (ours, plain)))
    assert "| ours | 2.000 | 2.000 | 500 rows/s | 2.00 (1.00–3.00) × plain | 1 MiB |" in text
    assert "| plain | 4.000 | 4.000 | 250 rows/s | – | 1 MiB |" in text


@pytest.mark.slow
def test_every_source_is_crawled_and_text_is_cleaned() -> None:
    [report] = crawling.run(rounds=1, stories=6)
    names = {t.contender.name for t in report.timings}
    assert {f"crawl {source}" for source in list_sources()} <= names
    assert {"clean prose", "clean prose in HTML", "clean code", "bare arxiv"} <= names
    assert all(amount > 0 for t in report.timings for amount in t.contender.amounts.values())


def test_html_of_the_cleaning_benchmark_is_cleaned_away() -> None:
    cleaned = crawling.clean(crawling._as_html("One thing & another. It ended."))
    assert cleaned == "“One thing & another.\xa0It ended.”"


def test_memory_that_was_measured_one_by_one_is_compared() -> None:
    ours, plain = timing("ours", 1, baseline="plain"), timing("plain", 2)
    own = {"ours": 3 * 2**20, "plain": 4 * 2**20}
    text = as_markdown(Report("scoring", "Conditions.", (ours, plain), "its own", own))
    assert "(range) | its own |" in text
    assert "× plain | 3 MiB (0.75 ×) |" in text
    assert "| – | 4 MiB |" in text


needs_lm_eval = pytest.mark.skipif(find_spec("lm_eval") is None, reason="lm-eval is not installed")


@pytest.mark.slow
@needs_lm_eval
def test_scoring_compares_equal_work() -> None:
    [report] = scoring.run(rounds=1, texts=2, shapes=["llama-toy"])
    jobs = [t.contender.name.removeprefix("llama-toy: ") for t in report.timings]
    assert re.fullmatch("lm-eval, batch [1248]", jobs[0])
    assert jobs[1:] == [
        "ours, disjoint-1024",
        "ours, lm-eval-1024",
        "plain loop, sliding-1024-256",
        "ours, sliding-1024-256",
    ]
    tokens = {t.contender.amounts["tokens"] for t in report.timings}
    assert len(tokens) == 1
    assert 1000 < tokens.pop() < 3000
    assert all(size > 2**27 for size in (report.separate_memory or {}).values())
    assert "× llama-toy: plain loop, sliding-1024-256 |" in as_markdown(report)


@pytest.mark.long
def test_sums_by_class_are_held_against_a_pass() -> None:
    [verdict] = byte_classes.run(rounds=1, texts=1, shapes=["llama-toy"])
    assert list(verdict.rows) == [
        "llama-toy: share of a pass, by processor time",
        "llama-toy: the pass takes so many times as long",
    ]
    assert list(verdict.conditions) == [
        "with llama-toy, at most 3% of the processor time of a pass"
    ]


@pytest.mark.slow
@needs_lm_eval
def test_options_are_scored_by_both_before_they_are_timed() -> None:
    report, verdict = options.run(rounds=1, questions=10, shapes=["llama-toy"])
    assert isinstance(report, Report)
    jobs = [timing.contender.name.removeprefix("llama-toy, ") for timing in report.timings]
    assert [job.partition(":")[0] for job in jobs] == ["text", "text", "letter", "letter"]
    assert "10 questions; text: prompts of 2" in report.conditions
    assert "at least 2.0 with options of several tokens" in str(verdict)


@pytest.mark.slow
@needs_lm_eval
def test_the_gpu_benchmark_runs_on_a_processor(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "_BUDGETS", (4096, 8192))
    monkeypatch.setattr(gpu, "_BATCHES", (1, 2))

    def make(shape: Shape, device: str, dtype: torch.dtype) -> PreTrainedModel:
        if shape is SHAPES["llama-7b"]:
            raise torch.OutOfMemoryError("the card is full")
        return make_model(shape, device, dtype)

    monkeypatch.setattr(gpu, "make_model", make)
    arguments = "--device cpu --shapes llama-7b llama-toy --texts 3 --rounds 1"
    assert gpu.main(arguments.split()) == 0
    printed = capsys.readouterr().out
    assert "### llama-7b\n\nNo figures: the card is full" in printed
    assert "### llama-toy" in printed
    assert re.search(r"\| ours, uncheatable-2048 \|.* × chunk by chunk", printed)
    assert re.search(r"- ours, disjoint-2048, \S+ tokens a batch: .* TFLOP/s, \d+%", printed)


def test_operations_are_counted_by_hand() -> None:
    """24 tokens: one window of 24 inputs; 2 layers of 32 numbers."""
    tokenizer = make_tokenizer()
    text = tokenizer.decode(tokenizer(make_texts(1)[0])["input_ids"][:24])
    model = make_model(SHAPES["llama-toy"], "cpu", torch.float32)
    work = gpu.count_work(gpu.Setup(model, tokenizer, torch.device("cpu"), [text]))
    weights = 2 * (4 * 32 * 32 + 3 * 32 * 64 + 2 * 32) + 32 + 32 * 2048
    assert work.num_tokens == 24
    assert work.operations == 2 * weights * 24 + 4 * 32 * 2 * (24 * 25 / 2)


@pytest.mark.parametrize("full", [torch.OutOfMemoryError, BatchTooLarge, NotMeasurable])
def test_the_search_for_the_fastest_batch_stops_at_what_does_not_fit(
    full: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock_s = [0.0]
    monkeypatch.setattr(scoring.time, "perf_counter", lambda: clock_s[0])

    def score(texts: object, size: int) -> list[float]:
        if size == 4:
            raise full("full")
        if size > 4:
            raise AssertionError("goes on after what does not fit")
        clock_s[0] += 2.0 / size
        return []

    choices = {size: functools.partial(score, size=size) for size in (1, 2, 4, 8)}
    assert scoring.fastest(choices, ["text"])[0] == 2
    with pytest.raises(ModelError, match="no batch of 4"):
        scoring.fastest({4: choices[4]}, ["text"])


def test_scoring_refuses_to_compare_unequal_work() -> None:
    scoring.check_same("sliding", [10.0, 20.0], [10.00001, 20.0], 1e-5)
    for other in ([10.0, 20.1], [10.0, float("nan")]):
        with pytest.raises(ModelError, match="sliding"):
            scoring.check_same("sliding", [10.0, 20.0], other, 1e-5)


@pytest.mark.slow  # `make bench` runs both
@pytest.mark.long
def test_landing_and_the_bare_insert_take_the_same_rows(tmp_path: Path) -> None:
    path = tmp_path / "losses.parquet"
    num_rows = warehouse.generate(path, rows=60_000)
    table = validate(pq.read_table(path), LOSSES)
    assert table.num_rows == num_rows
    assert len(table["document_id"].unique()) == 2 * 6 * 83
    for job in (warehouse.insert_bare, warehouse.land_without_replicates):
        home = tmp_path / job.__name__
        home.mkdir()
        assert job(home, path) == num_rows
    assert warehouse.land(tmp_path, path) > 0


@pytest.fixture
def small_world(monkeypatch: pytest.MonkeyPatch) -> None:
    """Losses of 144 cells instead of 6,972, for any number of rows, made in this process."""
    sizes = {"NUM_MODELS": 3, "NUM_SOURCES": 2, "NUM_MONTHS": 24}
    for name, size in sizes.items():
        monkeypatch.setattr(generated_losses, name, size)

    def generate(path: Path, rows: int) -> int:
        return generated_losses.write_losses(path, rows)[1]

    monkeypatch.setattr(warehouse, "generate", generate)


@pytest.mark.slow
@pytest.mark.usefixtures("small_world")
def test_the_runner_prints_what_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["warehouse", "--rows", "12000", "--rounds", "1"]) == 0
    printed = capsys.readouterr()
    assert "- Command: `python -m benchmarks warehouse --rows 12000 --rounds 1`" in printed.out
    assert re.search(r"\| land_file \|.* rows/s \| 0\.\d+ .* × bare insert \|", printed.out)
    assert re.search(r"\| monthly_loss \|.* × polars: monthly_loss \|", printed.out)
    assert re.search(r"\| headline at .* rows \|.* × headline \|", printed.out)
    assert "### crawling" not in printed.out
    assert "round 1: land_file" in printed.err


@pytest.mark.parametrize("wrong", [["speed"], ["--rows", "0"], ["--rounds", "many"]])
def test_the_runner_refuses_what_it_does_not_know(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(wrong)
    assert wrong[-1] in capsys.readouterr().err


@pytest.mark.slow
def test_texts_are_written_by_all_before_they_are_timed() -> None:
    report, verdict = generation.run(rounds=1, prompts=4, shapes=["llama-toy"])
    assert isinstance(report, Report)
    jobs = [timing.contender.name for timing in report.timings]
    assert jobs == [
        "llama-toy: transformers, one prompt at a time",
        "llama-toy: transformers, batches",
        "llama-toy: ours",
    ]
    assert "4 prompts of " in report.conditions
    assert "not slower than transformers' batches" in str(verdict)


@pytest.mark.slow
def test_the_site_is_measured() -> None:
    verdict = site.run(1, 2)[0]
    assert verdict.conditions["pages and assets are at most 5 MB"]
    assert "of processor time" in verdict.rows["quickest of the builds"]
