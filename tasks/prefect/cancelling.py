"""Ending of a cancelled flow run, and of its sub-flow runs.

Prefect's worker tells a process of a cancellation by a message, which is lost if the server is away
at the time. So the process also asks the server. The server cancels sub-flow runs up to 20 s after
their parent's end. Meanwhile they would complete further cells, so the parent cancels them itself.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
from prefect.states import Cancelled, Cancelling

from tasks.prefect.server import ask_once, run_log

ASK_S = 10.0  # seconds between two requests
KILL_S = 25.0  # seconds from SIGTERM to SIGKILL; a thread may wait for a site without answer
_UNFINISHED = ["SCHEDULED", "PENDING", "RUNNING", "PAUSED"]


@contextmanager
def ends_if_cancelled() -> Iterator[None]:
    """Within the ``with`` block, end this process soon after its flow run was cancelled."""
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        yield
        return
    is_over = threading.Event()
    given = (context.flow_run, is_over)
    threading.Thread(target=_watch, args=given, name="cancelling", daemon=True).start()
    try:
        yield
    finally:
        is_over.set()


@contextmanager
def cancels_subflows() -> Iterator[None]:
    """If a signal ends the ``with`` block of a cancelled flow run, cancel its sub-flow runs."""
    context = FlowRunContext.get()
    try:
        yield
    except BaseException as error:  # signals raise KeyboardInterrupt or a Prefect class
        if not isinstance(error, Exception) and context is not None and context.flow_run:
            _cancel_subflows(context.flow_run.id)
        raise


def _cancel_subflows(flow_run: UUID) -> None:
    """Cancel the unfinished sub-flow runs of a cancelled flow run; only log an error."""
    of = {"parent_flow_run_id": {"any_": [flow_run]}, "state": {"type": {"any_": _UNFINISHED}}}

    def cancel(client: SyncPrefectClient) -> None:
        if not _is_cancelled(client, flow_run):
            return  # another process continues this run, and its sub-flow runs go on
        for run in client.read_flow_runs(flow_run_filter=FlowRunFilter.model_validate(of)):
            state: State[Any] = Cancelling(message="The run that started it was cancelled.")
            client.set_flow_run_state(run.id, state)

    try:
        ask_once(cancel)
    except Exception as error:  # noqa: BLE001 - Prefect's and httpx's are no family
        run_log().warning("the server cancels the started flow runs later: %s", error)


def _watch(flow_run: FlowRun, is_over: threading.Event) -> None:
    """Ask the server every ``ASK_S`` seconds; end the process if the flow run is cancelled."""
    num_seen = 0
    while not is_over.wait(ASK_S):
        num_seen += _asks_if_cancelled(flow_run.id)
        if num_seen > 1:  # once is not enough: the worker needs time to end the process itself
            run_log().warning("this run was cancelled; its process ends")
            _end(flow_run)
            if not is_over.wait(KILL_S):
                os.kill(os.getpid(), signal.SIGKILL)
            return


def _asks_if_cancelled(flow_run: UUID) -> bool:
    try:
        return ask_once(lambda client: _is_cancelled(client, flow_run))
    except Exception:  # noqa: BLE001 - Prefect's and httpx's are no family; it asks again
        return False


def _is_cancelled(client: SyncPrefectClient, flow_run: UUID) -> bool:
    state = client.read_flow_run(flow_run).state
    return state is not None and (state.is_cancelling() or state.is_cancelled())


def _end(flow_run: FlowRun) -> None:
    """Set the final state of the flow run, which Prefect keeps; end the process by SIGTERM."""
    state: State[Any] = Cancelled(message="The process asked the server, and was cancelled.")
    try:
        ask_once(lambda client: client.set_flow_run_state(flow_run.id, state, force=True))
        flow_run.state = state
    finally:
        os.kill(os.getpid(), signal.SIGTERM)
