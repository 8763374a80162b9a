import datetime as dt
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterParentFlowRunId,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.settings import PREFECT_API_URL, temporary_settings

from core.run_record import RunRecord, RunRequest
from core.storage.store import Store
from simulator.server import Web
from tests.servers import PrefectServer

DEADLINE_S = 800


@contextmanager
def api(server: PrefectServer) -> Iterator[SyncPrefectClient]:
    with temporary_settings({PREFECT_API_URL: server.url}), get_client(sync_client=True) as client:
        yield client


def worker_environment(home: Path, sites: Web, every_s: int) -> dict[str, str]:
    """Return the variables of a worker that crawls simulated sites without pauses."""
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


def begin_run(
    store: Store, run: str, sources: Sequence[str], models: Sequence[str] = ("control:zstd",)
) -> RunRecord:
    record = RunRecord(store, run)
    now, months = dt.datetime.now(dt.UTC), ("2024-01", "2024-02")
    given = {"sources": tuple(sources), "models": tuple(models)}
    record.begin(RunRequest(run=run, started_at=now, months=months, protocol="default", **given))
    return record


def parts_of(client: SyncPrefectClient, run: str) -> list[FlowRun]:
    tags = FlowRunFilterTags(all_=[f"tidemark-run:{run}"])
    return client.read_flow_runs(flow_run_filter=FlowRunFilter(tags=tags))


def children_of(client: SyncPrefectClient, run: FlowRun) -> list[FlowRun]:
    parent = FlowRunFilterParentFlowRunId(any_=[run.id])
    return client.read_flow_runs(flow_run_filter=FlowRunFilter(parent_flow_run_id=parent))


def resumed(client: SyncPrefectClient, run: str, known: Collection[UUID] = ()) -> FlowRun | None:
    """Return the monthly run that continues a crashed one; None if there is none but known ones."""
    found = client.read_flow_runs(flow_filter=FlowFilter(name=FlowFilterName(any_=["monthly"])))
    again = (each for each in found if each.parameters.get("resume") == run)
    return next((each for each in again if each.id not in known), None)


def ended(client: SyncPrefectClient, run: FlowRun) -> FlowRun:
    def find() -> FlowRun | None:
        found = client.read_flow_run(run.id)
        return found if found.state and found.state.is_final() else None

    found: FlowRun = until(find, pause_s=0.5)
    return found


def until(what: Callable[[], Any], pause_s: float = 0.1) -> Any:
    deadline = time.monotonic() + DEADLINE_S
    while not (found := what()):
        assert time.monotonic() < deadline, "not in time"
        time.sleep(pause_s)
    return found
