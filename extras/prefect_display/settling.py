"""States of task runs that the Prefect server lacks, sent again at the end of a flow.

Prefect's client sends these states as events. Events are lost if the client cannot complete them
without the server, or if a server is killed before it writes them. So a flow notes the final
states of its task runs.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

import httpx
from prefect import Task
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import TaskRunFilter, TaskRunFilterId
from prefect.client.schemas.objects import State, StateType
from prefect.context import FlowRunContext
from prefect.futures import PrefectFuture

from tasks.prefect.server import LOOK_S, in_time, run_log, wait_for_server

SETTLE_S = 20.0  # maximum wait for one more event to arrive
_FIRST_LOOK_S = 0.1  # first pause between two requests; each pause is 25 % longer, up to LOOK_S
_TRIES = 5
_PAGE = 200


@dataclass(frozen=True)
class _Ended:
    what: str
    task: Task[..., Any]
    state: State[Any]


_ended: dict[UUID, dict[UUID, _Ended]] = {}  # by flow run id, then by task run id


def note_end(what: str, task: Task[..., Any], future: PrefectFuture[Any]) -> None:
    """Remember the final state of a task run of this flow run, for ``settle_task_runs``."""
    flow_run = _flow_run()
    if flow_run is not None:
        bare = future.state.model_copy(update={"data": None})  # the state without the result
        _ended.setdefault(flow_run, {})[future.task_run_id] = _Ended(what, task, bare)


def settle_task_runs() -> None:
    """Wait for the server, then send it the final states of task runs that it lacks."""
    flow_run = _flow_run()
    if flow_run is None:
        return
    noted = _ended.pop(flow_run, {})
    for _ in range(_TRIES):  # retry after a further outage
        wait_for_server()
        try:
            with get_client(sync_client=True) as client:
                unknown = _let_arrive(client, noted)
                for task_run, end in unknown.items():
                    _make_good(client, flow_run, task_run, end)
        except (httpx.HTTPError, TimeoutError) as error:
            run_log().warning("the Prefect server went away again (%s)", error)
            continue
        if unknown:
            run_log().warning("the Prefect server lost %d task runs; recorded again", len(unknown))
        return


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
    """Return the task runs whose final state the server does not have."""
    unknown: dict[UUID, _Ended] = {}
    runs = list(noted)
    for start in range(0, len(runs), _PAGE):
        page = runs[start : start + _PAGE]
        known = _known(client, page)
        unknown |= {run: noted[run] for run in page if known.get(run) != noted[run].state.type}
    return unknown


def _known(client: SyncPrefectClient, task_runs: Sequence[UUID]) -> dict[UUID, StateType | None]:
    wanted = TaskRunFilter(id=TaskRunFilterId(any_=list(task_runs)))
    read = partial(client.read_task_runs, task_run_filter=wanted, limit=_PAGE)
    found = in_time(read)
    return {each.id: each.state_type for each in found}


def _make_good(client: SyncPrefectClient, flow_run: UUID, task_run: UUID, end: _Ended) -> None:
    if task_run not in _known(client, [task_run]):
        create = partial(client.create_task_run, end.task, flow_run, id=task_run, name=end.what)
        in_time(partial(create, dynamic_key=str(task_run)))
    in_time(partial(client.set_task_run_state, task_run, end.state, force=True))
