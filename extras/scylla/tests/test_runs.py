import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from core.settings import Settings
from extras.scylla.puzzle import list_puzzles, load_puzzle
from extras.scylla.scripted import ScriptedModel, wrong_answer
from extras.scylla.texts import probe_prompt, read_question
from reports.site.pages import puzzles as puzzle_pages
from simulator.server import serve_sites
from simulator.sites import openai_api
from tests.commands import TIDEMARK
from tests.flows.support.apis import rows, write_entry
from tests.list_writer import train_list_writer
from tests.loopback import wait_for
from tests.reports.site.pages import pages_alone
from tests.tiers import needs_extra

Tidemark = Callable[..., Any]
THREE = ("find_maximum", "sort_numbers", "two_sum")
ONE_A_LEVEL = ["find_maximum", "two_sum", "three_sum", "four_sum", "tsp"]
ITEMS = "16"  # shares of a quarter are whole numbers of items


@pytest.fixture
def few_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_PUZZLE_ITEMS", ITEMS)


def files(home: Path) -> dict[str, bytes]:
    folder = home / "puzzles"
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*.*"))}


@pytest.mark.long
@pytest.mark.smoke
@pytest.mark.parametrize(
    "puzzles",
    [ONE_A_LEVEL, pytest.param(list_puzzles(), marks=pytest.mark.slow)],
    ids=["one a level", "all"],
)
def test_what_is_planted_comes_out_of_all_stages(
    tidemark: Tidemark, few_items: None, home: Path, puzzles: list[str]
) -> None:
    models = ["-m", "scripted:small", "-m", "scripted:valley", "-m", "scripted:large"]
    chosen = [option for name in puzzles for option in ("-p", name)]
    with pages_alone(puzzle_pages):
        ran = tidemark("scylla", "run", *models, *chosen).expect(0)
    landed = 3 * len(puzzles)
    assert f"{landed * int(ITEMS):,} items a split solved, {landed} puzzles landed" in ran.out
    valley = rows(
        tidemark,
        "select level, id_accuracy, ood_accuracy, gap from internal.scylla_valley "
        "where model = 'scripted:valley' and ood_split = 'ood' and rules = 'strict' "
        "order by level",
    )
    assert [each["id_accuracy"] for each in valley] == [1, 1, 0.75, 0.5, 0.25]
    assert [each["ood_accuracy"] for each in valley] == [1, 0.75, 0.25, 0.25, 0.25]
    assert [each["gap"] for each in valley] == [0, 0.25, 0.5, 0.25, 0]
    critical = rows(
        tidemark,
        "select model, critical_level from scylla_critical_complexity "
        "where ood_split = 'ood' and rules = 'strict'",
    )
    assert {each["model"]: each["critical_level"] for each in critical} == {
        "scripted:small": 2, "scripted:valley": 3, "scripted:large": 4
    }  # fmt: skip
    page = home / "report" / "puzzles.html"
    assert "scripted:valley" in page.read_text() and "<svg" in page.read_text()
    written = page.stat().st_mtime_ns
    again = tidemark("scylla", "run", *models, *chosen)
    assert again.code == 0 and "0 items a split solved, 0 puzzles landed" in again.out
    assert str(page) in again.out.replace("\n", "")
    assert page.stat().st_mtime_ns == written, "nothing is new"
    shown = tidemark("scylla", "show", "-m", "scripted:valley")
    assert shown.code == 0 and "scripted:valley" in shown.out
    shown = tidemark("scylla", "show", "-m", "scripted:valley", "-p", "two_sum")
    assert shown.code == 0 and "The answer is [" in shown.out
    unknown = tidemark("scylla", "show", "-m", "nobody", "-p", "two_sum")
    assert unknown.code == 2 and "'nobody'" in unknown.err and "scripted:large" in unknown.err
    tidemark("scylla", "show", "-p", "two_sums").expect(2, "two_sums", "three_sum")


