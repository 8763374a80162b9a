"""Tolerance of outages of the Prefect server: wait for it, and send it lost states of task runs.

Task runs need no server: Prefect's client sends their states as events, and queues events during
an outage. But events are lost if the client cannot complete them without the server, or if a
server is killed before it writes them. So a flow notes the final states of its task runs. Before
a flow ends, it waits for the server and sends states that the server lacks.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast
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
from prefect.states import Completed

from core.environment import prefect_server
from core.progress import counted
from instruments.running.stopping import rest

WAIT_S = 6 * 3600.0  # maximum wait for the server; later, the run fails and is restarted
LOOK_S = 2.0
_FIRST_LOOK_S = 0.1  # first pause between two requests; each pause is 25 % longer, up to LOOK_S
_SETTLE_TRIES = 5
SETTLE_S = 20.0  # maximum wait for one more event to arrive
_LEASE_S = 60.0  # the server's minimum lease; a killed process holds its slot this long
_PAGE = 200
PARTIAL = "Completed (partial)"
_MAX_LISTED = 50  # maximum number of holes in a message; the run's files list all

_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True)
class _Ended:
    what: str
    task: Task[..., Any]
    state: State[Any]


_ended: dict[UUID, dict[UUID, _Ended]] = {}  # by flow run id, then by task run id


def run_log() -> logging.Logger | logging.LoggerAdapter[logging.Logger]:
    """Return the logger of the current Prefect run, or a plain logger outside of a run."""
    try:
        return get_run_logger()
    except MissingContextError:
        return logging.getLogger("tidemark")


def note_end(what: str, task: Task[..., Any], task_run: UUID, state: State[Any]) -> None:
    """Remember the final state of a task run of this flow run, for ``settle_task_runs``."""
    flow_run = _flow_run()
    if flow_run is not None:
        bare = state.model_copy(update={"data": None})  # the state without the result
        _ended.setdefault(flow_run, {})[task_run] = _Ended(what, task, bare)


def ended(outcome: _Outcome, holes: Sequence[object]) -> _Outcome:
    """Return a completed state after ``settle_task_runs``; its message is the outcome, as text.

    With holes, the state is partial, and its message lists them. Prefect returns the data of the
    state, which is the outcome, to the caller of the flow.
    """
    settle_task_runs()
    if not holes:
        return cast(_Outcome, Completed(message=str(outcome), data=outcome))
    lines = [f"{counted(len(holes), 'hole')}:", *map(str, holes[:_MAX_LISTED])]
    if len(holes) > _MAX_LISTED:
        lines.append(f"and {len(holes) - _MAX_LISTED} more")
    state: State[_Outcome] = Completed(name=PARTIAL, message="\n".join(lines), data=outcome)
    return cast(_Outcome, state)


def settle_task_runs() -> None:
    """Wait for the server, then send it the final states of task runs that it lacks.

    Call this at the end of a flow. Without a configured server, nothing is done.
    """
    flow_run = _flow_run()
    noted = {} if flow_run is None else _ended.pop(flow_run, {})
    if flow_run is None or not prefect_server():
        return
    for _ in range(_SETTLE_TRIES):  # retry after a further outage
        wait_for_server()
        try:
            with get_client(sync_client=True) as client:
                unknown = _let_arrive(client, noted)
                for task_run, end in unknown.items():
                    _make_good(client, flow_run, task_run, end)
        except httpx.HTTPError as error:
            run_log().warning("the Prefect server went away again (%s)", error)
            continue
        if unknown:
            run_log().warning("the Prefect server lost %d task runs; recorded again", len(unknown))
        return


def ask_server(question: Callable[[SyncPrefectClient], _Outcome]) -> _Outcome:
    """Return what the server answers to a question; wait for a server that is away."""
    wait_for_server()
    with get_client(sync_client=True) as client:  # it tries again, too
        return question(client)


def wait_for_server(wait_s: float = WAIT_S) -> None:
    """Wait until the configured server and its database respond, at most ``wait_s`` seconds.

    Raise ``Stopped`` as soon as the flow run is ending.
    """
    if not prefect_server():
        return
    deadline = time.monotonic() + wait_s
    away_since: float | None = None
    while True:
        try:
            with get_client(sync_client=True) as client:
                client.read_task_runs(limit=1)  # this request also needs the database
        except Exception as error:  # noqa: BLE001, Prefect's and httpx's are no family
            now = time.monotonic()
            if away_since is None:
                away_since = now
                run_log().warning("waiting for the Prefect server (%s)", error)
            if now > deadline:
                run_log().error("the Prefect server has been away for %.0f s", now - away_since)
                return
            rest(LOOK_S)
        else:
            if away_since is not None:
                run_log().warning("the server is back after %.0f s", time.monotonic() - away_since)
            return


@contextmanager
def slot(limit: str, wait_s: float) -> Iterator[None]:
    """Hold a slot of a concurrency limit in the ``with`` block, even if the server goes down.

    If the limit does not exist, nothing is held. If no slot is free for ``wait_s`` seconds, or the
    server does not respond at the beginning, Prefect's exceptions are raised.
    """
    held = concurrency(
        limit, timeout_seconds=wait_s, lease_duration=_LEASE_S, raise_on_lease_renewal_failure=False
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


def _let_arrive(client: SyncPrefectClient, noted: Mapping[UUID, _Ended]) -> dict[UUID, _Ended]:
    """Wait while events still arrive; return the noted states that the server lacks."""
    unknown = dict(noted)
    arrived_at = time.monotonic()
    pause_s = _FIRST_LOOK_S
    while unknown and time.monotonic() - arrived_at <= SETTLE_S:
        left = _without_known(client, unknown)
        if len(left) < len(unknown):
            arrived_at = time.monotonic()
        unknown = left
        if unknown:
            time.sleep(pause_s)
            pause_s = min(1.25 * pause_s, LOOK_S)
    return unknown


def _without_known(client: SyncPrefectClient, noted: Mapping[UUID, _Ended]) -> dict[UUID, _Ended]:
    unknown: dict[UUID, _Ended] = {}
    runs = list(noted)
    for start in range(0, len(runs), _PAGE):
        page = runs[start : start + _PAGE]
        known = _known(client, page)
        unknown |= {run: noted[run] for run in page if known.get(run) != noted[run].state.type}
    return unknown


def _known(client: SyncPrefectClient, task_runs: Sequence[UUID]) -> dict[UUID, StateType | None]:
    wanted = TaskRunFilter(id=TaskRunFilterId(any_=list(task_runs)))
    found = client.read_task_runs(task_run_filter=wanted, limit=_PAGE)
    return {each.id: each.state_type for each in found}


def _make_good(client: SyncPrefectClient, flow_run: UUID, task_run: UUID, end: _Ended) -> None:
    if task_run not in _known(client, [task_run]):
        client.create_task_run(
            end.task, flow_run, dynamic_key=str(task_run), id=task_run, name=end.what
        )
    client.set_task_run_state(task_run, end.state, force=True)
