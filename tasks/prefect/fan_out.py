"""Concurrent runs of a task: a bounded number at a time, with failures as values."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from queue import SimpleQueue
from typing import Any

from prefect import Task
from prefect.exceptions import CancelledRun
from prefect.futures import PrefectFuture

from core import progress
from core.environment import prefect_server
from core.settings import Settings
from instruments.runner import Ended, Execute, Failure, Plan, failure_of
from tasks.prefect.observe import observe
from tasks.prefect.server import note_end

# A Prefect server on two cores records 25 to 30 task runs per second. A faster client fills the
# server's queue of 10,000 events, and further events are lost (docs/scale.md).
RATE = 20.0  # maximum number of task runs per second
BURST = 400  # task runs that may start at once after a pause (some 2,000 events)
_CANCELLED = (CancelledRun, concurrent.futures.CancelledError)


class Pace:
    """A thread-safe rate limit: ``rate`` calls per second; after a pause, ``burst`` at once."""

    def __init__(self, rate: float = RATE, burst: int = BURST) -> None:
        self._rate = rate
        self._burst = burst
        self._left = float(burst)
        self._at = time.monotonic()
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until the rate limit allows the next call."""
        with self._lock:
            now = time.monotonic()
            self._left = min(self._burst, self._left + (now - self._at) * self._rate) - 1
            self._at = now
            pause_s = -self._left / self._rate
        if pause_s > 0:
            time.sleep(pause_s)


_pace = Pace()  # rate limit of this process


def fan_out(
    work: Task[..., Any],
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    step: str | None,
    in_flight: int = 4,
) -> Iterator[Any]:
    """Run task ``work`` for each call; yield results, or Failures, in the order of the calls.

    A call is a name (for a Failure) and keyword arguments. At most ``in_flight`` calls run at a
    time. With a Prefect server, the number of calls per second is also limited. An exception
    becomes a Failure and is logged. Progress is reported as ``step``, unless ``step`` is None.

    Raises:
        BaseException: the run was interrupted or cancelled.
    """
    early: dict[int, Any] = {}  # results that wait for the end of an earlier call
    num_yielded = num_failed = 0
    for num_ended, (number, result) in enumerate(_stream(work, calls, in_flight), start=1):
        early[number] = result
        num_failed += isinstance(result, Failure)
        if step:
            progress.report(step, num_ended - num_failed, len(calls), num_failed)
        while num_yielded in early:
            yield early.pop(num_yielded)
            num_yielded += 1


def _stream(
    work: Task[..., Any], calls: Iterable[tuple[str, Mapping[str, Any]]], in_flight: int
) -> Iterator[tuple[int, Any]]:
    """Yield the number and the result of each call, as they end; take a call when it can begin."""
    observe()
    ended: SimpleQueue[tuple[int, PrefectFuture[Any]]] = SimpleQueue()
    names: dict[int, str] = {}  # of the running calls
    waiting = enumerate(calls)
    is_open = True
    while is_open or names:
        while is_open and len(names) < in_flight:
            call = next(waiting, None)
            if call is None:
                is_open = False
                break
            number, (name, given) = call
            if prefect_server() is not None:
                _pace.wait()
            names[number] = name
            future = work.submit(**given)
            future.add_done_callback(partial(_note, ended, number))
        if names:
            number, future = ended.get()
            yield number, _result(names.pop(number), work, future)


def _note(
    ended: SimpleQueue[tuple[int, PrefectFuture[Any]]], number: int, future: PrefectFuture[Any]
) -> None:
    ended.put((number, future))


def _result(what: str, work: Task[..., Any], future: PrefectFuture[Any]) -> Any:
    future.wait()  # raises an error if the task's machine has died
    result = future.result(raise_on_failure=False)
    note_end(what, work, future.task_run_id, future.state)
    if isinstance(result, _CANCELLED):
        raise result
    return failure_of(what, result) if isinstance(result, BaseException) else result


def as_tasks(work: Task[..., Any]) -> Execute:
    """Return a function that runs each group of cells of a plan as a run of task ``work``."""

    def execute(
        plan: Plan[Any], groups: Iterable[tuple[Any, ...]], settings: Settings
    ) -> Iterator[Ended]:
        taken: list[tuple[Any, ...]] = []

        def calls() -> Iterator[tuple[str, dict[str, Any]]]:
            for cells in groups:
                taken.append(cells)
                given = {"cells": cells, "entry": plan.entry, "settings": settings}
                yield str(cells[0]), given

        for number, result in _stream(work, calls(), plan.in_flight(settings)):
            yield taken[number], result

    return execute
