"""Benchmark of a Prefect server that records the scoring of 7,000 cells of 0.4 s each.

A separate process (the client) runs ``flows/work.py``, one flow run per model. Each flow run
scores 8 cells concurrently. The models are remote; a stub (``stub_model.py``) replaces their
server. The client reads a cell's partition, tokenizes the text, sends it over HTTP, and writes and
lands the losses. The stub waits 0.4 s before each response.

The orchestration time is the duration of the flow runs, minus the stub's waiting time, landing and
publication. So this time includes Prefect, planning, loading, reading and writing. The client's
clock also includes the creation of each flow run, and up to 1 s in which Prefect stops its
heartbeat thread.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import requests
import yaml

from benchmarks.measure import Verdict, say
from benchmarks.orchestration.memory import Watch
from benchmarks.orchestration.stub_model import SECONDS
from benchmarks.scoring.shapes import make_texts, make_tokenizer
from core.corpus.partition import Partition, tables_of
from core.corpus.sealing import seal_partition
from core.json import JsonObject
from core.month import Month, month_range
from core.schemas.tables import DocumentRow
from core.settings import Settings
from core.storage.store import Store
from models.catalogue import ModelEntry, add_model
from tests.loopback import free_port
from tests.servers import PostgreSQL, PrefectServer

IN_FLIGHT = 8
MAX_MODELS, NUM_MONTHS, NUM_SOURCES = 14, 83, 6
MAX_SHARE = {"PostgreSQL": 0.08, "SQLite": math.inf}  # largest accepted ``Findings.share``
MAX_GROWTH = 0.05  # largest accepted ``Memory.growth`` of the client
_ROOT = Path(__file__).resolve().parents[2]
_FIRST = Month("2018-01")
_TEXT_CHARS = 1_500
_RECORDING_S = 180  # time limit in seconds for the server to record all task runs


def run(rounds: int, cells: int) -> Sequence[Verdict]:
    """Measure two servers, on PostgreSQL and SQLite, with ``cells`` cells; ignore ``rounds``."""
    num_models = max(1, min(MAX_MODELS, round(cells / NUM_MONTHS / NUM_SOURCES)))
    names = [f"stub-{number:02}" for number in range(1, num_models + 1)]
    num_months = max(1, round(cells / num_models / NUM_SOURCES))
    return [measure_server(database, names, num_months) for database in ("PostgreSQL", "SQLite")]


def measure_server(database: str, names: Sequence[str], num_months: int) -> Verdict:
    """Score all cells with a new server; then repeat the command, which finds nothing to score."""
    num_cells = len(names) * num_months * NUM_SOURCES
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tidemark-bench-")))
        folder.chmod(0o755)  # PostgreSQL runs as another user and must read this folder
        stub = stack.enter_context(_stub(names))
        home = folder / "home"
        _make_home(str(home), names, stub, num_months)
        server = stack.enter_context(_server(database, folder))
        say(f"{database}: server started")
        first = _score(server, home, names)
        recorded, lag_s = _wait_for_records(server, num_cells)
        stats = requests.get(f"{stub}/stats", timeout=10).json()
        flow_runs_s = _seconds_of(server, "score ", "flow_runs")
        again = _score(server, home, names)
        time.sleep(5)
        extra = _count(server, "score ") - recorded
    found = Findings(num_cells, first, again, recorded, lag_s, stats, flow_runs_s, extra)
    return found.verdict(database)


@dataclasses.dataclass(frozen=True)
class Scoring:
    """The result of one client process: its flow runs, wall time, and samples of memory."""

    flow_runs: list[JsonObject]
    wall_s: float
    watch: Watch

    @property
    def seconds(self) -> float:
        """Return the total seconds of all flow runs, by the client's clock."""
        return math.fsum(each["seconds"] for each in self.flow_runs)

    @property
    def holes(self) -> list[str]:
        """Return the failed cells of all flow runs, as text."""
        return [hole for each in self.flow_runs for hole in each["holes"]]


@dataclasses.dataclass(frozen=True)
class Findings:
    """The results of one server: the ``first`` scoring, and the repetition (``again``).

    ``recorded`` is the number of completed task runs of cells on the server, ``lag_s`` seconds
    after the client's end. ``stats`` is the stub's response to ``/stats``. ``flow_runs_s`` is
    the server's total time of the flow runs. ``extra`` counts the repetition's task runs.
    """

    cells: int
    first: Scoring
    again: Scoring
    recorded: int
    lag_s: float
    stats: dict[str, int]
    flow_runs_s: float
    extra: int

    @property
    def work_s(self) -> float:
        """Return the minimum seconds of waiting for the stub, with 8 cells scored at a time."""
        models = len(self.first.flow_runs)
        return models * math.ceil(self.cells / models / IN_FLIGHT) * SECONDS

    def share(self, flow_runs_s: float) -> float:
        """Return the orchestration time as a fraction of ``work_s``."""
        return flow_runs_s / self.work_s - 1

    def verdict(self, database: str) -> Verdict:
        """Return the table of figures, and each requirement with True if it is met."""
        share, by_clock = self.share(self.flow_runs_s), self.share(self.first.seconds)
        client = self.first.watch.of("client")
        conditions = {
            f"{self.recorded} of {self.cells} task runs recorded": self.recorded == self.cells,
            f"{self.stats['answers']} cells scored": self.stats["answers"] == self.cells,
            f"{self.stats['most_busy']} in flight": self.stats["most_busy"] == IN_FLIGHT,
            f"{len(self.first.holes)} holes": not self.first.holes,
            f"orchestration {share:.1%}": share <= MAX_SHARE[database],
            f"client's memory grows by {client.growth:.1%}": client.growth <= MAX_GROWTH,
            f"{self.extra} task runs for cells that are done": self.extra == 0,
        }
        rows = {
            "cells": f"{self.cells:,}",
            "task runs of cells recorded as completed": f"{self.recorded:,}",
            "recorded after the client's end": f"{self.lag_s:.0f} s",
            "answers of the stub, most at once": f"{self.stats['answers']:,}, "
            f"{self.stats['most_busy']}",
            "work: 0.4 s a cell, 8 at once": f"{self.work_s:.1f} s",
            "flow runs": f"{self.flow_runs_s:.1f} s",
            "flow runs, by the client's clock": f"{self.first.seconds:.1f} s",
            "orchestration, by the client's clock": f"{share:.1%}, {by_clock:.1%} of the work",
            "client's process, start and end included": f"{self.first.wall_s:.1f} s",
            "memory and CPU of the client": str(client),
            "memory and CPU of the server": str(self.first.watch.of("server")),
            "all done: flow runs, process": f"{self.again.seconds:.1f} s, "
            f"{self.again.wall_s:.1f} s",
            "all done: task runs of cells": str(self.extra),
        }
        return Verdict(f"orchestration: {database}", rows, conditions)


