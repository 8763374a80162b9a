"""What tests do with runs on a Prefect server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.settings import PREFECT_API_URL, temporary_settings

from ..servers import PrefectServer

DEADLINE_S = 800


@contextmanager
def api(server: PrefectServer) -> Iterator[SyncPrefectClient]:
    """Let this process talk to the server, and not to one of its own."""
    with (
        temporary_settings({PREFECT_API_URL: server.url}),
        get_client(sync_client=True) as client,
    ):
        yield client


def start(name: str, **parameters: Any) -> FlowRun:
    """Start a deployment, which a worker will take."""
    run: Any = run_deployment(name, parameters=parameters, timeout=0, as_subflow=False)
    return run


def ended(client: SyncPrefectClient, run: FlowRun) -> FlowRun:
    """Wait until a flow run has ended."""

    def find() -> FlowRun | None:
        found = client.read_flow_run(run.id)
        return found if found.state and found.state.is_final() else None

    found: FlowRun = until(find)
    return found


def until(what: Callable[[], Any]) -> Any:
    """Wait until something is there, and return it."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := what()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.1)
    return found
