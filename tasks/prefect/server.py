"""Requests to a Prefect server that may be unavailable, and waits for the server.

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

from core.environment import prefect_server, without_password
from core.errors import OrchestrationError
from core.progress import counted
from core.within import answer_within
from instruments.running.stopping import rest
from tasks.prefect.telling import tell

WAIT_S = 6 * 3600.0  # maximum wait for the server; later, the run fails and is restarted
ANSWER_S = 300.0  # limit for the responses to one question, which may come byte by byte
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
    """Wait for the server; return a completed state with the outcome as its message.

    With holes, the state is partial, and the message lists the holes. Prefect returns the data of
    the state, which is the outcome, to the caller of the flow.
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
    """Return the server's answer to a question; wait while the server is unavailable.

    Raises OrchestrationError (no answer) or Stopped (the flow run is ending).
    """
    wait_for_server()
    try:
        return ask_once(question)
    except Exception as error:  # errors of Prefect and httpx share no base class
        raise OrchestrationError(
            f"the Prefect server at {without_password(prefect_server() or '')} answers, but not "
            f"this question ({type(error).__name__}: {error}): see its log, then start the run "
            "again"
        ) from error


def ask_once(question: Callable[[SyncPrefectClient], _Outcome]) -> _Outcome:
    """Return the server's answer to a question; Prefect's client retries a few times.

    Raises TimeoutError after ``ANSWER_S``, and errors of Prefect and httpx.
    """

    def ask() -> _Outcome:
        with get_client(sync_client=True) as client:
            return question(client)

    return in_time(ask)


def in_time(ask: Callable[[], _Outcome]) -> _Outcome:
    """Call ``ask``, which sends a request to the server; TimeoutError after ``ANSWER_S``."""
    return answer_within(ANSWER_S, ask)


def wait_for_server(wait_s: float = WAIT_S) -> None:
    """Wait until the configured server and its database respond, about ``wait_s`` seconds.

    Raises OrchestrationError (it did not respond) or Stopped (the flow run is ending).
    """
    address = prefect_server()
    if not address:
        return
    began_at = time.monotonic()
    is_away = False
    while True:
        try:
            ask_once(lambda client: client.read_task_runs(limit=1))  # reads the server's database
        except Exception as error:  # errors of Prefect and httpx share no base class
            if not is_away:
                is_away = True
                run_log().warning("waiting for the Prefect server (%s)", error)
            away_s = time.monotonic() - began_at
            if away_s > wait_s:
                raise OrchestrationError(
                    f"the Prefect server at {without_password(address)} has not answered for "
                    f"{away_s:.0f} s ({type(error).__name__}: {error}): see that it runs, then "
                    "start the run again, which finds what this one has done"
                ) from error
            rest(LOOK_S)
        else:
            if is_away:
                run_log().warning("the server is back after %.0f s", time.monotonic() - began_at)
            return
