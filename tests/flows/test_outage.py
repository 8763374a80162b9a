"""Killed machines, a server that is away, and processes that want the same cells.

The Prefect server and workers are real. Cells compress noise, which takes some seconds.
"""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings

from benchmarks.orchestration.outage import (
    POOL,
    deploy_score,
    run_through,
    seal_slow_months,
    until,
    until_ended,
)
from core.errors import OrchestrationError, StorageError
from core.storage.store import Store
from tasks.prefect.server import wait_for_server
from tests.servers import PrefectServer
from tests.tiers import needs_extra

ROOT = Path(__file__).resolve().parents[2]
SCORING = re.compile(r"\bscoring (control:xz on .*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def deployed(prefect_server: PrefectServer) -> PrefectServer:
    deploy_score(prefect_server)
    return prefect_server


@pytest.fixture
def api(deployed: PrefectServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PREFECT_API_URL", deployed.url)
    with temporary_settings({PREFECT_API_URL: deployed.url}):
        yield deployed.url


@pytest.mark.slow
@needs_extra("prefect_display")  # it sends lost states again
def test_a_server_that_is_killed_misses_nothing(deployed: PrefectServer, home: Path) -> None:
    """Outage of 20 s; benchmarks/orchestration/outage.py has 5 minutes, with PostgreSQL."""
    seal_slow_months(home, 8, megabytes=1.5)
    outcome = run_through(deployed, home, away_s=20)
    assert outcome.is_whole, (outcome.run.state, outcome.states(), outcome.times_scored)
    assert outcome.num_during >= 2


@pytest.mark.slow
def test_a_flow_run_that_is_killed_loses_the_running_cell(
    deployed: PrefectServer, home: Path, api: str
) -> None:
    months = seal_slow_months(home, 5, megabytes=0.1)
    store = Store(str(home))
    one_by_one = {"TIDEMARK_HOME": str(home), "TIDEMARK_IN_FLIGHT": "1"}  # in the order of months
    with deployed.worker(POOL, **one_by_one), get_client(sync_client=True) as client:
        deployment = client.read_deployment_by_name("work/outage")
        with unreadable(home / "corpus/source=slow" / f"month={months[2]}"):
            first = client.create_flow_run_from_deployment(deployment.id)
            until(lambda: bool(scorers_of(months[2], store)), 500, "the third cell")
            os.kill(scorers_of(months[2], store)[0], signal.SIGKILL)
        before = {path: Path(store.url(path)).stat().st_ino for path in losses(store)}
        again = client.create_flow_run_from_deployment(deployment.id)
        ended = until_ended(again.id, 500)
        crashed = until_ended(first.id, 500)
    assert (ended.state_name, crashed.state_name) == ("Completed", "Crashed")
    after = {path: Path(store.url(path)).stat().st_ino for path in losses(store)}
    assert (len(before), len(after)) == (2, 5)
    assert {path: after[path] for path in before} == before  # neither was scored again
    assert claims(store) == []
    log = max(deployed.folder.glob("worker-*.log")).read_text()
    assert "Downloading flow code" not in log  # Prefect's word for copying the worker's folder


def scorers_of(month: str, store: Store) -> list[int]:
    """Return the process that has claimed a month's cell, if there is one."""
    found = []
    for path in claims(store):
        with contextlib.suppress(StorageError, ValueError):  # given back, or not whole yet
            claim = json.loads(store.read_bytes(path))
            found += [int(claim["pid"])] if month in claim["name"] else []
    return found


@contextlib.contextmanager
def unreadable(partition: Path) -> Iterator[None]:
    [documents] = partition.glob("*.parquet")
    aside = documents.with_name("aside")
    documents.rename(aside)
    os.mkfifo(documents)
    try:
        yield
    finally:
        aside.rename(documents)


_SCORES = """
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
from core.settings import load_settings
settings = load_settings()
if sys.argv[1] == "flow":
    from flows.work import work
    state = work(models=["control:xz"], return_state=True)
    print("ended", state.name)
else:
    from instruments.losses import score_and_land
    num_landed, failures = score_and_land(settings, ["control:xz"], None, None, ["default"])
    print("ended", "Completed" if not failures else failures)
"""


@pytest.mark.slow
def test_who_score_the_same_cells_at_once_score_each_once(
    deployed: PrefectServer, home: Path
) -> None:
    seal_slow_months(home, 12, megabytes=0.7)
    environment = {**deployed.environment, "TIDEMARK_HOME": str(home)}
    without = {name: value for name, value in environment.items() if name != "PREFECT_API_URL"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _SCORES, kind],
            env=environment if kind == "flow" else without,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for kind in ("direct", "direct", "flow")
    ]
    said = [process.communicate(timeout=500)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert all("ended Completed" in text for text in said), said
    scored = [SCORING.findall(text) for text in said]
    times = Counter(cell for cells in scored for cell in cells)
    assert sorted(times.values()) == [1] * 12, scored
    assert sum(bool(cells) for cells in scored) >= 2, scored  # they shared the work
    assert claims(Store(str(home))) == []


def losses(store: Store) -> list[str]:
    return store.list("losses/*/*/*/*.parquet")


def claims(store: Store) -> list[str]:
    return store.list("claims/*.json")


@contextlib.contextmanager
def gone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    url = "http://127.0.0.1:9/api"
    monkeypatch.setenv("PREFECT_API_URL", url)
    with temporary_settings({PREFECT_API_URL: url}):
        yield


@pytest.mark.long
def test_a_server_that_is_away_is_waited_for_some_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with gone(monkeypatch), pytest.raises(OrchestrationError, match="has not answered for"):
        wait_for_server(wait_s=1)
    assert "waiting for the Prefect server" in caplog.text
