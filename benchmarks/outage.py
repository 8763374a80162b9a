"""A Prefect server and its database that are killed in the middle of a model.

    python -m benchmarks.outage --seconds 300 >> benchmarks/RESULTS.md

A worker starts a score run from a deployment; when some cells are done, server and PostgreSQL are
killed (SIGKILL, immediate stop) and stay away. The run has to complete after their return, with
every cell scored once and every task run recorded. tests/flows/test_outage.py does the same for
seconds, on SQLite.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime as dt
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, TaskRun
from prefect.settings import PREFECT_API_URL, temporary_settings

from core.corpus import Partition
from core.month import Month, month_range
from core.storage import Store
from crawlers.import_texts import ImportOptions, import_texts

POOL = "outage"
MODEL = "control:xz"
SOURCE = "slow"


class Server(Protocol):
    """What the run needs of ``tests.servers.PrefectServer``."""

    url: str
    folder: Path

    def start(self) -> None: ...
    def stop(self, with_signal: int = ...) -> None: ...
    def worker(
        self, pool: str, *options: str, **environment: str
    ) -> contextlib.AbstractContextManager[object]: ...


@dataclass(frozen=True)
class Outcome:
    """What came of it.

    Attributes:
        away_s: how long the server was away.
        run: the flow run, as the server knows it.
        tasks: its task runs, as the server knows them.
        num_cells: how many cells there are.
        scored_at: when each cell was scored, by its path.
        num_during: how many cells were scored while the server was away.
        back_s: from the server's return to the run's end.
    """

    away_s: float
    run: FlowRun
    tasks: list[TaskRun]
    num_cells: int
    scored_at: dict[str, dt.datetime]
    num_during: int
    back_s: float

    def states(self) -> dict[str, int]:
        """Count the task runs by name's first word and state."""
        counted = collections.Counter(
            f"{task.name.split()[0]} {task.state_name}" for task in self.tasks
        )
        return dict(sorted(counted.items()))


def seal_slow_months(home: Path, num_months: int, megabytes: float) -> list[str]:
    """Seal months of text that nothing compresses quickly; return their names."""
    first = Month("2020-01")
    months = list(month_range(first, first + (num_months - 1)))
    file = home.parent / "texts.json"
    for month in months:
        texts = [os.urandom(25_000).hex() for _ in range(int(megabytes * 20))]
        file.write_text(json.dumps(texts))
        import_texts(file, Partition(SOURCE, month), Store(str(home)), ImportOptions())
    file.unlink()
    return [str(month) for month in months]


def run_through(
    server: Server,
    home: Path,
    away_s: float,
    kill: Callable[[], None] = lambda: None,
    revive: Callable[[], None] = lambda: None,
) -> Outcome:
    """Start a score run by a worker, take the server away, bring it back, wait for the end.

    Args:
        server: it runs, with a pool and a deployment (``deploy_score``).
        home: data root, with months sealed.
        away_s: seconds from the kill until the server is started again.
        kill: what else is to be killed.
        revive: what is to be started before the server.
    """
    store = Store(str(home))
    num_cells = len(store.list("corpus/*/*/manifest.json"))
    with server.worker(POOL, TIDEMARK_HOME=str(home)), temporary_settings({PREFECT_API_URL: server.url}):
        with get_client(sync_client=True) as client:
            deployment = client.read_deployment_by_name("score/outage")
            run = client.create_flow_run_from_deployment(deployment.id)
        _until(lambda: len(_cells(store)) >= 2, 300, "the second cell")
        server.stop(signal.SIGKILL)
        kill()
        killed_at, before = time.monotonic(), len(_cells(store))
        time.sleep(away_s)
        during = len(_cells(store)) - before
        revive()
        server.start()
        back_at = time.monotonic()
        found = _until_ended(run.id, 600)
        back_s = time.monotonic() - back_at
        tasks = _task_runs(run.id)
    scored_at = {
        path: dt.datetime.fromisoformat(json.loads(store.read_bytes(path))["scored_at"])
        for path in store.list("losses/*/*/*/*.json")
    }
    return Outcome(back_at - killed_at, found, tasks, num_cells, scored_at, during, back_s)


def _cells(store: Store) -> list[str]:
    return store.list("losses/*/*/*/*.parquet")


def _until(is_so: Callable[[], bool], wait_s: float, what: str) -> None:
    deadline = time.monotonic() + wait_s
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {wait_s:.0f} s for {what}")
        time.sleep(0.2)


def _until_ended(run: object, wait_s: float) -> FlowRun:
    deadline = time.monotonic() + wait_s
    while True:
        with get_client(sync_client=True) as client:
            found = client.read_flow_run(run)  # type: ignore[arg-type]
        if (found.state and found.state.is_final()) or time.monotonic() > deadline:
            return found
        time.sleep(0.5)


def _task_runs(run: object) -> list[TaskRun]:
    of_run = FlowRunFilter(id=FlowRunFilterId(any_=[run]))  # type: ignore[list-item]
    with get_client(sync_client=True) as client:
        return client.read_task_runs(flow_run_filter=of_run)


def deploy_score(server: Server, checkout: Path) -> None:
    """Make a process pool and a deployment of the score flow on a server."""
    from flows.score import score

    with temporary_settings({PREFECT_API_URL: server.url}):
        from prefect.client.schemas.actions import WorkPoolCreate

        with get_client(sync_client=True) as client:
            client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        remote = score.from_source(source=str(checkout), entrypoint="flows/score.py:score")
        remote.deploy(  # type: ignore[union-attr]
            name="outage",
            work_pool_name=POOL,
            parameters={"model": MODEL},
            print_next_steps=False,
            ignore_warnings=True,
        )
