"""Benchmark of a deployed month with nothing new to do.

A month of 18 sources is sealed and scored with 100 models beforehand, by direct commands. On a
Prefect server with PostgreSQL, one worker per pool runs ``monthly`` twice: the first run finds that
all is scored, lands and publishes it; the second finds nothing to do. The processor time of a flow
run is that of its process and the processes that have ended below it.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from prefect.client.orchestration import get_client
from prefect.deployments import run_deployment
from prefect.settings import PREFECT_API_URL, temporary_settings

from benchmarks.measure import Verdict, say
from benchmarks.scoring.shapes import SHAPES, save_model
from core.corpus.partition import Partition
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.imports.texts import ImportOptions, import_texts
from deployments.deploy import deploy
from instruments.driver import work
from instruments.losses import scoring_request
from instruments.planning import plan_crawl
from models.catalogue import ModelEntry, add_model
from tests.loopback import free_port
from tests.servers import PostgreSQL, PrefectServer

MONTH = Month("2024-02")
MODELS = tuple(f"copy-{number:03}" for number in range(100))  # of one tiny model
MAX_SOURCES = 18
MAX_IDLE_S = 20.0  # processor time of an idle month
_SAMPLE_S = 0.1
_RUN = "PREFECT__FLOW_RUN_ID"


def run(rounds: int, texts: int) -> Sequence[Verdict]:
    """Measure one run with work and one without; ignore ``rounds``."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="tidemark-bench-")))
        folder.chmod(0o755)  # PostgreSQL runs as another user
        sources = _seal(folder / "home", texts)
        _score(folder / "home", sources)
        server, workers = _deployed(stack, folder)
        with temporary_settings({PREFECT_API_URL: server.url}):
            first, idle = (_month(server, workers, sources) for _ in range(2))
    return [_verdict(len(sources), first, idle)]


def _seal(home: Path, texts: int) -> list[str]:
    """Seal a month of ``texts`` texts of the first sources that have it; return the sources."""
    settings = Settings(home=str(home))
    partitions = plan_crawl(None, [MONTH], settings).partitions
    sources = [source for source, _ in partitions[:MAX_SOURCES]]
    file = home.parent / "texts.json"
    for source in sources:
        file.write_text(json.dumps([f"Text {n} of {source}. " * 20 for n in range(texts)]))
        import_texts(file, Partition(source, MONTH), Store(settings.home), ImportOptions())
    return sources


def _score(home: Path, sources: list[str]) -> None:
    """Score the sealed month with each model; nothing lands."""
    settings = Settings(home=str(home), device="cpu")
    folder = home.parent / "model"
    save_model(folder, SHAPES["llama-toy"])
    for model in MODELS:
        add_model(ModelEntry(model, location=str(folder)), settings)
    request = scoring_request(MODELS, sources, [MONTH], [settings.protocol], settings)
    work(request, settings)


def _deployed(
    stack: contextlib.ExitStack, folder: Path
) -> tuple[PrefectServer, list[psutil.Process]]:
    """Start a database, a server and two workers; return the server and the workers."""
    database = PostgreSQL(folder / "postgresql", free_port())
    stack.callback(database.kill)
    address = {"PREFECT_API_DATABASE_CONNECTION_URL": database.url}
    server = PrefectServer(folder / "server", folder / "template", **address)
    stack.callback(server.stop)
    server.start()
    with temporary_settings({PREFECT_API_URL: server.url}):
        deploy(server.url)
    limits = {"crawl": "5", "gpu": "1"}
    workers = [
        stack.enter_context(
            server.worker(pool, "--limit", limit, TIDEMARK_HOME=str(folder / "home"))
        )
        for pool, limit in limits.items()
    ]
    return server, [psutil.Process(worker.pid) for worker in workers]


class _Measured:
    """The seconds of a monthly run, by the clock and by the processor."""

    def __init__(self) -> None:
        self.wall_s = self.server_s = self.workers_s = 0.0
        self.parts: dict[str, float] = {}  # processor time of each flow run, by name

    @property
    def total_s(self) -> float:
        return sum(self.parts.values()) + self.server_s + self.workers_s


def _month(server: PrefectServer, workers: list[psutil.Process], sources: list[str]) -> _Measured:
    """Run the month on the server; measure the processor time of all processes."""
    found = _Measured()
    used = dict[str, float]()  # by the id of a flow run
    own = [psutil.Process(server.pid), *workers]
    ending = {each for worker in workers for each, _ in _processes(worker)}  # of the run before
    before = [sum(each.cpu_times()[:2]) for each in own]
    began = time.monotonic()
    given = {"month": str(MONTH), "sources": sources, "models": list(MODELS)}
    run: Any = run_deployment("monthly/monthly", parameters=given, timeout=0)
    runs = {str(run.id): run}
    with get_client(sync_client=True) as client:
        while not runs[str(run.id)].state.is_final():
            for worker in workers:
                used |= {each: s for each, s in _processes(worker) if each not in ending}
            runs = {str(each.id): each for each in client.read_flow_runs()}
            time.sleep(_SAMPLE_S)
    found.wall_s = time.monotonic() - began
    found.parts = {runs[each].name: seconds for each, seconds in used.items()}
    after = [sum(each.cpu_times()[:2]) for each in own]
    found.server_s, *of_workers = (b - a for a, b in zip(before, after, strict=True))
    found.workers_s = sum(of_workers)
    say(f"{found.wall_s:.0f} s, {found.total_s:.0f} s of processor time")
    return found


def _processes(worker: psutil.Process) -> Iterator[tuple[str, float]]:
    for process in worker.children():
        with contextlib.suppress(psutil.Error):
            if run := process.environ().get(_RUN):  # a fork has it from its exec on
                yield run, sum(process.cpu_times()[:4])


def _verdict(num_sources: int, first: _Measured, idle: _Measured) -> Verdict:
    """Return the measured times, and if the idle month is within its limit."""
    rows = {"sources, models": f"{num_sources}, {len(MODELS)}"}
    for name, each in (("lands", first), ("idle", idle)):
        rows[f"{name}: processor time"] = (
            f"{each.total_s:.1f} s: flow runs {sum(each.parts.values()):.1f} s, server "
            f"{each.server_s:.1f} s, workers {each.workers_s:.1f} s"
        )
        rows[f"{name}: by the clock"] = f"{each.wall_s:.0f} s"
    conditions = {
        f"idle month {idle.total_s:.0f} s of processor time": idle.total_s <= MAX_IDLE_S,
        f"{len(idle.parts)} flow run": len(idle.parts) == 1,
    }
    return Verdict("operations: a month on a server", rows, conditions)
