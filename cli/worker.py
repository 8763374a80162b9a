"""Command `tidemark worker`: one Prefect worker per GPU, and one that owns all GPUs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from cli.terminal.console import out, until_signal, visible
from cli.terminal.options import settings_for_tasks
from core.errors import UsageError

if TYPE_CHECKING:
    from core.gpus import Gpu

IN_QUEUE = 4  # maximum number of runs of the worker of all GPUs; one computes, the others wait
PAUSE_S = 10.0  # seconds before a worker that ended is started again
STOP_S = 60.0  # seconds from SIGTERM to SIGKILL
LOOK_S = 0.5  # seconds between two looks at the workers
_NO_GPU = (
    "tidemark worker needs a GPU of NVIDIA: see that `nvidia-smi` lists one; in a container, give "
    "it the GPUs (docs/containers.md). Without a GPU, `prefect worker start --pool gpu --limit 1` "
    "scores on the CPU"
)


@dataclass(frozen=True)
class WorkerProcess:
    """One worker of Prefect: its pool, its name, and the GPUs that it owns."""

    pool: str
    name: str
    gpus: tuple[Gpu, ...]

    def command(self) -> list[str]:
        """Return the command that starts the worker."""
        limit = str(IN_QUEUE if self.pool == "gpu-all" else 1)
        prefect = [sys.executable, "-m", "prefect", "worker", "start", "--with-healthcheck"]
        return [*prefect, "--pool", self.pool, "--name", self.name, "--limit", limit]

    def start(self, health_port: int) -> subprocess.Popen[bytes]:
        """Start the worker, with its own GPUs and its own port for health checks."""
        from core.environment import environment_with

        given = {
            "CUDA_VISIBLE_DEVICES": ",".join(gpu.uuid for gpu in self.gpus),
            "PREFECT_WORKER_WEBSERVER_PORT": str(health_port),
        }
        return subprocess.Popen(self.command(), env=environment_with(given), start_new_session=True)


def plan_workers(gpus: Sequence[Gpu], host: str) -> list[WorkerProcess]:
    """Return the workers for GPUs of a machine: one per GPU, and one that owns all of several."""
    workers = [WorkerProcess("gpu", f"{host} GPU {gpu.number}", (gpu,)) for gpu in gpus]
    if len(gpus) > 1:
        workers.append(WorkerProcess("gpu-all", f"{host} all GPUs", tuple(gpus)))
    return workers


def worker_command(
    context: typer.Context,
    gpus: Annotated[
        str,
        Option(
            help="`all`, a number of GPUs, or a list of numbers or ids: `0,2`; `2,` is GPU 2 alone."
        ),
    ] = "all",
    health_port: Annotated[
        int, Option(min=1, max=65000, help="Port of the first worker's /health; others follow it.")
    ] = 8090,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print the workers that would be started, and end.")
    ] = False,
) -> None:
    """Start one worker a GPU, and one that owns all GPUs.

    The pools are `gpu` and `gpu-all`. No two workers compute on a GPU at once. A worker that ends
    is started again. Ctrl-C or SIGTERM ends all of them. Models go to the pools by their size: see
    docs/operate.md.
    """
    import socket

    from core.environment import prefect_server
    from core.gpus import Host, choose_gpus, list_gpus
    from core.storage.store import Store

    try:
        found = list_gpus()
    except UsageError as error:
        raise UsageError(f"{error}; {_NO_GPU}") from error
    if not found:
        raise UsageError(f"the driver of NVIDIA lists no GPU; {_NO_GPU}")
    chosen = choose_gpus(gpus, found)
    workers = plan_workers(chosen, socket.gethostname())
    for each in workers:
        size = chosen[0].memory_bytes / 2**30 if len(each.gpus) == 1 else 0
        what = f"{each.gpus[0].name}, {size:.0f} GiB" if size else f"{len(each.gpus)} GPUs"
        out.print(visible(f"pool {each.pool:8} {each.name} ({what})"), soft_wrap=True)
    if dry_run:
        return
    address = prefect_server()
    if address is None:
        raise UsageError(
            "tidemark worker needs a Prefect server: set PREFECT_API_URL to its address, such as "
            "http://127.0.0.1:4200/api"
        )
    settings = settings_for_tasks(context, needs_server=True)
    from deployments.deploy import widen_pools

    host = Host(host=socket.gethostname(), gpus=tuple(chosen), dtype=settings.dtype)
    store = Store(settings.home)
    with host.announced(store):
        for change in widen_pools(address, store):
            out.print(visible(f"{change.verb} {change.what} ({change.detail})"), soft_wrap=True)
        supervise(workers, health_port)


def supervise(workers: Sequence[WorkerProcess], health_port: int) -> None:
    """Run workers until Ctrl-C or SIGTERM; start a worker that ends again after ``PAUSE_S``."""
    due = dict.fromkeys(range(len(workers)), 0.0)  # monotonic time of the next start, by number
    running: dict[int, subprocess.Popen[bytes]] = {}
    with until_signal(), contextlib.ExitStack() as stack:
        stack.callback(_stop, running)
        while True:
            for number, process in list(running.items()):
                if process.poll() is not None:
                    name = workers[number].name
                    code = process.returncode
                    out.print(visible(f"{name} has ended ({code}), and is started again"))
                    del running[number]
                    due[number] = time.monotonic() + PAUSE_S
            for number, worker in enumerate(workers):
                if number not in running and time.monotonic() >= due[number]:
                    running[number] = worker.start(health_port + number)
            time.sleep(LOOK_S)


def _stop(running: dict[int, subprocess.Popen[bytes]]) -> None:
    """Ask workers to end; kill those that do not."""
    for process in running.values():
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
    deadline = time.monotonic() + STOP_S
    for process in running.values():
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
