"""Months on a real server with PostgreSQL, disturbed by faults that seeds choose.

The process of the monthly run crawls and reports, and that of a worker's flow run scores. Each
month must end complete, or partial with the list of what is missing, without a hand. A run after a
partial one completes it. The warehouse then equals that of undisturbed direct commands.
"""

import contextlib
import datetime as dt
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import UUID

import psutil
import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.states import Cancelling

from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from crawlers.crawling.crawl import crawl_partition
from deployments.deploy import deploy
from instruments.losses import score_and_land
from simulator.server import Web, serve
from simulator.world import World
from tests.conftest import running
from tests.deployments.support.automations import NEVER_BEGAN, NO_HEARTBEAT, automation_of
from tests.flows.support.deployed import (
    MONTH_S,
    api,
    children_of,
    ended,
    restarted,
    start,
)
from tests.flows.support.faults import Deployment, small_disk, wrong_clock
from tests.loopback import free_port, wait_for
from tests.servers import PostgreSQL
from warehouse.read.query import query

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

KINDS = (
    "coordinator", "part", "worker", "server", "denied",
    "cancel", "database", "hang", "disk", "clock",
)  # fmt: skip
STAGES = ("crawl", "score", "report")
# Three faults in one month, since a month is 30 s of processor time; then one fault in a month.
SEEDS = ((0, 1, 2), (3, 4, 5), *((seed,) for seed in range(6, 30)))
FIRST, SOURCE, MODEL = Month("2022-01"), "hackernews", "control:gzip"
SILENCE = dt.timedelta(seconds=70)  # more than two of Prefect's heartbeats


@dataclass(frozen=True)
class Disturbance:
    """What happens in which stage, and after how much processor time of the stage's process."""

    kind: str
    stage: str
    computed_s: float
    lasts_s: float
    variant: bool  # of two victims, which one

    @classmethod
    def of(cls, seed: int) -> "Disturbance":
        """Choose by a seed; the kinds take turns."""
        draw = random.Random(f"fault 8234 {seed}")
        return cls(
            KINDS[seed % len(KINDS)],
            stage=draw.choice(STAGES),
            computed_s=draw.uniform(0, 7),
            lasts_s=draw.uniform(1, 20),
            variant=draw.random() < 0.5,
        )


def disturbances(seeds: tuple[int, ...]) -> list[Disturbance]:
    return sorted(map(Disturbance.of, seeds), key=lambda each: STAGES.index(each.stage))


def name_of(seeds: tuple[int, ...]) -> str:
    """Return the name of a test, such as ``7-hang-score``."""
    numbers = "+".join(map(str, seeds))
    return "-".join([numbers, *(f"{each.kind}-{each.stage}" for each in disturbances(seeds))])


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(0, FIRST, FIRST + 30, stories_per_month=3)) as web:
        yield web


@pytest.fixture(scope="module")
def deployment(
    web: Web, tmp_path_factory: pytest.TempPathFactory, prefect_template: Path
) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("faults")
    with TemporaryDirectory(prefix="tidemark-") as name, small_disk(folder / "home") as is_small:
        Path(name).chmod(0o755)  # PostgreSQL runs as another user
        database = PostgreSQL(Path(name) / "postgresql", free_port())
        try:
            with running(folder / "server", prefect_template, database.url) as server:
                with api(server):
                    deploy(server.url)
                made = Deployment(server, database, web, folder / "home", is_small)
                with made.working():
                    yield made
        finally:
            database.kill()


@pytest.fixture(scope="module")
def client(deployment: Deployment) -> Iterator[SyncPrefectClient]:
    with api(deployment.server) as client:
        for name, silence in ((NO_HEARTBEAT, SILENCE), (NEVER_BEGAN, 2 * SILENCE)):
            automation = automation_of(name, silence)
            [found] = client.read_automations_by_name(name)
            client.update_automation(found.id, automation)
        yield client