def _make_home(home: str, names: Sequence[str], stub: str, num_months: int) -> None:
    """Seal partitions with one text each, and add the stub's models to the catalogue."""
    settings = Settings(home=home)
    store = Store(settings.home)
    text = make_texts(1)[0]
    for month in month_range(_FIRST, _FIRST + (num_months - 1)):
        for number in range(NUM_SOURCES):
            partition = Partition(f"source-{number}", month)
            words = f"{partition}: {text[number * 100 :][:_TEXT_CHARS]}"
            row: DocumentRow = {
                "native_id": str(partition), "text": words, "date_kind": "given",
                "licence": "CC0-1.0",
            }  # fmt: skip
            seal_partition(store, partition, tables_of([row], partition))
    tokenizer = str(Path(home) / "tokenizer")
    make_tokenizer().save_pretrained(tokenizer)
    for name in names:
        entry = ModelEntry(name, "remote", location=stub, tokenizer=tokenizer, served_name=name)
        add_model(entry, settings)


def _score(server: PrefectServer, home: Path, names: Sequence[str]) -> Scoring:
    """Score all models in a separate process."""
    environment = {
        **server.environment,
        "TIDEMARK_HOME": str(home),
        "PREFECT_LOGGING_LEVEL": "INFO",  # log lines are sent to the server, as by real workers
    }
    began = time.perf_counter()
    with (server.folder / "client.log").open("ab") as log:
        client = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.orchestration.client", *names],
            env=environment,
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    flow_runs = []
    with Watch({"client": client.pid, "server": server.pid}) as watch:
        for line in client.stdout or ():
            flow_runs.append(json.loads(line))
            say(f"{flow_runs[-1]['model']}: {flow_runs[-1]['seconds']:.1f} s")
    if client.wait() != 0 or len(flow_runs) != len(names):
        told = (server.folder / "client.log").read_text(errors="replace")[-3000:]
        raise RuntimeError(f"the client ended with {client.returncode}: {told}")
    return Scoring(flow_runs, time.perf_counter() - began, watch)


def _wait_for_records(server: PrefectServer, expected: int) -> tuple[int, float]:
    """Wait for ``expected`` recorded task runs; return their number and the seconds waited."""
    began = time.monotonic()
    while (count := _count(server, "score ")) < expected:
        if time.monotonic() - began > _RECORDING_S:
            break
        time.sleep(1)
    return count, time.monotonic() - began


def _count(server: PrefectServer, name: str) -> int:
    """Return the number of completed task runs whose name contains ``name``."""
    return int(_ask(server, "count", name))


def _seconds_of(server: PrefectServer, name: str, runs: str = "task_runs") -> float:
    """Return the total seconds of completed runs whose name contains ``name``."""
    return float(sum(run["total_run_time"] for run in _ask(server, "filter", name, runs)))


def _ask(server: PrefectServer, what: str, name: str, runs: str = "task_runs") -> Any:
    wanted = {"name": {"like_": name}, "state": {"type": {"any_": ["COMPLETED"]}}}
    answer = requests.post(f"{server.url}/{runs}/{what}", json={runs: wanted}, timeout=60)
    answer.raise_for_status()
    return answer.json()


@contextlib.contextmanager
def _stub(names: Sequence[str]) -> Iterator[str]:
    """Run the stub server in a process; yield its base URL."""
    command = [sys.executable, "-m", "benchmarks.orchestration.stub_model", *names]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


@contextlib.contextmanager
def _server(database: str, folder: Path) -> Iterator[PrefectServer]:
    """Run a Prefect server on a new database."""
    with contextlib.ExitStack() as stack:
        settings = _server_settings()
        if database == "PostgreSQL":
            postgresql = PostgreSQL(folder / "postgresql", free_port())
            stack.callback(postgresql.kill)
            settings["PREFECT_API_DATABASE_CONNECTION_URL"] = postgresql.url
        server = PrefectServer(folder / "server", folder / "template", **settings)
        server.start()
        stack.callback(server.stop)
        yield server


def _server_settings() -> dict[str, str]:
    """Return the service settings of the Prefect server in deployments/compose.yaml."""
    compose = yaml.safe_load((_ROOT / "deployments" / "compose.yaml").read_text(encoding="utf-8"))
    environment = compose["services"]["prefect-server"]["environment"]
    return {k: v for k, v in environment.items() if k.startswith("PREFECT_SERVER_SERVICES_")}
