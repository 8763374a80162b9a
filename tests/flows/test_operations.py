"""Deployed runs that are cancelled, killed, or overlap; only the heartbeat timeout is shortened."""

import datetime as dt
import fcntl
import json
import os
import re
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest
import torch
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.states import Cancelling, Crashed
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from core.month import Month
from core.plugins import list_extras
from core.settings import Settings
from core.storage.store import Store
from simulator.server import Fault, Web, serve
from simulator.world import World
from tests.commands import TIDEMARK
from tests.conftest import running
from tests.deployments.support.automations import NO_HEARTBEAT, automation_of
from tests.flows.support.deployed import (
    api,
    children_of,
    ended,
    restarted,
    start,
    worker_environment,
)
from tests.loopback import free_port, wait_for
from tests.servers import PostgreSQL, PrefectServer
from tests.tiers import needs_extra
from warehouse.read.query import query

pytestmark = pytest.mark.timeout(3600)

SILENCE = dt.timedelta(seconds=70)  # more than two of Prefect's heartbeats
SCORING = re.compile(r"\bscoring (.*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(0, Month("2024-01"), Month("2024-03"), stories_per_month=3)) as web:
        yield web


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("deployed")


@pytest.fixture(scope="module")
def slow_model(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose cells take seconds, so that a kill hits the middle of one."""
    folder = tmp_path_factory.mktemp("models") / "slow"
    config = LlamaConfig.from_pretrained(tiny_model)
    config.update({"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 8})
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def prefect_server(
    tmp_path_factory: pytest.TempPathFactory, prefect_template: Path
) -> Iterator[PrefectServer]:
    """On PostgreSQL: with so many processes, SQLite was locked for minutes."""
    with TemporaryDirectory(prefix="tidemark-") as name:
        Path(name).chmod(0o755)
        database = PostgreSQL(Path(name) / "postgresql", free_port())
        try:
            folder = tmp_path_factory.mktemp("server")
            with running(folder, prefect_template, database.url) as server:
                yield server
        finally:
            database.kill()


@pytest.fixture(scope="module")
def client(prefect_server: PrefectServer) -> Iterator[SyncPrefectClient]:
    subprocess.run(
        [TIDEMARK, "deploy", "--gpu-slots", "2"],
        env=prefect_server.environment,
        cwd=prefect_server.folder,
        check=True,
    )
    with api(prefect_server) as client:
        [found] = client.read_automations_by_name(NO_HEARTBEAT)
        client.update_automation(found.id, automation_of(NO_HEARTBEAT, SILENCE))
        yield client


@pytest.fixture(scope="module")
def workers(
    client: SyncPrefectClient, prefect_server: PrefectServer, web: Web, home: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    environment = worker_environment(home, web, every_s=2)
    with ExitStack() as stack:
        stack.enter_context(prefect_server.worker("crawl", **environment))
        yield [
            stack.enter_context(prefect_server.worker("gpu", "--limit", "1", **environment))
            for _ in range(2)
        ]


def times_scored(server: PrefectServer) -> Counter[str]:
    logs = [path.read_text() for path in server.folder.glob("worker-gpu-*.log")]
    return Counter(cell for log in logs for cell in SCORING.findall(log))


def landed(home: Path) -> list[dict[str, Any]]:
    month = "strftime(month, '%Y-%m') as month"
    sql = f"select model, source, {month} from internal.landed_cells order by all"
    return query(Settings(home=str(home)), sql).to_pylist()


@pytest.mark.slow
@pytest.mark.usefixtures("workers")
@pytest.mark.parametrize("is_away", [False, True])
@needs_extra("arxiv")
def test_a_cancelled_run_ends_and_leaves_nothing_behind(
    client: SyncPrefectClient,
    prefect_server: PrefectServer,
    web: Web,
    home: Path,
    is_away: bool,
    record_property: Callable[[str, object], None],
) -> None:
    web.faults.append(Fault("stall", "arxiv_oai", "/oai", 99))  # tries after it, too
    num_asked = len(web.requests)
    try:
        run = start("monthly/monthly", month="2024-02", sources=["arxiv"], models=["control:xz"])
        wait_for(lambda: [path for _, _, path in web.requests[num_asked:] if "/oai" in path])
        if is_away:
            prefect_server.stop(signal.SIGKILL)
            time.sleep(150)  # the worker no longer hears of cancellations
            prefect_server.start()
        cancelled_at = time.monotonic()
        client.set_flow_run_state(run.id, Cancelling())
        state = ended(client, run).state
        wait_for(lambda: not process_of(run), pause_s=0.1)
        record_property("seconds_to_end", time.monotonic() - cancelled_at)  # the goal is 60
    finally:
        web.faults.clear()
    assert state and state.is_cancelled(), state
    assert not list(home.rglob("source=arxiv/**/manifest.json"))
    assert not [path for path in home.rglob(".tmp-*") if path.is_file()]
    for path in (home / "work").rglob("*.lock"):
        with path.open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.slow
@pytest.mark.usefixtures("workers")
@needs_extra("more_sources")  # its longer texts: the cell must not end before it is stopped
def test_a_cancelled_run_cancels_its_work(
    client: SyncPrefectClient, slow_model: Path, home: Path
) -> None:
    given = {"month": "2024-03", "sources": ["govuk"], "models": [str(slow_model)]}
    run = start("monthly/monthly", **given)
    pid = wait_for(lambda: scorer_of("slow", Store(str(home))), pause_s=0.1)
    os.kill(pid, signal.SIGSTOP)  # so that the cell does not end before, on any machine
    client.set_flow_run_state(run.id, Cancelling())
    [work] = children_of(client, run)
    wait_for(lambda: not client.read_flow_run(work.id).state.is_running(), pause_s=0.1)
    with suppress(ProcessLookupError):  # the worker kills it after half a minute
        os.kill(pid, signal.SIGCONT)
    state = ended(client, run).state
    work_state = ended(client, work).state
    assert state and work_state
    assert (state.is_cancelled(), work_state.is_cancelled()) == (True, True)
    wait_for(lambda: not process_of(work), pause_s=0.1)
    assert not Store(str(home)).list("losses/model=slow/*/month=2024-03/*.parquet")
    again = start("monthly/monthly", **given)
    state = ended(client, again).state
    assert state
    assert state.name == "Completed", state.message
    assert {"model": "slow", "source": "govuk", "month": "2024-03"} in landed(home)


def process_of(run: FlowRun) -> list[int]:
    """Return the ids of the processes of a flow run."""
    return [
        process.pid
        for process in psutil.process_iter(["environ"])
        if (process.info["environ"] or {}).get("PREFECT__FLOW_RUN_ID") == str(run.id)
    ]


@pytest.mark.slow
@needs_extra("arxiv")
def test_a_month_goes_through_all_stages_though_a_source_fails_and_a_worker_is_killed(
    client: SyncPrefectClient,
    workers: list[subprocess.Popen[bytes]],
    prefect_server: PrefectServer,
    slow_model: Path,
    web: Web,
    home: Path,
) -> None:
    store, sources = Store(str(home)), ["hackernews", "wikipedia_new"]
    models = [str(slow_model), "control:zstd"]
    # Changed, not busy: nothing is retried.
    for key, path in (("arxiv_oai", "/oai"), ("arxiv", "/api/query")):
        web.faults.append(Fault("status", key, path, 99, 200, body=b"<html/>"))
    times_before = times_scored(prefect_server)
    run = start("monthly/monthly", month="2024-02", sources=["arxiv", *sources], models=models)

    pid = wait_for(lambda: scorer_of("slow", store), pause_s=0.1)
    kill_machine_of(pid, workers)
    before = set(store.list("losses/model=slow/*/month=2024-02/*.parquet"))
    assert len(before) < len(sources)

    state = ended(client, run).state
    assert state
    assert (state.name, state.is_completed()) == ("Completed (partial)", True), state.message
    assert state.message and "crawl arxiv 2024-02: " in state.message
    holes = state.message.splitlines()[1:]
    assert [hole.partition(": ")[0] for hole in holes] == ["crawl arxiv 2024-02"]
    assert (home / "report" / "index.html").exists()
    names = ["control:zstd", "slow"]
    assert [each for each in landed(home) if each["month"] == "2024-02"] == [
        {"model": model, "source": source, "month": "2024-02"}
        for model in names
        for source in sources
    ]
    times = times_scored(prefect_server) - times_before
    # The one that was being scored, if its process had come to say so.
    assert sorted(times.values()) in ([1] * 4, [1] * 3 + [2]), times
    children = children_of(client, run)
    assert {child.state and child.state.name for child in children} >= {"Crashed", "Completed"}
    client.set_flow_run_state(run.id, Crashed(message="killed at its end"), force=True)
    again = wait_for(lambda: restarted(client, run), pause_s=0.1)
    state = ended(client, again).state
    assert state and state.is_completed()
    assert children_of(client, again) == [], "nothing was left to do"
    if "prefect_display" in list_extras():
        events = told(client)
        for event, resource in (
            ("tidemark.partition.sealed", "tidemark.partition.wikipedia_new.2024-02"),
            ("tidemark.model.landed", "tidemark.model.control:zstd"),
        ):
            assert events[event, resource] == 1, (event, resource)
        # The restarted run tries the source again; its event may not have arrived yet.
        given_up = ("tidemark.partition.given-up", "tidemark.partition.arxiv.2024-02")
        assert events[given_up] in (1, 2)


def told(client: SyncPrefectClient) -> Counter[tuple[str, str]]:
    chosen = {"filter": {"event": {"prefix": ["tidemark."]}}, "limit": 50}
    found = client.request("POST", "/events/filter", json=chosen).json()["events"]
    return Counter((each["event"], each["resource"]["prefect.resource.id"]) for each in found)


def scorer_of(model: str, store: Store) -> int | None:
    claims = [json.loads(store.read_bytes(path)) for path in store.list("claims/*.json")]
    return next((each["pid"] for each in claims if f"model={model}/" in each["name"]), None)


def kill_machine_of(pid: int, workers: list[subprocess.Popen[bytes]]) -> None:
    [worker] = [each for each in workers if pid in runs_of(each)]
    runs = psutil.Process(worker.pid).children(recursive=True)
    os.killpg(worker.pid, signal.SIGKILL)
    for run in runs:
        with suppress(psutil.NoSuchProcess):
            run.kill()
    worker.wait()


def runs_of(worker: subprocess.Popen[bytes]) -> set[int]:
    return {each.pid for each in psutil.Process(worker.pid).children(recursive=True)}


@pytest.mark.slow
def test_two_backfills_that_overlap_do_no_cell_twice(
    client: SyncPrefectClient,
    workers: list[subprocess.Popen[bytes]],
    prefect_server: PrefectServer,
    web: Web,
    home: Path,
) -> None:
    before, num_asked = times_scored(prefect_server), len(web.requests)
    what = {"sources": ["hackernews"], "models": ["control:gzip"]}
    runs = [
        start("backfill/backfill", first=first, last=last, **what)
        for first, last in (("2024-01", "2024-02"), ("2024-01", "2024-03"))
    ]
    states = [ended(client, run).state for run in runs]
    assert [state and state.name for state in states] == ["Completed", "Completed"], states
    months = ["2024-01", "2024-02", "2024-03"]
    by_gzip = [each for each in landed(home) if each["model"] == "control:gzip"]
    expected = [("hackernews", month) for month in months]
    assert [(each["source"], each["month"]) for each in by_gzip] == expected
    times = times_scored(prefect_server) - before
    assert sorted(times.values()) == [1, 1, 1], times
    asked = Counter(path for site, _, path in web.requests[num_asked:] if site == "hackernews")
    del asked["/robots.txt"]  # each process asks for it
    assert len(asked) > len(months)
    assert set(asked.values()) == {1}, asked
