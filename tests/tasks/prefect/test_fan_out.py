import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from prefect import flow, task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.task_runners import ThreadPoolTaskRunner

from core.errors import ModelError, SourceUnavailable
from core.settings import Settings
from core.storage.store import Store
from instruments.runner import Done, Failure, Plan
from models.catalogue import ModelEntry
from tasks.cells import as_tasks
from tasks.prefect.fan_out import Pace, run_tasks
from tasks.prefect.server import PARTIAL, ended
from tests.loopback import PATIENCE_S, wait_for

pytestmark = pytest.mark.usefixtures("prefect_api")


class Gauge:
    def __init__(self) -> None:
        self.now = self.most = 0
        self.num_to_meet = 0
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        with self._lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self.now -= 1

    def meet(self) -> None:
        """Wait until ``num_to_meet`` have been here at once."""
        wait_for(lambda: self.most >= self.num_to_meet)


gauge = Gauge()


@task(cache_policy=NO_CACHE, persist_result=False)
def work(number: int) -> int:
    with gauge:
        gauge.meet()
        threading.Event().wait(0.02)  # in which too many would be seen
        if number == 3:
            raise SourceUnavailable("the site is down")
        if number == 99:
            raise ZeroDivisionError("tried")
        if number == 77:
            raise KeyboardInterrupt
        return number * 10


@flow(task_runner=ThreadPoolTaskRunner(max_workers=8))
def run(numbers: Sequence[int]) -> list[Any]:
    calls = [(f"number {number}", {"number": number}) for number in numbers]
    results = dict(run_tasks(work, calls, in_flight=3))
    return [results[number] for number in range(len(numbers))]


def test_failures_are_results() -> None:
    results = run([0, 1, 2, 3, 4, 5, 6, 7])
    assert results == [0, 10, 20, Failure("number 3", "the site is down"), 40, 50, 60, 70]


def test_no_more_than_the_bound_is_in_flight() -> None:
    gauge.most = 0
    gauge.num_to_meet = 3
    try:
        run(list(range(10, 30)))
    finally:
        gauge.num_to_meet = 0
    assert gauge.most == 3


is_zero_begun = threading.Event()
released = threading.Event()
begun: list[int] = []


@task(cache_policy=NO_CACHE, persist_result=False)
def wait_or_go(number: int) -> int:
    begun.append(number)
    if number == 0:
        is_zero_begun.set()
        if not released.wait(PATIENCE_S):
            raise SourceUnavailable("nobody else went on")
    is_zero_begun.wait(PATIENCE_S)
    if number == 9:
        released.set()
    return number


@flow(task_runner=ThreadPoolTaskRunner(max_workers=8))
def run_past_a_slow_one() -> list[Any]:
    calls = [(f"number {number}", {"number": number}) for number in range(10)]
    return list(run_tasks(wait_or_go, calls, in_flight=2))


def test_whichever_ends_makes_room_for_the_next_and_results_come_as_they_end() -> None:
    """The first call ends after the last has begun; nine calls use the second slot."""
    results = run_past_a_slow_one()
    assert sorted(results) == [(number, number) for number in range(10)]
    assert results.index((0, 0)) >= 8
    assert begun[:2] in ([0, 1], [1, 0])


@pytest.mark.slow
def test_a_server_is_sent_no_more_than_it_can_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks.prefect.fan_out.prefect_server", lambda: "http://127.0.0.1:4200/api")
    monkeypatch.setattr("tasks.prefect.fan_out._pace", Pace(rate=20, burst=3))
    began = time.monotonic()
    run(list(range(10, 21)))  # 3 at once and 8 at 20 a second
    assert time.monotonic() - began >= 8 / 20


tried: list[str] = []


@dataclass(frozen=True)
class Solving(Plan[Any]):
    verb = "solve"
    fatal = (ModelError,)

    def is_done(self, cell: Any, store: Store) -> bool:
        return False

    def land(self, settings: Settings) -> int:
        return 0

    def in_flight(self, settings: Settings) -> int:
        return 1

    def attempt(self, cells: tuple[Any, ...], settings: Settings) -> Done:
        tried.extend(cells)
        if cells == ("b",):
            raise ModelError("the budget is spent") from ConnectionError()
        return Done()


@flow
def run_until_fatal(settings: Settings) -> list[Any]:
    plan = Solving(ModelEntry(name="m", kind="control", location="m"), (), ())
    return list(as_tasks(plan, [("a",), ("b",), ("c",)], settings))


def test_after_a_fatal_failure_no_further_cell_is_begun(settings: Settings) -> None:
    """As in one process: a model whose server or budget is gone fails once.

    Its client has tried again already, so the task does not.
    """
    assert run_until_fatal(settings) == [
        (("a",), Done()),
        (("b",), Failure("b", "the budget is spent", is_fatal=True)),
    ]
    assert tried == ["a", "b"]


def test_a_bug_is_a_hole_with_its_traceback_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    [first, hole, last] = run([1, 99, 2])
    assert (first, last) == (10, 20)
    assert hole == Failure("number 99", "ZeroDivisionError: tried; this is a bug, see the log")
    assert 'raise ZeroDivisionError("tried")' in caplog.text


def test_an_interruption_goes_through() -> None:
    with pytest.raises(KeyboardInterrupt):
        run([1, 77, 2])


def test_no_calls_give_no_results() -> None:
    assert run([]) == []


def test_the_message_of_an_outcome_without_holes_is_one_line() -> None:
    state: object = ended(3, [])
    assert isinstance(state, State)
    assert (state.name, state.message, state.data) == ("Completed", "3", 3)


def test_a_message_lists_fifty_holes_and_counts_the_others() -> None:
    state: object = ended(3, [Failure(f"crawl {number}", "gone") for number in range(53)])
    assert isinstance(state, State)
    assert (state.name, state.data) == (PARTIAL, 3)
    first, *holes, last = (state.message or "").splitlines()
    assert (first, len(holes), last) == ("53 holes:", 50, "and 3 more")
    assert holes[0] == "crawl 0: gone"
