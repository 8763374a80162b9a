from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowRunFilter,
    FlowRunFilterDeploymentId,
    FlowRunFilterParentFlowRunId,
)
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.settings import PREFECT_API_URL, temporary_settings

from core.settings import Settings
from simulator.server import Web
from tests.loopback import wait_for
from tests.servers import PrefectServer
from warehouse.database.writer import connected

MONTH_S = 3000  # the longest that a month takes on a busy machine, in seconds


@contextmanager
def api(server: PrefectServer) -> Iterator[SyncPrefectClient]:
    with temporary_settings({PREFECT_API_URL: server.url}), get_client(sync_client=True) as client:
        yield client


def worker_environment(home: Path, sites: Web, every_s: int) -> dict[str, str]:
    """Return the variables of a worker that crawls simulated sites without pauses.

    The data root begins with an empty database: to make one takes a process ten seconds.
    """
    with connected(Settings(home=str(home))):
        pass
    return {
        "TIDEMARK_HOME": str(home),
        "TIDEMARK_REQUEST_INTERVAL_S": "0",
        "TIDEMARK_WATCH_INTERVAL_S": str(every_s),
        "PREFECT_WORKER_QUERY_SECONDS": str(every_s),
        **{f"TIDEMARK_SITES__{key.upper()}": url for key, url in sites.urls.items()},
    }


def start(name: str, **parameters: Any) -> FlowRun:
    run: Any = run_deployment(name, parameters=parameters, timeout=0, as_subflow=False)
    return run


def children_of(client: SyncPrefectClient, run: FlowRun) -> list[FlowRun]:
    parent = FlowRunFilterParentFlowRunId(any_=[run.id])
    return client.read_flow_runs(flow_run_filter=FlowRunFilter(parent_flow_run_id=parent))


def restarted(
    client: SyncPrefectClient, run: FlowRun, known: Collection[UUID] = ()
) -> FlowRun | None:
    """Return the flow run that replaces a crashed run of a month; None if all are known."""
    of = FlowRunFilterDeploymentId(any_=[run.deployment_id])
    for each in client.read_flow_runs(flow_run_filter=FlowRunFilter(deployment_id=of)):
        is_by_server = each.created_by is not None and each.created_by.type == "AUTOMATION"
        is_same = each.parameters.get("month") == run.parameters["month"]
        if is_by_server and is_same and each.id not in {run.id, *known}:
            return each
    return None


def ended(client: SyncPrefectClient, run: FlowRun) -> FlowRun:
    def find() -> FlowRun | None:
        found = client.read_flow_run(run.id)
        return found if found.state and found.state.is_final() else None

    # To ask takes the server and this process long.
    found: FlowRun = wait_for(find, pause_s=2, patience_s=MONTH_S)
    return found
