"""A coordinator that is killed, on a worker with few slots, as `prefect worker start --limit`."""

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
from prefect.client.orchestration import SyncPrefectClient

from core.run_record import RunRecord, list_runs
from core.storage.store import Store
from deployments.deploy import deploy
from simulator.server import Fault, Web
from tests.flows.deployed import api, ended, resumed, start, until, worker_environment
from tests.servers import PrefectServer

pytestmark = pytest.mark.timeout(900)
Worker = subprocess.Popen[bytes]


@pytest.fixture
def client(prefect_server: PrefectServer) -> Iterator[SyncPrefectClient]:
    with api(prefect_server) as client:
        deploy(prefect_server.url)
        yield client


@pytest.fixture
def workers(prefect_server: PrefectServer, sites: Web, tmp_path: Path) -> Iterator[list[Worker]]:
    environment = worker_environment(tmp_path, sites, every_s=1)
    with ExitStack() as stack:
        yield [
            stack.enter_context(prefect_server.worker(pool, "--limit", "2", **environment))
            for pool in ("crawl", "gpu")
        ]


def test_a_new_flow_run_goes_on_and_the_worker_lives(
    client: SyncPrefectClient, workers: list[Worker], sites: Web, tmp_path: Path
) -> None:
    sites.faults.append(Fault("stall", "govuk", "/api/search", 2))
    try:
        run = start("monthly/monthly", month="2024-02", sources=["govuk"], models=["control:gzip"])
        until(lambda: [path for _, _, path in sites.requests if "/api/search" in path])
        pid = until(lambda: _process_of(workers[0], str(run.id)))
        psutil.Process(pid).kill()
    finally:
        sites.faults.clear()
    state = ended(client, run).state
    assert state and state.is_crashed()
    again = until(lambda: resumed(client, str(run.id)))
    state = ended(client, again).state
    assert state and (state.name, state.message and state.message.partition(":")[0]) == (
        "Completed", "complete",
    )  # fmt: skip
    assert client.read_flow_run(again.id).name == "monthly 2024-02, after a crash"
    [record] = list_runs(Store(str(tmp_path)))
    result = RunRecord(Store(str(tmp_path)), record.run).result()
    assert result and (result.partitions, result.cells, result.holes) == (1, 1, ())
    assert [worker.poll() for worker in workers] == [None, None]


def _process_of(worker: Worker, run: str) -> int | None:
    """Return the process of a flow run that a worker has started; None if there is none yet."""
    for process in psutil.Process(worker.pid).children(recursive=True):
        try:
            if process.environ().get("PREFECT__FLOW_RUN_ID") == run:
                return process.pid
        except psutil.Error:
            continue
    return None