@pytest.fixture(scope="module")
def undisturbed(web: Web, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Month], Settings]:
    """Crawl, score and publish one more month by direct commands, in a data root of their own."""
    home = tmp_path_factory.mktemp("undisturbed")
    settings = Settings(home=str(home), request_interval_s=0, sites=web.urls)

    def add(month: Month) -> Settings:
        crawl_partition(SOURCE, month, Store(settings.home), settings)
        assert score_and_land(settings, [MODEL], None, None, ["default"]) == (1, [])
        return settings

    return add


class Disturbed:
    """A month on a server, during which faults happen."""

    def __init__(self, month: Month, deployment: Deployment, client: SyncPrefectClient) -> None:
        self.month, self.deployment, self.client = month, deployment, client
        self.known: set[UUID] = set()  # flow runs of this month, also before it was begun again
        self.begin()

    def begin(self) -> None:
        given = {"month": str(self.month), "sources": [SOURCE], "models": [MODEL]}
        self.run = start("monthly/monthly", **given)
        self.runs = [self.run]  # one after each crash
        self.known.add(self.run.id)
        self.part = self.run  # the flow run of the stage of the last fault
        self.began_s: dict[tuple[UUID, str], float] = {}  # processor time before a stage

    def victim(self, what: Disturbance) -> psutil.Process | None:
        """Wait for the moment; return the process of the stage, or None if it has ended."""
        [process] = wait_for(lambda: self._find_victim(what), 0.3, MONTH_S)
        return process

    def _find_victim(self, what: Disturbance) -> list[psutil.Process | None]:
        run = self.latest()
        has_ended = run.state is not None and run.state.is_final() and not run.state.is_crashed()
        if has_ended:
            return [None]
        self.part = run
        if what.stage == "score":
            work = [part for each in self.runs for part in children_of(self.client, each)]
            if not work:
                return []
            self.part = max(work, key=lambda run: run.created)
            if self.part.state and self.part.state.is_final():
                return [None]
        elif run.state is None or not run.state.is_running():
            return []  # a process that is killed before it runs is not replaced
        elif what.stage == "report" and not self._is_scored():
            return []
        process = self.deployment.process_of(self.part.id)
        if process is None:
            return []
        with contextlib.suppress(psutil.Error):
            computed_s = sum(process.cpu_times()[:4])
            if what.stage == "score":
                return [process] if computed_s >= what.computed_s else []
            # The rest of the time, its start takes; a report takes as long as a crawl.
            began_s = self.began_s.setdefault((run.id, what.stage), computed_s)
            if computed_s >= began_s + what.computed_s / 4:
                return [process]
        return []

    def _is_scored(self) -> bool:
        store = Store(str(self.deployment.home))
        return bool(store.list(f"losses/*/source={SOURCE}/month={self.month}/*.parquet"))

    def latest(self) -> FlowRun:
        """Return the flow run of the month that runs now, or ran last."""
        again = restarted(self.client, self.run, self.known)
        if again:
            self.runs.append(again)
            self.known.add(again.id)
        return self.client.read_flow_run(self.runs[-1].id)

    def _after(self, crashed: FlowRun) -> FlowRun | None:
        latest = self.latest()
        return latest if latest.id != crashed.id else None

    def coordinator(self) -> psutil.Process | None:
        return self.deployment.process_of(self.latest().id)

    def is_complete(self) -> bool:
        """Wait for the end; return True if nothing is missing."""
        run = ended(self.client, self.latest())
        while run.state and run.state.is_crashed():
            run = ended(self.client, wait_for(partial(self._after, run), 0.1, MONTH_S))
            assert run.name == f"monthly {self.month}"
        assert run.state and run.state.name in ("Completed", "Completed (partial)", "Cancelled")
        return run.state.name == "Completed"


