"""Use of a Prefect server that may be away: wait for it, and ask it.

Task runs need no server: Prefect's client sends their states as events, and queues events during
an outage. A flow waits for the server before it ends, since its own state is not queued.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import State
from prefect.exceptions import MissingContextError
from prefect.logging import get_run_logger
from prefect.states import Completed

from core.environment import prefect_server
from core.progress import counted
from instruments.running.stopping import rest
from tasks.prefect.telling import tell

WAIT_S = 6 * 3600.0  # maximum wait for the server; later, the run fails and is restarted
LOOK_S = 2.0
PARTIAL = "Completed (partial)"
_MAX_LISTED = 50  # maximum number of holes in a message; the run's files list all

_Outcome = TypeVar("_Outcome")


def run_log() -> logging.Logger | logging.LoggerAdapter[logging.Logger]:
    """Return the logger of the current Prefect run, or a plain logger outside of a run."""
    try:
        return get_run_logger()
    except MissingContextError:
        return logging.getLogger("tidemark")


def ended(outcome: _Outcome, holes: Sequence[object]) -> _Outcome:
    """Return a completed state, once the server is there; its message is the outcome, as text.

    With holes, the state is partial, and its message lists them. Prefect returns the data of the
    state, which is the outcome, to the caller of the flow.
    """
    wait_for_server()
    tell("ending")
    if not holes:
        return cast(_Outcome, Completed(message=str(outcome), data=outcome))
    lines = [f"{counted(len(holes), 'hole')}:", *map(str, holes[:_MAX_LISTED])]
    if len(holes) > _MAX_LISTED:
        lines.append(f"and {len(holes) - _MAX_LISTED} more")
    state: State[_Outcome] = Completed(name=PARTIAL, message="\n".join(lines), data=outcome)
    return cast(_Outcome, state)


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
