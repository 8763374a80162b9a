"""Concurrent runs of a task: a bounded number at a time, with failures as values."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from queue import SimpleQueue
from typing import Any

from prefect import Task
from prefect.exceptions import CancelledRun
from prefect.futures import PrefectFuture

from core.environment import prefect_server
from instruments.runner import Failure, failure_of
from tasks.prefect.observe import observe
from tasks.prefect.telling import tell

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
        self._left = float(burst)  # number of calls that may start at once
        self._at = time.monotonic()  # time of the last call
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


def run_task(work: Task[..., Any], what: str, **given: Any) -> Any:
    """Run task ``work`` once; return its result, or a Failure named ``what``."""
    [(_, result)] = run_tasks(work, [(what, given)])
    return result


def run_tasks(
    work: Task[..., Any],
    calls: Iterable[tuple[str, Mapping[str, Any]]],
    in_flight: int = 4,
    fatal: tuple[type[Exception], ...] = (),
) -> Iterator[tuple[int, Any]]:
    """Run task ``work`` for each call; yield the number of each call and its result, as they end.

    A call is a name (for a Failure) and keyword arguments. It is taken when it can begin: at most
    ``in_flight`` calls run at a time. With a Prefect server, the number of calls per second is also
    limited. An exception becomes a Failure and is logged. After an exception of a class of
    ``fatal``, no further call is taken.

    Raises:
        BaseException: the run was interrupted or cancelled.
    """
    observe()
    ended: SimpleQueue[tuple[int, PrefectFuture[Any]]] = SimpleQueue()
    names: dict[int, str] = {}  # of the running calls, by number
    waiting = enumerate(calls)
    is_open = True  # whether further calls are taken
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
            future.add_done_callback(lambda done, number=number: ended.put((number, done)))
        if names:
            number, future = ended.get()
            result = _result(names.pop(number), work, future, fatal)
            if isinstance(result, Failure) and result.is_fatal:
                is_open = False
            yield number, result


def _result(
    what: str, work: Task[..., Any], future: PrefectFuture[Any], fatal: tuple[type[Exception], ...]
) -> Any:
    """Return the result of a task run, or a Failure; raise an error if it was cancelled."""
    future.wait()  # raises an error if the task's machine has died
    result = future.result(raise_on_failure=False)
    tell("task_ended", what, work, future)
    if isinstance(result, _CANCELLED):
        raise result
    if isinstance(result, BaseException):
        return failure_of(what, result, isinstance(result, fatal))
    return result
