"""A real Prefect server under 7,000 cells of 0.4 s: its records, its memory and its time.

The cells run in ``flows/score.py``, one flow run a model, from a separate process. The model scores
8 cells at once, while two more are prepared or recorded. The models are remote ones, whose server
is a stub (``stub_model.py``). A cell reads its partition, tokenizes its text, sends it over HTTP,
and writes and lands its losses. For 0.4 s of it no processor is busy.

Orchestration is the time of the flow runs, as the server records them, less rounds of 8 cells of
0.4 s, landing and publication. It holds Prefect, planning, loading, reading and writing. By the
client's clock, a flow run also has its creation. At its end Prefect waits for the thread of its
heartbeats for up to a second.
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
from core.corpus.sealing import Ready, seal_partition
from core.month import Month, month_range
from core.settings import Settings
from core.storage.store import Store
from models.catalogue import ModelEntry, add_model
from tests.servers import PostgreSQL, PrefectServer, free_port

IN_FLIGHT = 8
MAX_MODELS, NUM_MONTHS, NUM_SOURCES = 14, 83, 6
MAX_SHARE = {"PostgreSQL": 0.08, "SQLite": math.inf}  # of SQLite the limits are documented
MAX_GROWTH = 0.05  # of the client's resident memory over the last half
_ROOT = Path(__file__).resolve().parents[2]
_FIRST = Month("2018-01")
_TEXT_CHARS = 600
_RECORDING_S = 180  # how long the server may take to record what the client has sent


def run(rounds: int, cells: int) -> Sequence[Verdict]:
    """Score about ``cells`` cells with PostgreSQL and with SQLite, then again; no rounds."""
    num_models = max(1, min(MAX_MODELS, round(cells / NUM_MONTHS / NUM_SOURCES)))
    names = [f"stub-{number:02}" for number in range(1, num_models + 1)]
    num_months = max(1, round(cells / num_models / NUM_SOURCES))
    return [measure_server(database, names, num_months) for database in ("PostgreSQL", "SQLite")]


def measure_server(database: str, names: Sequence[str], num_months: int) -> Verdict:
    """Score all cells on a new server, and again when all are scored."""
    num_cells = len(names) * num_months * NUM_SOURCES
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tidemark-bench-")))
        folder.chmod(0o755)  # PostgreSQL is another user
        stub = stack.enter_context(_stub(names))
        home = folder / "home"
        _make_home(str(home), names, stub, num_months)
        server = stack.enter_context(_server(database, folder))
        say(f"{database}: server started")
        first = _score(server, home, names)
        recorded, lag_s = _wait_for_records(server, num_cells)
        stats = requests.get(f"{stub}/stats", timeout=10).json()
        stages = {name: _seconds_of(server, name) for name in ("land ", "publish_warehouse")}
        stages["score"] = _seconds_of(server, "score ", "flow_runs")
        again = _score(server, home, names)
        time.sleep(5)
        extra = _count(server, "score ") - recorded
    found = Findings(num_cells, first, again, recorded, lag_s, stats, stages, extra)
    return found.verdict(database)


@dataclasses.dataclass(frozen=True)
class Scoring:
    """One process that scored all models: its flow runs, and the memory of processes."""

    flow_runs: list[dict[str, object]]
    wall_s: float
    watch: Watch

    @property
    def seconds(self) -> float:
        """Return the seconds of all flow runs."""
        return sum(float(str(each["seconds"])) for each in self.flow_runs)

    @property
    def holes(self) -> list[str]:
        """Return the holes of all flow runs."""
        return [hole for each in self.flow_runs for hole in _strings(each["holes"])]


def _strings(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


@dataclasses.dataclass(frozen=True)
class Findings:
    """The results of one server: the ``first`` scoring, and scoring ``again`` when all was done.

    ``recorded``: task runs of cells that the server has as completed, ``lag_s`` seconds after the
    client's end. ``stats``: the stub's responses, and the most at once. ``stages``: recorded
    seconds of landing, publishing, and flow runs. ``extra``: task runs of the second scoring.
    """

    cells: int
    first: Scoring
    again: Scoring
    recorded: int
    lag_s: float
    stats: dict[str, int]
    stages: dict[str, float]
    extra: int

    @property
    def work_s(self) -> float:
        """Return the least seconds that the stub takes: in each flow run, rounds of 8 cells."""
        models = len(self.first.flow_runs)
        return models * math.ceil(self.cells / models / IN_FLIGHT) * SECONDS

    def share(self, flow_runs_s: float) -> float:
        """Return the time of orchestration as a share of the work."""
        landing_s, publishing_s, _ = self.stages.values()
        return (flow_runs_s - landing_s - publishing_s) / self.work_s - 1

    def verdict(self, database: str) -> Verdict:
        """Return a table, and the conditions that fail."""
        landing_s, publishing_s, flow_runs_s = self.stages.values()
        share, by_clock = self.share(flow_runs_s), self.share(self.first.seconds)
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
            "flow runs, by the client's clock": f"{flow_runs_s:.1f} s, {self.first.seconds:.1f} s",
            "of these landing, publishing": f"{landing_s:.1f} s, {publishing_s:.1f} s",
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
    """Seal partitions of one text, and list the stub's models in the catalogue."""
    settings = Settings(home=home)
    store = Store(settings.home)
    text = make_texts(1)[0]
    for month in month_range(_FIRST, _FIRST + (num_months - 1)):
        for number in range(NUM_SOURCES):
            partition = Partition(f"source-{number}", month)
            words = f"{partition}: {text[number * 100 :][:_TEXT_CHARS]}"
            row = {"native_id": str(partition), "text": words}
            row |= {"date_kind": "given", "licence": "CC0-1.0"}
            seal_partition(store, partition, Ready(tables_of([row], partition)))
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
        "PREFECT_LOGGING_LEVEL": "INFO",  # as workers have it: some lines a cell go to the server
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
    """Wait until the server has recorded all events; return their number and the seconds."""
    began = time.monotonic()
    while (count := _count(server, "score ")) < expected:
        if time.monotonic() - began > _RECORDING_S:
            break
        time.sleep(1)
    return count, time.monotonic() - began


def _count(server: PrefectServer, name: str) -> int:
    """Count the completed task runs whose name begins so."""
    return int(_ask(server, "count", name))


def _seconds_of(server: PrefectServer, name: str, runs: str = "task_runs") -> float:
    """Sum the seconds of the task runs, or flow runs, whose name begins so."""
    return float(sum(run["total_run_time"] for run in _ask(server, "filter", name, runs)))


def _ask(server: PrefectServer, what: str, name: str, runs: str = "task_runs") -> Any:
    wanted = {"name": {"like_": name}, "state": {"type": {"any_": ["COMPLETED"]}}}
    answer = requests.post(f"{server.url}/{runs}/{what}", json={runs: wanted}, timeout=60)
    answer.raise_for_status()
    return answer.json()


@contextlib.contextmanager
def _stub(names: Sequence[str]) -> Iterator[str]:
    """Run the stub; yield its address."""
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
    """Return the settings of a server in deployments/compose.yaml, without addresses."""
    compose = yaml.safe_load((_ROOT / "deployments" / "compose.yaml").read_text(encoding="utf-8"))
    environment = compose["services"]["prefect-server"]["environment"]
    return {k: v for k, v in environment.items() if k.startswith("PREFECT_SERVER_SERVICES_")}
