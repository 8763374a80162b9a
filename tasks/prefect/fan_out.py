"""Submit many calls of a task, a bounded number at a time, and yield failures as values."""

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
from core.settings import Settings, prefect_server
from instruments.runner import Done, Execute, Failure, Plan, failure_of
from tasks.prefect.observe import observe
from tasks.prefect.server import note_end

# A Prefect server on two cores records 25 to 30 task runs a second. A faster client fills its
# queue of 10,000 events; further events are lost (docs/scale.md).
RATE = 20.0  # task runs a second
BURST = 400  # at once after a pause: some 2,000 events
_CANCELLED = (CancelledRun, concurrent.futures.CancelledError)


class Pace:
    """Lets ``rate`` calls pass a second, and ``burst`` at once after a pause; thread-safe."""

    def __init__(self, rate: float = RATE, burst: int = BURST) -> None:
        self._rate, self._burst = rate, burst
        self._left, self._at = float(burst), time.monotonic()
        self._lock = threading.Lock()

    def wait(self) -> None:
        """Wait until the next call may pass."""
        with self._lock:
            now = time.monotonic()
            self._left = min(self._burst, self._left + (now - self._at) * self._rate) - 1
            self._at = now
            pause_s = -self._left / self._rate
        if pause_s > 0:
            time.sleep(pause_s)


_pace = Pace()  # of this process


def fan_out(
    work: Task[..., Any],
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    step: str | None,
    in_flight: int = 4,
) -> Iterator[Any]:
    """Run ``work`` once a call and yield each result, or a Failure, in the order of the calls.

    Prefect's event queue overflows when thousands of task runs are submitted at once. So at most
    ``in_flight`` run at a time, and a server gets no more a second than it can record.
    A bug is a Failure, too; its traceback is in the log. Each call has a name (for a Failure) and
    keyword arguments. ``step`` names the progress; with None the caller reports it.

    Raises:
        BaseException: the run was interrupted or cancelled.
    """
    observe()
    ended: SimpleQueue[tuple[int, PrefectFuture[Any]]] = SimpleQueue()
    early: dict[int, Any] = {}  # results that wait for earlier calls
    num_submitted = num_yielded = 0
    for num_ended in range(len(calls)):
        while num_submitted < min(len(calls), num_ended + in_flight):
            if prefect_server() is not None:
                _pace.wait()
            future = work.submit(**calls[num_submitted][1])
            future.add_done_callback(partial(_note, ended, num_submitted))
            num_submitted += 1
        number, future = ended.get()
        early[number] = _result(calls[number][0], work, future)
        if step:
            progress.report(step, num_ended + 1, len(calls))
        while num_yielded in early:
            yield early.pop(num_yielded)
            num_yielded += 1


def _note(
    ended: SimpleQueue[tuple[int, PrefectFuture[Any]]], number: int, future: PrefectFuture[Any]
) -> None:
    ended.put((number, future))


def _result(what: str, work: Task[..., Any], future: PrefectFuture[Any]) -> Any:
    future.wait()  # ended; raises here if its machine died
    result = future.result(raise_on_failure=False)
    note_end(what, work, future.task_run_id, future.state)
    if isinstance(result, _CANCELLED):
        raise result
    return failure_of(what, result) if isinstance(result, BaseException) else result


def as_tasks(work: Task[..., Any]) -> Execute:
    """Return an executor that submits each group as a task run, a bounded number at a time."""

    def execute(
        plan: Plan, groups: Sequence[tuple[Any, ...]], settings: Settings, wait: bool
    ) -> Iterable[Done | Failure]:
        shared = {"entry": plan.entry, "settings": settings, "wait": wait}
        calls = [(str(cells[0]), {"cells": cells, **shared}) for cells in groups]
        return fan_out(work, calls, step=plan.step, in_flight=plan.in_flight(settings))

    return execute
