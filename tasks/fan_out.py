"""Submit many calls of a task, a bounded number at a time, and keep the failures apart."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from prefect import Task
from prefect.exceptions import CancelledRun
from prefect.futures import PrefectFuture

from core import progress
from core.errors import TidemarkError
from core.settings import prefect_server
from tasks.observe import observe
from tasks.pace import Pace
from tasks.server import note_end, run_log

_CANCELLED = (CancelledRun, concurrent.futures.CancelledError)


@dataclass(frozen=True)
class Hole:
    """Something a run should have done and did not; neighbours go on."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


_pace = Pace()  # of this process


def hole_of(what: str, error: BaseException) -> Hole:
    """Return what is missing because of an error.

    Raises:
        BaseException: the error itself, if somebody wanted the end.
    """
    if isinstance(error, _CANCELLED) or not isinstance(error, Exception):
        raise error
    if isinstance(error, TidemarkError):
        return Hole(what, str(error))
    run_log().error("%s failed", what, exc_info=error)
    return Hole(what, f"{type(error).__name__}: {error}; this is a bug, see the log")


def fan_out(
    work: Task[..., Any],
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    step: str | None,
    in_flight: int = 4,
) -> Iterator[Any]:
    """Run ``work`` once a call and yield each result, or a Hole, in the order of the calls.

    Prefect's event queue overflows when thousands of task runs are submitted at once, so at most
    ``in_flight`` are under way, and a server is sent no more a second than it can record. Whichever
    ends makes room for the next; its result waits for those before it.

    Args:
        work: the task.
        calls: what to call each (for the Hole) and its keyword arguments.
        step: name under which progress is reported; None leaves that to the caller.
        in_flight: how many task runs at a time.

    A bug is a hole, too: it need not be the neighbours'. Its traceback is in the log.

    Raises:
        BaseException: the run is to end: it was interrupted or cancelled.
    """
    observe()
    ended: SimpleQueue[tuple[int, PrefectFuture[Any]]] = SimpleQueue()
    early: dict[int, Any] = {}  # results that wait for those before them
    num_submitted = num_yielded = 0
    for num_ended in range(len(calls)):
        while num_submitted < min(len(calls), num_ended + in_flight):
            _submit(work, calls[num_submitted][1], num_submitted, ended)
            num_submitted += 1
        number, future = ended.get()
        early[number] = _result(calls[number][0], work, future)
        if step:
            progress.report(step, num_ended + 1, len(calls))
        while num_yielded in early:
            yield early.pop(num_yielded)
            num_yielded += 1


def _submit(
    work: Task[..., Any],
    arguments: Mapping[str, Any],
    number: int,
    ended: SimpleQueue[tuple[int, PrefectFuture[Any]]],
) -> None:
    if prefect_server() is not None:
        _pace.wait()
    future = work.submit(**arguments)
    future.add_done_callback(lambda future: ended.put((number, future)))


def _result(what: str, work: Task[..., Any], future: PrefectFuture[Any]) -> Any:
    future.wait()  # has ended; one whose machine died raises here what `result` would raise to us
    result = future.result(raise_on_failure=False)
    note_end(what, work, future.task_run_id, future.state)
    return hole_of(what, result) if isinstance(result, BaseException) else result
