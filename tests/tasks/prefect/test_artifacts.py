import uuid
from collections.abc import Callable

import pytest

from core import progress
from core.cells.losses import Cell
from core.corpus.partition import Partition
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from models.catalogue import find_model
from tasks.prefect import artifacts
from tasks.prefect.artifacts import MAX_ROWS, ProgressArtifacts, _rows, show_report, show_scoring


class Posts:
    def __init__(self) -> None:
        self.names: list[str] = []

    def post(self, what: str, send: Callable[..., object]) -> bool:
        self.names.append(what)
        return True


@pytest.fixture
def posts(monkeypatch: pytest.MonkeyPatch) -> Posts:
    posts, ids = Posts(), (None, uuid.uuid4())
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    monkeypatch.setattr(artifacts, "outbox", posts)
    monkeypatch.setattr(artifacts, "get_task_and_flow_run_ids", lambda: ids)
    return posts


def cells(num: int, source: str = "sand") -> list[Cell]:
    first = Month("1990-01")
    return [
        Cell("m", "r", Partition(source, first + number), f"{number:064}", "default", "s")
        for number in range(num)
    ]


def test_a_step_of_many_units_costs_two_calls_if_it_is_quick(posts: Posts) -> None:
    shown = ProgressArtifacts()
    for done in range(1, 7001):
        shown.report("score m", done, 7000)
    assert posts.names == ["progress of score m"] * 2
    for done in range(6001):  # of 7,000 with 1,000 that failed
        shown.report("score n", done, 7000, 1000)
    assert posts.names[2:] == ["progress of score n"] * 2


def test_a_long_step_is_renewed_now_and_then(posts: Posts, monkeypatch: pytest.MonkeyPatch) -> None:
    shown, clock = ProgressArtifacts(), iter(range(0, 10_000))
    monkeypatch.setattr("tasks.prefect.artifacts.time.monotonic", lambda: float(next(clock)))
    for done in range(1, 101):  # a second each
        shown.report("score m", done, 100)
    assert len(posts.names) == 21  # at 0, 5, 10 … 95 s, and at its end


def test_without_a_server_nothing_is_made(
    posts: Posts, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PREFECT_API_URL")
    ProgressArtifacts().report("score m", 1, 1)
    show_report("/somewhere/index.html", settings)
    show_scoring(find_model("control:zstd", settings), cells(3), settings)
    assert posts.names == []


def test_a_table_of_many_cells_is_cut(store: Store) -> None:
    every = cells(MAX_ROWS + 5)
    rows = _rows(every, {}, store)
    assert [row["cell"] for row in rows] == [cell.name for cell in every[:MAX_ROWS]]


def test_several_may_listen_to_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_further", ())
    heard: list[tuple[str, int, int]] = []

    def listener(step: str, done: int, total: int, _: int) -> None:
        heard.append((step, done, total))

    progress.listen(listener)
    progress.listen_too(listener)
    progress.listen_too(listener)
    progress.report("crawl", 1, 2)
    progress.listen(None)
    progress.report("crawl", 2, 2)
    assert heard == [("crawl", 1, 2)] * 2 + [("crawl", 2, 2)]
