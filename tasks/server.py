"""A Prefect server that may be away: what waits for it, and what sees that it missed nothing.

Task runs need no server while they run: Prefect's client makes their records itself and sends them
as events, which a queue keeps while the server is away. Two things get lost all the same: what the
server had confirmed but not yet written when it was killed, and events that could not be completed
without it. So a flow notes how its task runs ended, and before it reports its own end it waits for
the server and makes good what that does not know.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
from prefect import Task
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import TaskRunFilter, TaskRunFilterId
from prefect.client.schemas.objects import State, StateType
from prefect.concurrency.sync import concurrency
from prefect.context import FlowRunContext
from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger

from core.settings import prefect_server

WAIT_S = 6 * 3600.0  # then Prefect itself fails, and the run is started again
LOOK_S = 2.0
_FIRST_LOOK_S = 0.1  # then a quarter more each time, up to LOOK_S: most arrives within a second
_SETTLE_TRIES = 5
SETTLE_S = 20.0  # so long may events be under way without one of them arriving
WRITER = "tidemark-writer"
_LEASE_S = 60.0  # the least that a server takes: so long a killed machine keeps a slot
_PAGE = 200


@dataclass(frozen=True)
class _Ended:
    what: str
    task: Task[..., Any]
    state: State[Any]


_ended: dict[UUID, dict[UUID, _Ended]] = {}  # by flow run and task run


def run_log() -> logging.Logger | logging.LoggerAdapter[logging.Logger]:
    """Return the log of the Prefect run that this is in, or else a plain one."""
    try:
        return get_run_logger()
    except MissingContextError:
        return logging.getLogger("tidemark")


def is_deployed() -> bool:
    """Whether the flow that runs was started as a deployment, and not by a call."""
    context = FlowRunContext.get()
    return bool(context and context.flow_run and context.flow_run.deployment_id)


def note_end(what: str, task: Task[..., Any], task_run: UUID, state: State[Any]) -> None:
    """Remember how a task run of this flow run ended, until ``settle_task_runs``."""
    flow_run = _flow_run()
    if flow_run is not None:
        bare = state.model_copy(update={"data": None})  # results are no business of the server's
        _ended.setdefault(flow_run, {})[task_run] = _Ended(what, task, bare)


def settle_task_runs() -> int:
    """Wait for the server; see that it knows how each task run ended that was noted.

    Call it last in a flow. Without a server that is configured there is nothing to do.

    Returns:
        How many task runs had to be made good.
    """
    flow_run = _flow_run()
    ended = {} if flow_run is None else _ended.pop(flow_run, {})
    if flow_run is None or not prefect_server():
        return 0
    for _ in range(_SETTLE_TRIES):  # the server may go away again meanwhile
        wait_for_server()
        try:
            unknown = _settle(flow_run, ended)
            break
        except httpx.HTTPError as error:
            run_log().warning("the Prefect server went away again (%s)", error)
    else:
        return 0  # what it says of its task runs may lack some; the run's own end is to be told
    if unknown:
        run_log().warning("the Prefect server had lost %d task runs; made good", len(unknown))
    return len(unknown)


def _settle(flow_run: UUID, ended: Mapping[UUID, _Ended]) -> dict[UUID, _Ended]:
    """Return which task runs the server did not know, and has been told of."""
    with get_client(sync_client=True) as client:
        unknown = _let_arrive(client, ended)
        for task_run, end in unknown.items():
            _make_good(client, flow_run, task_run, end)
    return unknown


def wait_for_server(wait_s: float = WAIT_S) -> None:
    """Return once the server that is configured, and its database, answer; or after ``wait_s``."""
    if not prefect_server():
        return
    deadline, away_since = time.monotonic() + wait_s, None
    while True:
        try:
            with get_client(sync_client=True) as client:
                client.read_task_runs(limit=1)  # asks the database, too
        except Exception as error:  # noqa: BLE001, Prefect's and httpx's are no family
            now = time.monotonic()
            if away_since is None:
                away_since = now
                run_log().warning("waiting for the Prefect server (%s)", error)
            if now > deadline:
                run_log().error("the Prefect server has been away for %.0f s", now - away_since)
                return
            time.sleep(LOOK_S)
        else:
            if away_since is not None:
                run_log().warning("the server is back after %.0f s", time.monotonic() - away_since)
            return


@contextmanager
def writer_slot() -> Iterator[None]:
    """Hold the one slot of the limit ``tidemark-writer``, if there is a server that has it.

    The lock of the warehouse keeps writers apart in any case, so a server that is away stops
    nobody, neither before nor while we write.
    """
    if not prefect_server():
        yield
        return
    with ExitStack() as stack:
        try:
            stack.enter_context(slot(WRITER, WAIT_S))
        except Exception as error:  # noqa: BLE001, as in wait_for_server
            run_log().warning("no slot of the limit %s: %s", WRITER, error)
        yield


@contextmanager
def slot(limit: str, wait_s: float) -> Iterator[None]:
    """Hold a slot of a concurrency limit of the server's; go on holding it when the server goes.

    Args:
        limit: its name; where there is none of this name, nothing is held.
        wait_s: the longest to wait for a slot.

    Raises:
        Exception: no slot was to be had, or the server is away; no family of errors.
    """
    held = concurrency(
        limit,
        timeout_seconds=wait_s,
        lease_duration=_LEASE_S,
        raise_on_lease_renewal_failure=False,
    )
    held.__enter__()
    try:
        yield
    finally:
        try:
            held.__exit__(None, None, None)
        except Exception as error:  # noqa: BLE001, the lease ends by itself
            run_log().warning("the slot of the limit %s is not given back: %s", limit, error)


def _flow_run() -> UUID | None:
    context = FlowRunContext.get()
    return context.flow_run.id if context and context.flow_run else None


def _let_arrive(client: SyncPrefectClient, ended: Mapping[UUID, _Ended]) -> dict[UUID, _Ended]:
    """Wait while events still arrive; return what the server does not know."""
    unknown, arrived_at, pause_s = dict(ended), time.monotonic(), _FIRST_LOOK_S
    while unknown:
        left = _without_known(client, unknown)
        if len(left) < len(unknown):
            arrived_at = time.monotonic()
        unknown = left
        if unknown and time.monotonic() - arrived_at > SETTLE_S:
            break
        if unknown:
            time.sleep(pause_s)
            pause_s = min(1.25 * pause_s, LOOK_S)
    return unknown


def _without_known(client: SyncPrefectClient, ended: Mapping[UUID, _Ended]) -> dict[UUID, _Ended]:
    """Return the task runs whose ends the server does not know."""
    unknown: dict[UUID, _Ended] = {}
    runs = list(ended)
    for start in range(0, len(runs), _PAGE):
        page = runs[start : start + _PAGE]
        if _num_completed(client, page) < len(page):  # else there is nothing to read
            known = _known(client, page)
            unknown |= {run: ended[run] for run in page if known.get(run) != ended[run].state.type}
    return unknown


def _num_completed(client: SyncPrefectClient, task_runs: Sequence[UUID]) -> int:
    wanted = {"id": {"any_": list(map(str, task_runs))}, "state": {"type": {"any_": ["COMPLETED"]}}}
    return int(client.request("POST", "/task_runs/count", json={"task_runs": wanted}).json())


def _known(client: SyncPrefectClient, task_runs: Sequence[UUID]) -> dict[UUID, StateType | None]:
    """Return the states of those of a page of task runs that the server knows."""
    wanted = TaskRunFilter(id=TaskRunFilterId(any_=list(task_runs)))
    found = client.read_task_runs(task_run_filter=wanted, limit=_PAGE)
    return {each.id: each.state_type for each in found}


def _make_good(client: SyncPrefectClient, flow_run: UUID, task_run: UUID, end: _Ended) -> None:
    known = _known(client, [task_run])
    if task_run not in known:
        client.create_task_run(
            end.task, flow_run, dynamic_key=str(task_run), id=task_run, name=end.what
        )
    client.set_task_run_state(task_run, end.state, force=True)