@pytest.mark.slow
def test_any_number_of_workers_makes_the_same_bytes(
    tmp_path: Path, prefect_api: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from flows.work import work

    made = []
    for workers in (1, 4):
        home = tmp_path / str(workers)
        settings = Settings(
            home=str(home), puzzle_items=8, in_flight=workers, max_document_bytes=10**6
        )
        monkeypatch.setattr("flows.work.worker_settings", lambda settings=settings: settings)
        state = work(
            verb="solve", models=["scripted:valley"], puzzles=ONE_A_LEVEL, return_state=True
        )
        assert state.name == "Completed", state
        made.append(files(home))
    assert made[0] == made[1] and len(made[0]) == 2 * len(ONE_A_LEVEL)


@pytest.mark.slow  # scripted models go through the same stages in make test
def test_a_trained_model_goes_through_all_stages_and_an_untrained_one_says_why_not(
    tidemark: Tidemark, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = train_list_writer(tmp_path / "writer")
    train_list_writer(tmp_path / "beginner", steps=1)
    chosen = [option for name in THREE for option in ("-p", name)]
    monkeypatch.setenv("TIDEMARK_PUZZLE_COMPLETIONS", "128")
    monkeypatch.setenv("TIDEMARK_PUZZLE_ITEMS", "64")
    ran = tidemark("scylla", "run", "-m", writer, "-m", tmp_path / "beginner", *chosen).expect(0)
    cells = rows(tidemark, "select * from internal.scylla_cells order by model, puzzle")
    assert [(c["model"], c["puzzle"]) for c in cells] == [
        (model, puzzle) for model in ("beginner", "writer") for puzzle in THREE
    ]
    for cell in cells:
        if cell["model"] == "writer":
            assert cell["status"] == "complete" and cell["num_id_examples"] >= 264
        else:
            assert cell["status"] == "insufficient_id_data"
    assert "insufficient ID data" in ran.out
    found = rows(tidemark, "from internal.scylla_accuracy_details where model = 'writer'")
    assert {each["puzzle"] for each in found} == set(THREE)
    assert all(each["num_items"] == 64 for each in found)
    by_folder = tidemark("scylla", "show", "-m", writer)
    assert by_folder.code == 0 and "writer" in by_folder.out
    before = files(home)
    for path in home.glob("puzzles/**/*.*"):
        path.unlink()
    assert tidemark("scylla", "run", "-m", writer, *chosen).code == 0
    assert {k: v for k, v in before.items() if "writer" in k} == files(home)


@needs_extra("papers")
@pytest.mark.slow  # each stage has a test in make test
def test_likelihoods_of_a_trained_model(
    tidemark: Tidemark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = train_list_writer(tmp_path / "writer")
    monkeypatch.setenv("TIDEMARK_PUZZLE_ITEMS", "16")
    run = ("scylla", "run", "-m", writer, "-p", "find_maximum")
    tidemark(*run).expect(0)
    tidemark(*run, "--prompt", "few-shot-1-likelihood").expect(0)
    assert "0 puzzles landed" in tidemark(*run, "--prompt", "few-shot-1-likelihood").out
    found = rows(
        tidemark,
        "select split, count(*) as num_items, count(token_nats) as num_measured "
        "from internal.scylla_likelihoods group by split order by split",
    )
    assert [each["split"] for each in found] == ["id", "ood", "ood_near"]
    assert all(each["num_items"] == 16 for each in found)
    assert any(each["num_measured"] for each in found)
    pairs = rows(tidemark, "from papers.scylla_divergence order by measure, ood_split")
    assert [(each["measure"], each["ood_split"]) for each in pairs] == [
        (measure, split)
        for measure in ("perplexity", "probability")
        for split in ("ood", "ood_near")
    ]
    for each in pairs:
        assert each["reason"] is None
        assert 0 <= each["js_bits"] <= 1
        assert min(each["num_id"], each["num_ood"]) >= 2
    assert rows(tidemark, "select distinct protocol from internal.scylla_accuracy_details") == [
        {"protocol": "zero-shot-cot-16"}
    ]


class Puzzler(openai_api.Site):
    """An API's model that solves known puzzles; while ``is_broken``, its first answers are cut."""

    is_broken = False
    _broken: str | None = None

    def _respond(self, body: dict[str, Any], prompt: str, mishap: Any) -> bytes:
        data = super()._respond(body, prompt, mishap)
        if self.is_broken and self._broken is None and "<ANSWER>" in prompt:
            self._broken = prompt
        return data[: len(data) // 2] if self.is_broken and prompt == self._broken else data

    def write(self, prompt: str, seed: int) -> str:
        for name in list_puzzles():
            if prompt == probe_prompt(load_puzzle(name)):
                return ScriptedModel("scripted:perfect", 1).write_inputs(load_puzzle(name), seed)
        name, instance = read_question(prompt)
        puzzle = load_puzzle(name)
        is_known = max(map(max, instance.rows)) < 100
        answer = puzzle.solve(instance) if is_known else wrong_answer(puzzle, instance)
        shown = ", ".join(map(str, answer))
        return f"The answer is {shown if puzzle.answer_shape == 'number' else f'[{shown}]'}."


@pytest.fixture
def api(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Puzzler]:
    site = Puzzler()
    with serve_sites([site]) as web:
        write_entry(home, web, openai_api.MODEL)
        monkeypatch.setenv("TIDEMARK_API_KEYS__SIM", openai_api.KEY)
        yield site


def verdicts(home: Path) -> list[tuple[str, str, int, str]]:
    tables = [pq.read_table(path) for path in sorted(home.glob("puzzles/**/*.parquet"))]
    return [
        (row["puzzle"], row["split"], row["item"], row["status"])
        for table in tables
        for row in table.to_pylist()
    ]


@pytest.mark.slow
def test_a_killed_run_asks_an_api_for_what_is_left(
    tidemark: Tidemark, few_items: None, api: Puzzler, home: Path
) -> None:
    command = [TIDEMARK, "scylla", "run", "-m", "sim", "-p", "two_sum", "-p", "sort_numbers"]
    environment = {**os.environ, "TIDEMARK_HOME": str(home)}  # noqa: TID251
    api.pause_s = 0.02
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: len(api.ledger) >= 150)
        process.send_signal(signal.SIGKILL)
    api.pause_s = 0.0
    billed = sum(api.billed.values())
    tidemark("scylla", "run", "-m", "sim", "-p", "two_sum", "-p", "sort_numbers").expect(0)
    wanted = 2 * (128 + 3 * int(ITEMS))
    assert wanted <= len(api.ledger) <= wanted + 8, "those in flight when it was killed, at most"
    assert billed < wanted
    shares = rows(
        tidemark,
        "select distinct split, accuracy from internal.scylla_accuracy_details "
        "where rules = 'strict' order by 1",
    )
    assert shares == [
        {"split": "id", "accuracy": 1.0},
        {"split": "ood", "accuracy": 0.0},
        {"split": "ood_near", "accuracy": 0.0},
    ]


@pytest.mark.slow
def test_an_item_that_cannot_be_asked_is_an_error_until_it_can(
    tidemark: Tidemark, few_items: None, api: Puzzler, home: Path
) -> None:
    run = ("scylla", "run", "-m", "sim", "-p", "two_sum")
    counts = (
        "select sum(num_items)::int as items, sum(num_errors)::int as errors "
        "from internal.scylla_accuracy_details where rules = 'strict'"
    )
    api.is_broken = True
    tidemark(*run).expect(1, "without an answer: 1 item; run")
    assert rows(tidemark, counts) == [{"items": 3 * int(ITEMS) - 1, "errors": 1}]
    assert [status for *_, status in verdicts(home)].count("error") == 1
    billed = len(api.ledger)
    api.is_broken = False
    assert tidemark(*run).code == 0
    assert len(api.ledger) == billed + 1, "only that one is asked again"
    assert rows(tidemark, counts) == [{"items": 3 * int(ITEMS), "errors": 0}]


def test_a_model_without_room_for_the_question_says_so(
    tidemark: Tidemark, tiny_model: Path, few_items: None
) -> None:
    ran = tidemark("scylla", "run", "-m", tiny_model, "-p", "two_sum")
    assert ran.code == 1 and "longer than the model's context" in ran.err


def test_a_wrong_name_of_a_puzzle_lists_the_puzzles(tidemark: Tidemark) -> None:
    for command in ("run", "show"):
        ran = tidemark("scylla", command, "-m", "scripted:small", "--puzzle", "two_summ")
        ran.expect(
            2,
            "unknown puzzle 'two_summ'; did you mean two_sum? known: add_days, ",
            ", two_sum",
            out="",
        )


@pytest.mark.long
def test_mistakes_of_a_user_are_named(tidemark: Tidemark, few_items: None) -> None:
    tidemark("scylla", "run", "-m", "scripted:perfct").expect(2, "scripted:perfect")
    tidemark("scylla", "run", "-m", "scripted:perfect", "-p", "too_sum").expect(2, "two_sum")
    tidemark("scylla", "run", "-m", "control:zstd", "-p", "two_sum").expect(1, "language model")
    tidemark("scylla", "run").expect(2, "scripted:valley")
    ran = tidemark("scylla", "show")
    assert ran.code != 0 and "tidemark scylla run" in ran.err
