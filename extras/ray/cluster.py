"""Connection to a Ray cluster, choice of resources, cancellation."""

from __future__ import annotations

import os
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

from core.environment import prefect_server
from core.errors import OrchestrationError
from core.periods import parse_period
from core.settings import Settings
from instruments.losses import ScoringPlan, load_model, plan_scoring
from models.catalogue import ModelEntry, find_model
from models.choice import settings_for

REACH_S = 10.0
# Ray's default is 20 attempts in 10 minutes to reach a cluster; this is one of 30 s.
_ONE_ATTEMPT = ("RAY_gcs_server_port_wait_time_s", "1")
_STOP_S = 30.0  # after this time, Prefect kills the process of a cancelled flow run


class ClusterTaskRunner(RayTaskRunner[Any]):  # type: ignore[misc]  # prefect_ray has no types
    """A task runner for a Ray cluster; cancels its tasks if a signal ends the flow run."""

    def __init__(self, address: str | None = None, init_kwargs: dict[str, Any] | None = None):
        super().__init__(address, init_kwargs)
        self._submitted: list[Any] = []

    def submit(self, *args: Any, **kwargs: Any) -> Any:
        """Submit a task like ``RayTaskRunner``, and remember it for cancellation."""
        future = super().submit(*args, **kwargs)
        self._submitted.append(future.wrapped_future)
        return future

    def __exit__(self, kind: type[BaseException] | None, *rest: Any) -> None:
        if kind is not None and not issubclass(kind, Exception):
            _cancel(self._submitted)
        super().__exit__(kind, *rest)


def _cancel(submitted: list[Any]) -> None:
    """Cancel the tasks that still run, and wait for their ends."""
    running = ray.wait(submitted, num_returns=len(submitted), timeout=0)[1] if submitted else []
    for each in running:
        ray.cancel(each)
    if running:
        ray.wait(running, num_returns=len(running), timeout=_STOP_S)


@dataclass(frozen=True)
class Share:
    """The resources for one cell on the cluster, and the number of cells at a time."""

    options: dict[str, Any]  # options of Ray for the task of a cell
    slots: int  # maximum number of cells at a time


@contextmanager
def connected(settings: Settings) -> Iterator[dict[str, float]]:
    """Connect to Ray and yield the resources (``{"CPU": 2}``), or raise OrchestrationError."""
    address = settings.ray_address or "auto"
    if not prefect_server():
        raise OrchestrationError(
            f"TIDEMARK_RAY_ADDRESS is {address}, but PREFECT_API_URL is not set: nodes of a Ray "
            "cluster need a Prefect server that all of them reach; set it, or unset the former"
        )
    os.environ.setdefault(*_ONE_ATTEMPT)  # noqa: TID251 - Ray has no other setting
    handler = signal.getsignal(signal.SIGTERM)
    try:
        _knock(address)
        ray.init(address, namespace="tidemark", log_to_driver=False)
    except Exception as error:  # errors of Ray, gRPC and the OS share no base class
        raise OrchestrationError(
            f"no Ray cluster answers at TIDEMARK_RAY_ADDRESS={address} ({error}); expected one of "
            f"Ray {ray.__version__}: see that it runs (`ray status`), and from a machine outside "
            "the cluster use ray://head:10001"
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)  # Ray's handler would hide SIGTERM from Prefect
    try:
        yield ray.cluster_resources()
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Open and close a connection, because Ray needs half a minute to report a closed port."""
    if address == "auto":
        return
    place = urlsplit(address if "://" in address else f"ray://{address}")
    host = place.hostname or ""
    if "://" not in address and host in ("localhost", "127.0.0.1", "::1"):
        host = ray.util.get_node_ip_address()  # Ray replaces loopback addresses by this address
    socket.create_connection((host, place.port or 0), REACH_S).close()


def share_of(entry: ModelEntry, resources: dict[str, float]) -> Share:
    """Return the resources for a cell of a model: a GPU if the cluster has GPUs, else a CPU.

    Compressors and models behind a server always take a CPU. Other models never mix GPUs and CPUs,
    because their dtypes, and so the cells, would differ. Without CPU and GPU, raise an error.
    """
    gpus = int(resources.get("GPU", 0))
    if gpus and entry.backend.on_device:
        # max_calls=0 keeps the process, and its loaded weights, after a GPU task.
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
    """Plan like ``plan_scoring``, but on a node, and load the model, so that errors appear early.

    The returned settings have the device and dtype of this node, on which the keys of the cells
    depend. Scoring fails on nodes that do not have this device and dtype.
    """
    settings = settings.model_copy(update=_numerics(find_model(model, settings), settings))
    window = None if months is None else list(map(parse_period, months))
    plan = plan_scoring(model, [settings.protocol], sources, window, settings)
    load_model(plan, settings)
    return plan, settings


def _numerics(entry: ModelEntry, settings: Settings) -> dict[str, str]:
    """Return the device and dtype that this node uses for a model."""
    if not entry.backend.on_device:
        return {}
    from models.scoring.machine import name_of_dtype
    from models.weights.checkpoint import choose_device  # this imports torch

    device, dtype = choose_device(settings_for(entry, settings))
    return {"device": str(device), "dtype": name_of_dtype(dtype)}
