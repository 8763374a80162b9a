import threading
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest

from core.errors import ModelError, StorageError, TidemarkError, UsageError
from core.settings import Settings
from core.storage.claims import Claims, do_claimed
from core.storage.store import Store
from instruments import runner
from instruments.landing import Slot
from instruments.runner import Done, Failure, Plan, failure_of, plan_or_failure, run, run_and_land
from models.catalogue import ModelEntry

ERRORS: dict[str, Exception] = {
    "broken": StorageError("the disk is broken"),
    "bug": ZeroDivisionError("a bug"),
    "model": ModelError("the model is broken"),
}


@dataclass(frozen=True)
class Toy(Plan[str]):
    verb = "toy"
    fatal = (ModelError,)

    is_landable: bool = True

    def in_flight(self, settings: Settings) -> int:
        return 1

    def is_done(self, cell: str, store: Store) -> bool:
        return store.exists(f"toys/{cell}")

    def attempt(self, cells: tuple[str, ...], settings: Settings, wait: bool) -> Done:
        store = Store(settings.home)

        def write(_: None, names: list[str]) -> None:
            for name in names:
                if name in ERRORS:
                    raise ERRORS[name]
                store.write_bytes("order", _order(store) + name.encode() + b" ")
                store.write_bytes(f"toys/{name}", b"done")

        claimed = do_claimed(
            store, cells, nullcontext, write, lambda name: self.is_done(name, store), wait
        )
        lack = "half is missing" if cells == ("partial",) else ""
        return Done(num_items=1, lack=lack, claimed=claimed.others)

    def land(self, settings: Settings, slot: Slot = nullcontext) -> int:
        if not self.is_landable:
            raise StorageError("it cannot land")
        return sum(self.is_done(name, Store(settings.home)) for name in self.cells)


def _order(store: Store) -> bytes:
    return store.read_bytes("order") if store.exists("order") else b""


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    homes: list[str] = []
    monkeypatch.setattr(runner, "publish_alone", lambda settings: homes.append(settings.home))
    return homes


def toy(*names: str, model: str = "toy", is_landable: bool = True) -> Toy:
    return Toy(ModelEntry(name=model, kind="control", location=model), names, names, is_landable)


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
        assert is_held.wait(30)
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

    def attempt_beside(plan: Toy, cells: tuple[str, ...], settings: Settings, wait: bool) -> Done:
        with Claims(store).hold(others):
            done = attempt(plan, cells, settings, wait)
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
    plans = [toy("a", "broken"), Failure("gone", "no such files"), toy("b", "c", model="second")]
    summary = run_and_land(plans, settings)
    assert summary.num_landed == 3
    assert [each.what for each in summary.failures] == ["broken", "gone"]
    assert published == [settings.home]


def test_a_model_that_cannot_land_is_a_failure(settings: Settings, published: list[str]) -> None:
    summary = run_and_land([toy("a", is_landable=False), toy("b", model="second")], settings)
    assert summary.failures == [Failure("land toy", "it cannot land")]
    assert summary.num_landed == 1
    assert published == [settings.home]


def test_a_wrong_request_ends_the_run_and_a_broken_model_does_not() -> None:
    def make(error: TidemarkError) -> Toy:
        raise error

    assert plan_or_failure("m", lambda: make(ModelError("m: broken"))) == Failure("m", "broken")
    with pytest.raises(UsageError):
        plan_or_failure("m", lambda: make(UsageError("no such protocol")))


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