@pytest.mark.parametrize("seeds", SEEDS, ids=name_of)
def test_a_disturbed_month(
    seeds: tuple[int, ...],
    deployment: Deployment,
    client: SyncPrefectClient,
    undisturbed: Callable[[Month], Settings],
    dump: Callable[..., dict[str, Any]],
) -> None:
    month = Disturbed(FIRST + seeds[0], deployment, client)
    with contextlib.ExitStack() as faults:
        for what in disturbances(seeds):
            faults.enter_context(FAULTS[what.kind](month, what))
        is_complete = month.is_complete()
    if not is_complete:
        month.begin()
        assert month.is_complete()
    assert [worker.process.poll() for worker in deployment.workers] == [None] * 4
    expected = undisturbed(month.month)
    assert dump(deployment.home) == dump(Path(expected.home))
    figures = "from monthly_loss order by all"
    assert query(Settings(home=str(deployment.home)), figures) == query(expected, figures)


@contextlib.contextmanager
def kill_process(month: Disturbed, what: Disturbance) -> Iterator[None]:
    process = month.victim(what)
    if what.kind == "coordinator":
        process = month.coordinator()
    if process:
        process.kill()
    yield


@contextlib.contextmanager
def kill_worker(month: Disturbed, what: Disturbance) -> Iterator[None]:
    """Kill the daemon of the process, alone or with all that runs on its machine."""
    process = month.victim(what)
    worker = process and month.deployment.worker_of(process)
    if worker:
        month.deployment.replace(worker, with_runs=what.variant)
    yield


@contextlib.contextmanager
def take_down(month: Disturbed, what: Disturbance) -> Iterator[None]:
    """Kill the server or its database, and start it again."""
    server, database = month.deployment.server, month.deployment.database
    month.victim(what)
    if what.kind == "server":
        server.stop(signal.SIGKILL)
    else:
        database.kill()
    time.sleep(what.lasts_s)
    (server if what.kind == "server" else database).start()
    yield


@contextlib.contextmanager
def hang(month: Disturbed, what: Disturbance) -> Iterator[None]:
    """Suspend the process of the stage, or of the monthly run, until the run has ended."""
    process = month.victim(what)
    if what.variant:
        process = month.coordinator()
    if process is None:
        yield
        return
    process.suspend()
    yield
    with contextlib.suppress(psutil.NoSuchProcess):
        process.resume()
        process.wait(MONTH_S)


@contextlib.contextmanager
def cancel(month: Disturbed, what: Disturbance) -> Iterator[None]:
    """Cancel the work, which is started again, or the run."""
    month.victim(what)
    run = month.part if what.variant else month.latest()
    month.client.set_flow_run_state(run.id, Cancelling())
    yield


@contextlib.contextmanager
def refuse_writing(month: Disturbed, what: Disturbance) -> Iterator[None]:
    """Fill the disk, or deny it, until the process has ended, and some time after it."""
    deployment = month.deployment
    if what.kind == "disk" and not deployment.is_small:
        pytest.skip("this user may not mount a small disk")
    process = month.victim(what)
    with deployment.filled() if what.kind == "disk" else deployment.denied():
        psutil.wait_procs([process] if process else [], MONTH_S)
        time.sleep(what.lasts_s)
    yield


@contextlib.contextmanager
def shift_clock(month: Disturbed, what: Disturbance) -> Iterator[None]:
    """Let the clocks of one machine, which has a worker of each pool, be an hour off."""
    clock = wrong_clock(month.deployment.server.folder, 3600 if what.variant else -3600)
    for worker in month.deployment.workers[:2]:
        month.deployment.replace(worker, **clock)
    try:
        yield
    finally:
        for worker in month.deployment.workers[2:]:
            month.deployment.replace(worker)


FAULTS: dict[str, Callable[..., contextlib.AbstractContextManager[None]]] = {
    "coordinator": kill_process, "part": kill_process, "worker": kill_worker,
    "server": take_down, "database": take_down, "denied": refuse_writing, "disk": refuse_writing,
    "cancel": cancel, "hang": hang, "clock": shift_clock,
}  # fmt: skip
