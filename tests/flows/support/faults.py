"""A deployment with two workers a pool, whose parts can be killed, hung, filled or denied.

Workers of a user who may write everywhere give this right up, so that a folder can be denied.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psutil

from simulator.server import Web
from tests.servers import PREFECT, ROOT, PostgreSQL, PrefectServer, end_group

POOLS = ("crawl", "gpu")
_RUN = "PREFECT__FLOW_RUN_ID"
_WITHOUT = "-dac_override,-dac_read_search"
_AS_OTHERS = ["setpriv", "--bounding-set", _WITHOUT, "--inh-caps", _WITHOUT, "--"]
_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) { const char *s = getenv("CLOCK_SHIFT_S"); return s ? atol(s) : 0; }
int clock_gettime(clockid_t id, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, at);
    if (!code && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) at->tv_sec += shift();
    return code;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""


@dataclass
class Worker:
    """The daemon of a work pool."""

    pool: str
    process: subprocess.Popen[bytes]

    def runs(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.process.pid).children(recursive=True)
        return []


class Deployment:
    """A server on PostgreSQL, the simulated sites and workers, all of which may be killed."""

    def __init__(
        self, server: PrefectServer, database: PostgreSQL, web: Web, home: Path, is_small: bool
    ) -> None:
        self.server, self.database, self.web, self.home = server, database, web, home
        self.is_small = is_small  # True if the data root is a small disk of its own
        self.workers: list[Worker] = []

    @contextlib.contextmanager
    def working(self) -> Iterator["Deployment"]:
        try:
            for pool in POOLS * 2:
                self.start_worker(pool)
            yield self
        finally:
            for worker in self.workers:
                kill(worker, with_runs=True)
            for process in self._processes():
                process.kill()

    def start_worker(self, pool: str, **environment: str) -> Worker:
        given = {
            **self.server.environment,
            "TIDEMARK_HOME": str(self.home),
            "TIDEMARK_REQUEST_INTERVAL_S": "0",
            "TIDEMARK_WATCH_INTERVAL_S": "1",
            "PREFECT_WORKER_QUERY_SECONDS": "2",
            **{f"TIDEMARK_SITES__{key.upper()}": url for key, url in self.web.urls.items()},
        }
        command = [PREFECT, "worker", "start", "--pool", pool, "--limit", "2"]
        with (self.server.folder / f"worker-{pool}-{len(self.workers)}.log").open("ab") as log:
            process = subprocess.Popen(
                [*(_AS_OTHERS if os.getuid() == 0 else []), *command],
                env={**given, **environment}, cwd=ROOT, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        worker = Worker(pool, process)
        self.workers.append(worker)
        return worker

    def replace(self, worker: Worker, with_runs: bool = True, **environment: str) -> None:
        """Kill a worker, with the flow runs on it or alone, and start another, as systemd does."""
        kill(worker, with_runs)
        self.workers.remove(worker)
        self.start_worker(worker.pool, **environment)

    def process_of(self, run: UUID) -> psutil.Process | None:
        """Return the process of a flow run, be its worker alive or not; None if it has none."""
        for processes in (self._of_workers, self._processes):
            if found := [each for each in processes() if _run_of(each) == str(run)]:
                return min(found, key=lambda each: each.pid)
        return None

    def worker_of(self, process: psutil.Process) -> Worker | None:
        """Return the worker of a flow run's process; None if it has been killed."""
        return next((each for each in self.workers if process in each.runs()), None)

    def _of_workers(self) -> list[psutil.Process]:
        return [run for worker in self.workers for run in worker.runs()]

    def _processes(self) -> list[psutil.Process]:
        """Return all processes of flow runs of this server."""
        url = self.server.url
        return [
            each
            for each in psutil.process_iter(["environ"])
            if (given := each.info["environ"]) and given.get(_RUN) and url in given.values()
        ]

    @contextlib.contextmanager
    def denied(self) -> Iterator[None]:
        """Let nobody create a file in the data root within the ``with`` block."""
        folders = [self.home, *(path for path in self.home.rglob("*") if path.is_dir())]
        for folder in folders:
            folder.chmod(0o555)
        try:
            yield
        finally:
            for folder in folders:
                folder.chmod(0o755)

    @contextlib.contextmanager
    def filled(self) -> Iterator[None]:
        """Leave no space on the disk of the data root within the ``with`` block."""
        ballast = self.home / ".ballast"
        with ballast.open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(bytes(2**16))
        try:
            yield
        finally:
            ballast.unlink()


def _run_of(process: psutil.Process) -> str | None:
    with suppress(psutil.Error):
        return process.environ().get(_RUN)
    return None


def kill(worker: Worker, with_runs: bool) -> None:
    """Kill a worker, alone or with the flow runs on it, which have groups of their own."""
    runs = worker.runs() if with_runs else []
    end_group(worker.process, signal.SIGKILL)
    for run in runs:
        with suppress(psutil.NoSuchProcess):
            run.kill()


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[bool]:
    """Mount a disk of 300 MB at ``folder``; yield False if this user may not."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=300m,mode=755", "tidemark-test", folder]
    with ExitStack() as stack:
        is_there = subprocess.run(command, capture_output=True, check=False).returncode == 0
        if is_there:
            stack.callback(subprocess.run, ["umount", "--lazy", folder], check=True)
        yield is_there


def wrong_clock(folder: Path, shift_s: int) -> dict[str, str]:
    """Return the environment of a process whose clock is wrong; empty without a C compiler."""
    library = folder / "clock.so"
    if not library.exists():
        source = folder / "clock.c"
        source.write_text(_CLOCK)
        command = ["cc", "-shared", "-fPIC", "-o", library, source, "-ldl"]
        try:
            subprocess.run(command, check=True)
        except OSError:
            return {}
    return {"LD_PRELOAD": str(library), "CLOCK_SHIFT_S": str(shift_s)}
