"""What `tidemark deploy` makes, at work: a worker that is killed, back-fills that overlap.

The time of a heartbeat's silence is shortened; all else is as it is on any server.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from prefect.client.orchestration import SyncPrefectClient
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from core.month import Month
from core.run_record import RunRecord
from core.settings import Settings
from core.storage import Store
from flows.dispatch import name_of_run
from simulator.server import Web, serve
from simulator.world import World
from warehouse.query import query

from ..servers import PrefectServer
from .conftest import TIDEMARK
from .deployed import api, ended, start, until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SILENCE_S = 70  # more than two of Prefect's heartbeats
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
    """A model whose cells take seconds, so that it can be killed in the middle of one."""
    folder = tmp_path_factory.mktemp("models") / "slow"
    config = LlamaConfig.from_pretrained(tiny_model)
    config.update({"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 8})
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    AutoTokenizer.from_pretrained(tiny_model).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def client(prefect_server: PrefectServer) -> Iterator[SyncPrefectClient]:
    """A server on which `tidemark deploy` has been run, in a folder that is no checkout."""
    subprocess.run(
        [TIDEMARK, "deploy", "--gpu-slots", "2"],
        env=prefect_server.environment,
        cwd=prefect_server.folder,
        check=True,
    )
    with api(prefect_server) as client:
        [zombies] = client.read_automations_by_name("tidemark: no heartbeat")
        zombies.trigger.within = SILENCE_S  # type: ignore[union-attr,assignment]
        client.update_automation(zombies.id, zombies)
        yield client


@pytest.fixture(scope="module")
def workers(
    client: SyncPrefectClient, prefect_server: PrefectServer, web: Web, home: Path
) -> Iterator[list[subprocess.Popen[bytes]]]:
    """One of the pool crawl, and two of the pool gpu with one run at a time each."""
    environment = {
        "TIDEMARK_HOME": str(home),
        "TIDEMARK_REQUEST_INTERVAL_S": "0",
        "TIDEMARK_WATCH_INTERVAL_S": "3",
        "PREFECT_WORKER_QUERY_SECONDS": "2",
        **{f"TIDEMARK_SITES__{key.upper()}": url for key, url in web.urls.items()},
    }
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
    sql = "select model, source, strftime(month, '%Y-%m') as month from landed_cells order by all"
    return query(Settings(home=str(home)), sql).to_pylist()


def test_a_month_goes_through_all_stages_though_a_worker_is_killed(
    client: SyncPrefectClient,
    workers: list[subprocess.Popen[bytes]],
    prefect_server: PrefectServer,
    slow_model: Path,
    home: Path,
) -> None:
    store, sources = Store(str(home)), ["arxiv", "wikipedia_new"]
    models = [str(slow_model), "control:zstd"]
    run = start("monthly/monthly", month="2024-02", sources=sources, models=models)

    pid = until(lambda: scorer_of("slow", store))
    kill_machine_of(pid, workers)
    before = set(store.list("losses/model=slow/*/*/*.parquet"))
    assert len(before) < len(sources)

    state = ended(client, run).state
    assert state
    assert state.name == "Completed", state.message
    result = RunRecord(store, name_of_run("monthly", run.id)).result()
    assert result
    assert (result.partitions, result.cells, result.holes) == (2, 4, ())
    assert Path(result.report).exists()
    names = ["control:zstd", "slow"]
    assert landed(home) == [
        {"model": model, "source": source, "month": "2024-02"}
        for model in names
        for source in sources
    ]
    times = times_scored(prefect_server)
    assert sorted(times.values()) == [1, 1, 1, 2], times  # the one that was being scored


def scorer_of(model: str, store: Store) -> int | None:
    """Return the process that is scoring a cell of a model, if there is one."""
    claims = [json.loads(store.read_bytes(path)) for path in store.list("claims/*.json")]
    return next((each["pid"] for each in claims if f"model={model}/" in each["name"]), None)


def kill_machine_of(pid: int, workers: list[subprocess.Popen[bytes]]) -> None:
    """Kill a run and its worker, as a power cut does."""
    [worker] = [each for each in workers if pid in runs_of(each)]
    runs = psutil.Process(worker.pid).children(recursive=True)
    os.killpg(worker.pid, signal.SIGKILL)
    for run in runs:
        with suppress(psutil.NoSuchProcess):
            run.kill()
    worker.wait()


def runs_of(worker: subprocess.Popen[bytes]) -> set[int]:
    return {each.pid for each in psutil.Process(worker.pid).children(recursive=True)}


def test_two_backfills_that_overlap_do_no_cell_twice(
    client: SyncPrefectClient,
    workers: list[subprocess.Popen[bytes]],
    prefect_server: PrefectServer,
    web: Web,
    home: Path,
) -> None:
    before = times_scored(prefect_server)
    what = {"sources": ["govuk"], "models": ["control:gzip"]}
    runs = [
        start("backfill/backfill", first=first, last=last, **what)
        for first, last in (("2024-01", "2024-02"), ("2024-01", "2024-03"))
    ]
    states = [ended(client, run).state for run in runs]
    assert [state and state.name for state in states] == ["Completed", "Completed"], states
    results = [
        RunRecord(Store(str(home)), name_of_run("backfill", run.id)).result() for run in runs
    ]
    assert [(result.partitions, result.cells) for result in results if result] == [(2, 2), (3, 3)]
    months = ["2024-01", "2024-02", "2024-03"]
    assert [each["month"] for each in landed(home) if each["source"] == "govuk"] == months
    times = times_scored(prefect_server) - before
    assert sorted(times.values()) == [1, 1, 1], times
    asked = Counter(path for site, _, path in web.requests if site == "govuk")
    del asked["/robots.txt"]  # each process asks for it
    assert len(asked) > len(months)
    assert set(asked.values()) == {1}, asked
