import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from core.cells import BaseCell
from core.cells.failures import CellFailure, read_failures
from core.errors import ModelError, NotMeasurable, StorageError, TidemarkError, UsageError
from core.settings import Settings
from core.storage.claims import Claims, present
from core.storage.store import Store
from instruments import driver
from instruments.driver import Backlog, Summary, WorkRequest, work, work_and_land
from instruments.runner import Done, Failure, Plan, failure_of
from models.catalogue import ModelEntry

ERRORS: dict[str, Exception] = {
    "broken": StorageError("the disk is broken"),
    "bug": ZeroDivisionError("a bug"),
    "model": ModelError("the model is broken"),
}


@dataclass(frozen=True)
class ToyFiles(BaseCell):
    name: str

    @property
    def stem(self) -> str:
        return f"toys/model={self.model}/{self.name}"

    @property
    def done_path(self) -> str:
        return self.name


@dataclass(frozen=True)
class Toy(Plan[str]):
    verb = "toy"
    fatal = (ModelError,)

    is_landable: bool = True

    def in_flight(self, settings: Settings) -> int:
        return 1

    def files_of(self, cell: str) -> ToyFiles:
        return ToyFiles(self.entry.name, "1", cell)

    def is_done(self, cell: str, store: Store) -> bool:
        return store.exists(f"toys/{cell}")

    def attempt(self, cells: tuple[str, ...], settings: Settings) -> Done:
        store = Store(settings.home)
        with Claims(store).hold(cells) as claimed:
            for name in claimed:
                if self.is_done(name, store):
                    continue
                if name in ERRORS:
                    raise ERRORS[name]
                store.write_bytes("order", _order(store) + name.encode() + b" ")
                store.write_bytes(f"toys/{name}", b"done")
        lack = "half is missing" if cells == ("partial",) else ""
        others = tuple(name for name in cells if name not in claimed)
        return Done(num_items=1, lack=lack, claimed=others)

    def land(self, settings: Settings) -> int:
        if not self.is_landable:
            raise StorageError("it cannot land")
        return sum(self.is_done(name, Store(settings.home)) for name in self.cells)


def _order(store: Store) -> bytes:
    return store.read_bytes("order") if store.exists("order") else b""


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    homes: list[str] = []
    monkeypatch.setattr(driver, "publish_alone", lambda settings: homes.append(settings.home))
    return homes


def toy(*names: str, model: str = "toy", is_landable: bool = True) -> Toy:
    entry = ModelEntry(name=model, kind="control", location=model)
    return Toy(entry, names, names, is_landable=is_landable)


def request_of(*plans: Toy | TidemarkError, **given: Any) -> WorkRequest:
    """Return a request of plans, or of errors that planning raises."""
    names = [each.entry.name if isinstance(each, Toy) else "gone" for each in plans]
    by_name = dict(zip(names, plans, strict=True))

    def plan(name: str) -> Toy:
        found = by_name[name]
        if isinstance(found, TidemarkError):
            raise found
        return found

    return WorkRequest(tuple(names), plan, "toys", **given)


def run(plan: Toy, settings: Settings, **given: Any) -> Summary:
    return work(request_of(plan, **given), settings)


def failures_in(settings: Settings) -> dict[str, CellFailure]:
    return read_failures(Store(settings.home), "toys")


def test_a_failure_names_its_cell_and_the_neighbours_are_done(settings: Settings) -> None:
    summary = run(toy("a", "broken", "bug", "partial", "b"), settings)
    assert summary.failures == [
        Failure("broken", "the disk is broken"),
        Failure("bug", "ZeroDivisionError: a bug; this is a bug, see the log"),
        Failure("partial", "half is missing"),
    ]
    assert (summary.num_cells, summary.num_items) == (3, 3)
    assert _order(Store(settings.home)) == b"a partial b "


def test_an_error_of_the_model_ends_its_cells(settings: Settings) -> None:
    summary = run(toy("a", "model", "b"), settings)
    assert summary.failures == [Failure("model", "the model is broken", is_fatal=True)]
    assert _order(Store(settings.home)) == b"a "


def test_a_second_run_does_what_is_missing_and_nothing_twice(settings: Settings) -> None:
    run(toy("a"), settings)
    run(toy("a", "b"), settings)
    assert _order(Store(settings.home)) == b"a b "


def test_cells_of_others_come_last_and_those_of_the_dead_are_done(settings: Settings) -> None:
    """Another process holds ``a`` until ``b`` is done, and leaves ``a`` undone."""
    store, is_held, ended = Store(settings.home), threading.Event(), threading.Event()

    def hold() -> None:
        with Claims(store).hold(["a"]):
            is_held.set()
            while not store.exists("toys/b") and not ended.wait(0.01):
                pass

    other = threading.Thread(target=hold)
    other.start()
    try:
        assert is_held.wait(600)
        summary = run(toy("a", "b"), settings)
    finally:
        ended.set()
        other.join()
    assert summary.failures == []
    assert (summary.num_cells, _order(store)) == (2, b"b a ")
    assert store.list("claims/*") == []


@dataclass(frozen=True)
class Together(Toy):
    @property
    def groups(self) -> list[tuple[str, ...]]:
        return [self.pending]


