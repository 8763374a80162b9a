"""Submit many calls of a task, a bounded number at a time, and keep the failures apart."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prefect import Task
from prefect.futures import PrefectFuture

from core import progress
from core.errors import TidemarkError
from tasks.observe import observe


@dataclass(frozen=True)
class Hole:
    """Something a run should have done and did not; neighbours go on."""

    what: str
    why: str

    def __str__(self) -> str:
        return f"{self.what}: {self.why}"


def fan_out(
    work: Task[..., Any],
    calls: Sequence[tuple[str, Mapping[str, Any]]],
    step: str | None,
    in_flight: int = 4,
) -> Iterator[Any]:
    """Run ``work`` once a call and yield each result, or a Hole, in the order of the calls.

    Prefect's event queue overflows when thousands of task runs are submitted at once, so at most
    ``in_flight`` are under way.

    Args:
        work: the task.
        calls: what to call each (for the Hole) and its keyword arguments.
        step: name under which progress is reported; None leaves that to the caller.
        in_flight: how many task runs at a time.

    Raises:
        Exception: whatever is not a TidemarkError: a bug, not a hole.
    """
    observe()
    waiting: deque[tuple[str, PrefectFuture[Any]]] = deque()
    pending = iter(calls)
    for done in range(len(calls)):
        while len(waiting) < in_flight and (call := next(pending, None)) is not None:
            what, arguments = call
            waiting.append((what, work.submit(**arguments)))
        what, future = waiting.popleft()
        result = future.result(raise_on_failure=False)
        if isinstance(result, TidemarkError):
            result = Hole(what, str(result))
        elif isinstance(result, BaseException):
            raise result
        if step:
            progress.report(step, done + 1, len(calls))
        yield result
