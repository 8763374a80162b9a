"""Benchmark of an outage: a Prefect server and its database are killed during scoring.

    python -m benchmarks.orchestration.outage --seconds 300 >> benchmarks/RESULTS.md

A worker starts a score run from a deployment. After two scored cells, the server and PostgreSQL are
killed and stay down for ``--seconds``. After their restart, the run must complete, with every cell
scored once and every task run recorded. tests/flows/test_outage.py tests short outages.
"""

from __future__ import annotations

import argparse
import collections
import datetime as dt
import json
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.client.schemas.objects import FlowRun, TaskRun
from prefect.settings import PREFECT_API_URL, temporary_settings

from core.corpus.partition import Partition
from core.month import Month, month_range
from core.storage.store import Store
from crawlers.imports.texts import ImportOptions, import_texts
from tests.loopback import free_port
from tests.servers import PostgreSQL, PrefectServer

POOL = "outage"
MODEL = "control:xz"
SOURCE = "slow"


@dataclass(frozen=True)
class Outcome:
    """The result of a score run with an outage; ``run`` and ``tasks`` come from the server.

    ``away_s`` is the length of the outage in seconds, and ``num_during`` the number of cells scored
    during the outage. ``back_s`` is the time in seconds from the server's restart to the run's end.
    ``times_scored`` is the number of times that the worker scored each cell, by cell name.
    """

    away_s: float
    run: FlowRun
    tasks: list[TaskRun]
    num_cells: int
    num_during: int
    back_s: float
    times_scored: dict[str, int]

    @property
    def is_whole(self) -> bool:
        """Return True if the run completed, with each cell scored and recorded once."""
        return (
            self.run.state_name == "Completed"
            and sorted(self.times_scored.values()) == [1] * self.num_cells
            and self.states() == {"score Completed": self.num_cells}
        )

    def states(self) -> dict[str, int]:
        """Return the number of task runs, by the first word of the run's name and its state."""
        counted = collections.Counter(
            f"{re.split('[ -]', task.name)[0]} {task.state_name}" for task in self.tasks
        )
        return dict(sorted(counted.items()))


def seal_slow_months(home: Path, num_months: int, megabytes: float) -> list[str]:
    """Seal months of ``megabytes`` MB of hex text, which compresses slowly; return the months."""
    first = Month("2018-01")
    months = list(month_range(first, first + (num_months - 1)))
    file = home.parent / "texts.json"
    for month in months:
        texts = [os.urandom(25_000).hex() for _ in range(int(megabytes * 20))]
        file.write_text(json.dumps(texts))
        import_texts(file, Partition(SOURCE, month), Store(str(home)), ImportOptions())
    file.unlink()
    return [str(month) for month in months]


def run_through(
    server: PrefectServer,
    home: Path,
    away_s: float,
    kill: Callable[[], None] = lambda: None,
    revive: Callable[[], None] = lambda: None,
) -> Outcome:
    """Start a score run on a worker, kill the server, restart it, and wait for the run's end.

    The server must be running, with a pool and a deployment (``deploy_score``). The restart comes
    ``away_s`` seconds after the kill. ``kill`` and ``revive`` stop and start other processes, such
    as the database; ``revive`` is called before the server's restart.
    """
    store = Store(str(home))
    num_cells = len(store.list("corpus/*/*/manifest.json"))
    with (
        server.worker(POOL, TIDEMARK_HOME=str(home)),
        temporary_settings({PREFECT_API_URL: server.url}),
    ):
        with get_client(sync_client=True) as client:
            deployment = client.read_deployment_by_name("work/outage")
            run = client.create_flow_run_from_deployment(deployment.id)
        until(lambda: len(_cells(store)) >= 2, 300, "the second cell")
        server.stop(signal.SIGKILL)
        kill()
        killed_at, before = time.monotonic(), len(_cells(store))
        time.sleep(away_s)
        during = len(_cells(store)) - before
        revive()
        server.start()
        back_at = time.monotonic()
        found = until_ended(run.id, 3600)
        back_s = time.monotonic() - back_at
        tasks = _task_runs(run.id)
    logs = "".join(path.read_text() for path in server.folder.glob("worker-*.log"))
    times = collections.Counter(re.findall(r"- scoring (.*)$", logs, re.MULTILINE))
    return Outcome(back_at - killed_at, found, tasks, num_cells, during, back_s, dict(times))


def _cells(store: Store) -> list[str]:
    return store.list("losses/*/*/*/*.parquet")


def until(is_so: Callable[[], bool], wait_s: float, what: str) -> None:
    """Wait until ``is_so`` returns True; raise TimeoutError after ``wait_s`` seconds."""
    deadline = time.monotonic() + wait_s
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {wait_s:.0f} s for {what}")
        time.sleep(0.2)


def until_ended(run: object, wait_s: float) -> FlowRun:
    """Wait until a flow run ends, or ``wait_s`` seconds; return the flow run."""
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


def deploy_score(server: PrefectServer) -> None:
    """Make a process pool and a deployment of the flow ``work`` on a server."""
    from prefect.client.schemas.actions import WorkPoolCreate

    from deployments.prefect_yaml import read_deployments

    [work] = [each for each in read_deployments() if each.full_name == "work/gpu"]
    fields = {**work.fields(), "parameters": {"models": [MODEL]}, "work_pool_name": POOL}
    with temporary_settings({PREFECT_API_URL: server.url}), get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name=POOL, type="process"))
        flow = client.create_flow_from_name(work.flow)
        client.create_deployment(flow, name="outage", **fields)


def main() -> int:
    """Run the benchmark and print the outcome; return 1 if a cell or record is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300, help="how long they are away")
    parser.add_argument("--cells", type=int, default=60, help="cells of some seconds each")
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidemark-outage-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        database = PostgreSQL(folder / "postgresql", free_port())
        server = PrefectServer(
            folder / "server",
            folder / "template",
            PREFECT_API_DATABASE_CONNECTION_URL=database.url,
        )
        try:
            server.start()
            deploy_score(server)
            seal_slow_months(folder / "home", parsed.cells, megabytes=4)
            outcome = run_through(
                server, folder / "home", parsed.seconds, database.kill, database.start
            )
        finally:
            server.stop()
            database.kill()
    _print(outcome)
    return 0 if outcome.is_whole else 1


def _print(outcome: Outcome) -> None:
    """Print what became of the run and its cells, in Markdown."""
    print(f"## {dt.datetime.now(dt.UTC).date()}, server and PostgreSQL killed in mid-model\n")
    command = " ".join(["python -m benchmarks.orchestration.outage", *sys.argv[1:]])
    print(f"`{command}`; {os.cpu_count()} cores, load average {os.getloadavg()[2]:.0f}\n")
    print(f"- away for {outcome.away_s:.0f} s, in which {outcome.num_during} cells were scored")
    print(f"- the run ended {outcome.back_s:.0f} s after the return: {outcome.run.state_name}")
    once = sum(count == 1 for count in outcome.times_scored.values())
    print(f"- cells: {outcome.num_cells}; scored once: {once}")
    print(f"- task runs on the server: {outcome.states()}")


if __name__ == "__main__":
    raise SystemExit(main())