@pytest.mark.parametrize("others", [("a",), ("b",), ("a", "b")])
def test_what_others_finish_meanwhile_counts_and_is_not_done_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, others: tuple[str, ...]
) -> None:
    store, attempt = Store(settings.home), Toy.attempt

    def attempt_beside(plan: Toy, cells: tuple[str, ...], settings: Settings) -> Done:
        with Claims(store).hold(others):
            done = attempt(plan, cells, settings)
        for name in others:
            store.write_bytes(f"toys/{name}", b"by another")
        return done

    monkeypatch.setattr(Toy, "attempt", attempt_beside)
    summary = run(Together(toy().entry, tuple("abcdefg"), tuple("abc")), settings)
    assert (summary.num_cells, summary.failures) == (7, [])
    assert [store.read_bytes(f"toys/{name}") for name in others] == [b"by another"] * len(others)


def test_each_model_lands_once_and_is_published_once(
    settings: Settings, published: list[str]
) -> None:
    broken = ModelError("gone: no such files")
    plans: list[Toy | TidemarkError] = [toy("a", "broken"), broken, toy("b", "c", model="second")]
    summary = work_and_land(request_of(*plans), settings)
    assert summary.num_landed == 3
    assert [str(each) for each in summary.failures] == [
        "broken: the disk is broken", "gone: no such files",
    ]  # fmt: skip
    assert published == [settings.home]


def test_a_model_that_cannot_land_is_a_failure(settings: Settings, published: list[str]) -> None:
    plans = [toy("a", is_landable=False), toy("b", model="second")]
    summary = work_and_land(request_of(*plans), settings)
    assert summary.failures == [Failure("land toy", "it cannot land")]
    assert summary.num_landed == 1
    assert published == [settings.home]


def test_a_wrong_request_ends_the_work_where_the_caller_says_so(settings: Settings) -> None:
    wrong = UsageError("no such protocol")
    with pytest.raises(UsageError):
        work(request_of(wrong), settings)
    summary = work(request_of(wrong, toy("a"), ends_on=()), settings)
    assert (list(map(str, summary.failures)), summary.num_cells) == (["gone: no such protocol"], 1)


def test_a_failed_cell_has_a_record_until_it_is_done(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for run_id in ("first", "second"):
        run(toy("a", "broken"), settings, run=run_id)
    [(stem, record)] = failures_in(settings).items()
    assert stem == "toys/model=toy/broken"
    assert (record.run, record.attempts, record.error) == ("second", 2, "StorageError")
    assert str(record) == "broken: the disk is broken"
    again = run(toy("a", "broken"), settings, run="second")
    assert [each.why for each in again.failures] == ["the disk is broken"]
    assert failures_in(settings)[stem].attempts == 2, "a run tries a cell once"
    monkeypatch.delitem(ERRORS, "broken")
    assert run(toy("a", "broken"), settings).failures == []
    assert failures_in(settings) == {}


def test_a_lasting_failure_is_tried_again_only_where_asked(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ERRORS, "long", NotMeasurable("the window is too long"))
    run(toy("long"), settings)
    monkeypatch.delitem(ERRORS, "long")
    assert [each.why for each in run(toy("long"), settings).failures] == ["the window is too long"]
    assert run(toy("long"), settings, retry_failed=True).failures == []
    assert failures_in(settings) == {}


def test_a_model_without_a_plan_is_recorded_and_tried_once_a_run(settings: Settings) -> None:
    tries: list[str] = []

    def plan(name: str) -> Toy:
        tries.append(name)
        raise ModelError("the files are gone")

    for run_id in ("one", "one", "two"):
        summary = work(WorkRequest(("lost",), plan, "toys", run=run_id), settings)
        assert list(map(str, summary.failures)) == ["lost: the files are gone"]
    assert tries == ["lost", "lost"]
    assert list(failures_in(settings)) == ["toys/model=lost/model"]


def test_the_model_with_the_most_work_left_a_process_is_taken(settings: Settings) -> None:
    plans = {name: toy(f"{name}-1", model=name) for name in ("small", "large", "shared", "empty")}
    seconds = {"small": 1.0, "large": 9.0, "shared": 12.0}

    def backlog(models: Sequence[str]) -> dict[str, Backlog]:
        left = {name for name in seconds if not Path(settings.home, f"toys/{name}-1").exists()}
        return {name: Backlog(frozenset({"1"}), seconds[name]) for name in models if name in left}

    order: list[str] = []
    request = WorkRequest(
        tuple(plans), plans.__getitem__, "toys", backlog,
        prepare=lambda plan: order.append(plan.entry.name),
    )  # fmt: skip
    with present(Store(settings.home), "toys/shared"):
        summary = work(request, settings)
    assert order == ["large", "shared", "small"], "nobody takes a model that lacks nothing"
    assert summary.num_cells == 3


def test_models_are_taken_in_order_but_first_those_on_which_nobody_works(
    settings: Settings,
) -> None:
    """So processes that ask the same models divide them."""
    plans = {name: toy(f"{name}-1", model=name) for name in ("c", "b", "a")}
    order: list[str] = []
    request = WorkRequest(
        tuple(plans), plans.__getitem__, "toys", prepare=lambda plan: order.append(plan.entry.name)
    )
    with present(Store(settings.home), "toys/c"):
        assert work(request, settings).num_cells == 3
    assert order == ["b", "a", "c"]


def test_what_somebody_ended_is_no_failure(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> Done:
        raise KeyboardInterrupt

    monkeypatch.setattr(Toy, "attempt", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(toy("a"), settings)
    assert not Path(settings.home, "toys").exists()


@pytest.mark.parametrize("what", ["arxiv 2024-01", "crawl arxiv 2024-01"])
def test_a_failure_names_its_cell_once(what: str) -> None:
    error = StorageError("arxiv 2024-01: the disk is broken")
    assert str(failure_of(what, error)) == f"{what}: the disk is broken"
