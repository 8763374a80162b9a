"""Score on a Ray cluster: connect, choose resources, cancel. Needs the extra ``ray``."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import ray
from prefect import task
from prefect.cache_policies import NO_CACHE
from prefect_ray import RayTaskRunner

from core.errors import OrchestrationError
from core.month import Month
from core.settings import Settings, prefect_server, set_ray_patience
from instruments.losses import ScoringPlan, load_model, plan_scoring
from models.catalogue import ModelEntry, find_model

REACH_S = 10.0
_STOP_S = 30.0  # Prefect kills a cancelled flow run's process after the same time


class ClusterTaskRunner(RayTaskRunner[Any]):  # type: ignore[misc]  # prefect_ray has no types
    """Runs tasks on a Ray cluster; cancels the submitted ones if a signal ends the flow run."""

    def __init__(self, address: str | None = None, init_kwargs: dict[str, Any] | None = None):
        super().__init__(address, init_kwargs)
        self._submitted: list[Any] = []

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        """Submit as ``RayTaskRunner`` does, and remember the task."""
        future = super().submit(*args, **kwargs)
        self._submitted.append(future.wrapped_future)
        return future

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is not None and not issubclass(kind, Exception):
            _cancel(self._submitted)
        super().__exit__(kind, *rest)


def _cancel(submitted: list[Any]) -> None:
    """Interrupt tasks, as Ctrl-C would; give them time to remove half-written files."""
    running = ray.wait(submitted, num_returns=len(submitted), timeout=0)[1] if submitted else []
    for each in running:
        ray.cancel(each)
    if running:
        ray.wait(running, num_returns=len(running), timeout=_STOP_S)


@dataclass(frozen=True)
class Share:
    """Resources that one cell takes, and the number of cells at a time."""

    options: dict[str, Any]  # Ray's options for each cell
    slots: int  # cells that the cluster computes at a time


@contextmanager
def connected(settings: Settings) -> Iterator[dict[str, float]]:
    """Connect; yield resources, as ``{"CPU": 2}``. OrchestrationError: no server or no cluster."""
    address = settings.ray_address or "auto"
    if not prefect_server():
        raise OrchestrationError(
            f"TIDEMARK_RAY_ADDRESS is {address}, but PREFECT_API_URL is not set: nodes of a Ray "
            "cluster need a Prefect server that all of them reach; set it, or unset the former"
        )
    set_ray_patience()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _knock(address)
        ray.init(address, namespace="tidemark", log_to_driver=False)
    except Exception as error:  # Ray's, gRPC's and the system's are no family
        raise OrchestrationError(
            f"no Ray cluster answers at TIDEMARK_RAY_ADDRESS={address} ({error}); expected one of "
            f"Ray {ray.__version__}: see that it runs (`ray status`), and from a machine outside "
            "the cluster use ray://head:10001"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray's would hide SIGTERM from Prefect
    try:
        yield ray.cluster_resources()
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Connect to the address once; Ray itself takes half a minute to report a closed port."""
    if address == "auto":
        return
    place = urlsplit(address if "://" in address else f"ray://{address}")
    host = place.hostname or ""
    if "://" not in address and host in ("localhost", "127.0.0.1", "::1"):
        host = ray.util.get_node_ip_address()  # as Ray does
    socket.create_connection((host, place.port or 0), REACH_S).close()


def share_of(entry: ModelEntry, resources: dict[str, float]) -> Share:
    """Return the resources of a model's cell: a GPU if the cluster has any, else a CPU.

    Compressors and models behind a server always take a CPU. Other models use no CPU beside GPUs:
    on a CPU the dtype would differ, and so the cell. Raises OrchestrationError without GPU and CPU.
    """
    gpus = int(resources.get("GPU", 0))
    if gpus and entry.backend.on_device:
        # By default Ray ends a process, and drops its weights, after one GPU task: max_calls.
        return Share({"num_gpus": 1, "max_calls": 0}, gpus)
    cpus = int(resources.get("CPU", 0))
    if not cpus:
        raise OrchestrationError(
            f"the Ray cluster has no CPU that {entry.name} could be scored on: each cell takes one "
            "(`ray start --num-cpus`)"
        )
    return Share({"num_cpus": 1}, cpus)


@task(task_run_name="plan {model}", cache_policy=NO_CACHE, persist_result=False)
def plan_on_node(
    model: str, sources: list[str] | None, months: list[str] | None, settings: Settings
) -> tuple[ScoringPlan, Settings]:
    """Plan as ``plan_scoring``, on a node, and load the model there: a broken model fails once.

    The returned settings have this node's device and dtype, which are part of its cells' names.
    A node with another device or dtype fails, and writes nothing under these names.
    """
    settings = settings.model_copy(update=_numerics(find_model(model, settings), settings))
    window = None if months is None else list(map(Month, months))
    plan = plan_scoring(model, [settings.protocol], sources, window, settings)
    load_model(plan, settings)
    return plan, settings


def _numerics(entry: ModelEntry, settings: Settings) -> dict[str, str]:
    if not entry.backend.on_device:
        return {}
    from models.scoring.machine import name_of_dtype
    from models.weights.checkpoint import choose_device  # torch, which others do not need

    device, dtype = choose_device(settings)
    return {"device": str(device), "dtype": name_of_dtype(dtype)}
