"""A monthly run on a real server with a worker a pool: all stages, holes, a cancelled run."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.states import Cancelling

from core.month import Month
from core.run_record import RunRecord
from core.settings import Settings
from core.storage import Store
from flows.deploy import deploy
from flows.dispatch import find_runs, name_of_run
from simulator.server import Fault, Web, serve
from simulator.world import World
from warehouse.query import query

from ..servers import PrefectServer
from .deployed import api, ended, start, until

SOURCES = ["arxiv", "wikipedia_new"]
MODELS = ["control:gzip", "control:zstd"]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(0, Month("2024-01"), Month("2024-02"), stories_per_month=3)) as web:
        yield web


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deployed")


@pytest.fixture(scope="module")
def client(prefect_server: PrefectServer, web: Web, home: Path) -> Iterator[SyncPrefectClient]:
    """A server with deployments, a worker a pool, and an event chain that lacks its last link."""
    environment = {
        "TIDEMARK_HOME": str(home),
        "TIDEMARK_REQUEST_INTERVAL_S": "0",
        "TIDEMARK_WATCH_INTERVAL_S": "5",
        **{f"TIDEMARK_SITES__{key.upper()}": url for key, url in web.urls.items()},
    }
    options = {"PREFECT_WORKER_QUERY_SECONDS": "2"}
    with api(prefect_server) as client, ExitStack() as stack:
        deploy(prefect_server.url)
        [link] = client.read_automations_by_name("tidemark: report is due")
        client.delete_automation(link.id)
        for pool in ("crawl", "gpu"):
            stack.enter_context(prefect_server.worker(pool, **environment, **options))
        yield client


@pytest.mark.timeout(900)
def test_a_cancelled_run_cancels_what_it_has_started_and_leaves_nothing_behind(
    client: SyncPrefectClient, web: Web, home: Path
) -> None:
    stall = Fault("stall", "arxiv", "/api/query")
    web.faults.append(stall)
    try:
        asked = len(web.requests)
        run = start("monthly/monthly", month="2024-02", sources=["arxiv"], models=MODELS)
        until(lambda: [path for _, _, path in web.requests[asked:] if "/api/query" in path])
        client.set_flow_run_state(run.id, Cancelling())
        state = ended(client, run).state
        record = RunRecord(Store(str(home)), name_of_run("monthly", run.id))
        [part] = find_runs(client, record.run, record.request().started_at)
        parts_state = ended(client, part).state
    finally:
        web.faults.clear()
    assert state and parts_state
    assert (state.is_cancelled(), parts_state.is_cancelled()) == (True, True)
    result = record.result()
    assert result
    assert set(result.holes) == {
        f"{part}: has not ended" for part in ("crawl arxiv", *(f"score {m}" for m in MODELS))
    }
    assert not list(home.rglob("manifest.json"))
    assert not [path for path in home.rglob(".tmp-*") if path.is_file()]
    for path in (home / "work").rglob("*.lock"):
        with path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.timeout(900)
def test_a_run_goes_through_all_stages_and_lists_its_holes(
    client: SyncPrefectClient, web: Web, home: Path
) -> None:
    # Changed, not busy: nothing is retried.
    web.faults.append(Fault("status", "arxiv", "/api/query", 99, 200, body=b"<html/>"))
    try:
        run = start("monthly/monthly", month="2024-01", sources=SOURCES, models=MODELS)
        state = ended(client, run).state
    finally:
        web.faults.clear()
    assert state
    assert (state.name, state.is_completed()) == ("Completed (partial)", True), state.message
    assert state.message and "crawl arxiv 2024-01: " in state.message
    record = RunRecord(Store(str(home)), name_of_run("monthly", run.id))
    result = record.result()
    assert result
    assert (result.partitions, result.cells) == (1, 2)
    assert [hole.partition(": ")[0] for hole in result.holes] == ["crawl arxiv 2024-01"]
    assert Path(result.report).stat().st_mtime >= record.request().started_at.timestamp()
    landed = query(Settings(home=str(home)), "select model, source from landed_cells order by 1")
    assert landed.to_pylist() == [{"model": m, "source": "wikipedia_new"} for m in MODELS]
    parts = find_runs(client, record.run, record.request().started_at)
    scored = [part for part in parts if "model" in part.parameters]
    by_events = {part.parameters["model"] for part in scored if part.tags == ["tidemark"]}
    assert by_events == set(MODELS)  # the coordinator tags what it starts
    states = {(part.name.split()[0], part.state and part.state.name) for part in parts}
    assert {("crawl", "Completed (partial)"), ("crawl", "Completed")} <= states
    [last] = [part for part in parts if "source" not in part.parameters and part not in scored]
    assert f"tidemark-run:{record.run}" in last.tags  # no automation waits for that event


def test_events_tell_of_partitions_and_models(
    client: SyncPrefectClient, prefect_server: PrefectServer
) -> None:
    found = client.request(
        "POST", "/events/filter", json={"filter": {"event": {"prefix": ["tidemark."]}}, "limit": 50}
    ).json()["events"]
    names = [event["event"] for event in found]
    for name, times in {
        "tidemark.partition.sealed": 1,
        "tidemark.partition.given-up": 1,
        "tidemark.score.due": 2,
        "tidemark.model.landed": 2,
        "tidemark.report.due": 1,
    }.items():
        assert names.count(name) == times, name
    resources = {event["event"]: event["resource"]["prefect.resource.id"] for event in found}
    sealed = resources["tidemark.partition.sealed"]
    assert sealed == "tidemark.partition.wikipedia_new.2024-01"
    assert resources["tidemark.report.due"].startswith("tidemark.run.monthly-")
