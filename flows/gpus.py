"""Pools of models in flow runs: hold a worker's GPUs; assign models; help slow models."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.exceptions import ObjectNotFound

from core.gpus import FOLDER, Fleet, hold_gpus, read_fleet, usable_gpus
from core.run_record import RunRecord, Stage
from core.settings import Settings
from core.storage.store import Store
from instruments.assignment import (
    Pool,
    Start,
    Work,
    choose_helped,
    estimate_work,
    may_start,
    plan_starts,
    pool_to_ask,
)
from instruments.runner import Plan
from instruments.running.stopping import rest
from tasks.prefect.server import is_deployed

MAX_RUNS = 32  # of a model; they end early if something is wrong
PATIENCE = 30  # polling intervals for which models of ``gpu`` wait for the first of ``gpu-all``
_FLOWS = {"answer": "forecast", "solve": "scylla"}  # by stage
_NAMES: dict[Pool, str] = {"gpu": "one-gpu", "gpu-all": "all-gpus", "api": "apis"}
_held = ExitStack()  # until the process ends, as the memory of a GPU is free only then


def take_gpus(plan: Plan[Any], settings: Settings) -> None:
    """Wait for the GPUs of this worker, and hold them until the process of this flow run ends.

    Do nothing if the plan has no work for a GPU, or this flow run belongs to no deployment.
    """
    is_on_gpu = plan.entry.backend.on_device and settings.device.startswith(("auto", "cuda"))
    if plan.pending and is_on_gpu and is_deployed():
        _hold_until_end(settings.scratch / FOLDER)


@cache
def _hold_until_end(folder: Path) -> None:
    _held.enter_context(hold_gpus(usable_gpus(), folder, rest))


class GpuPools:
    """The assignment of a run's models, by ``instruments.assignment``, from the state of a run."""

    def __init__(self, record: RunRecord, settings: Settings) -> None:
        request = record.request()
        given = {**request.options, "protocol": request.protocol or settings.protocol}
        known = {name: value for name, value in given.items() if name in Settings.model_fields}
        self._request, self._settings = request, settings.model_copy(update=known)
        self._works: list[Work] = []
        self._starts: list[Start] = []
        self._num_runs: Counter[str] = Counter()  # planned and further runs of each model
        self._num_waits = 0
        self._seen: tuple[int, frozenset[UUID]] | None = None  # of the last call of choose_helped

    def plan(self, stage: Stage, models: Sequence[str], running: set[str]) -> list[Start]:
        """Return the runs of missing models that may be started now or were started, in order.

        After ``PATIENCE`` calls in vain, no worker of ``gpu-all`` seems to run, and all may start.
        """
        if not self._works:
            fleet = read_fleet(Store(self._settings.home))
            self._works = self._estimate(stage, self._request.models, fleet)
            self._starts = plan_starts(self._works, fleet.num_gpus if stage == "score" else 0)
            self._num_runs.update(start.model for start in self._starts)
        allowed = set(may_start(self._works, models, running))
        if len(allowed) < len(models):
            self._num_waits += 1
            allowed = set(models) if self._num_waits > PATIENCE else allowed
        return [start for start in self._starts if start.model in allowed]

    def deployment_of(self, stage: Stage, model: str) -> str:
        """Return the name of the deployment that does a stage for a model."""
        pools = {work.model: work.pool for work in self._works}
        pool = pools.get(model, "gpu")
        if stage == "score":
            return "score/all-gpus" if pool == "gpu-all" else "score/score"
        return f"{_FLOWS[stage]}/{_NAMES[pool]}"

    def asked_together(self, model: str) -> list[str]:
        """Return the models of the flow run that asks a model: alone, or all behind servers."""
        together = [work.model for work in self._works if work.pool == "api"]
        return together if model in together else [model]

    def choose_helped(
        self, client: SyncPrefectClient, models: Sequence[str], active: Sequence[FlowRun]
    ) -> list[Start]:
        """Return further runs of models to start now; ``active`` are child runs without an end."""
        num_free = num_free_workers(client, "gpu")
        seen = num_free, frozenset(run.id for run in active)
        if num_free <= 0 or seen == self._seen:  # the answer would be the same
            return []
        self._seen = seen
        runs = Counter(str(run.parameters.get("model")) for run in active)
        fleet = read_fleet(Store(self._settings.home))
        works = [
            replace(work, num_runs=runs[work.model])
            for work in self._estimate("score", models, fleet)
        ]
        chosen = []
        for model in choose_helped(works, num_free):
            if self._num_runs[model] < MAX_RUNS:
                self._num_runs[model] += 1
                chosen.append(Start(model, self._num_runs[model]))
        return chosen

    def _estimate(self, stage: Stage, models: Sequence[str], fleet: Fleet) -> list[Work]:
        sources, months = self._request.sources, self._request.window()
        works = estimate_work(models, sources, months, fleet, self._settings)
        if stage == "score":
            return works
        return [
            replace(work, num_left=1, pool="api")
            if pool_to_ask(work.model, self._settings) == "api"
            else replace(work, num_left=1)
            for work in works
        ]


def num_free_workers(client: SyncPrefectClient, pool: str) -> int:
    """Return the number of workers of a pool that wait for a run, if each takes one at a time."""
    try:
        limit = client.read_work_pool(pool).concurrency_limit
    except ObjectNotFound:
        return 0
    workers = client.read_workers_for_work_pool(pool)
    num_online = sum(worker.status == "ONLINE" for worker in workers)
    due = {
        "state": {"type": {"any_": ["SCHEDULED", "PENDING", "RUNNING", "CANCELLING"]}},
        "expected_start_time": {"before_": dt.datetime.now(dt.UTC).isoformat()},
    }
    asked = {"flow_runs": due, "work_pools": {"name": {"any_": [pool]}}}
    num_busy = int(client.request("POST", "/flow_runs/count", json=asked).json())
    return min(num_online, num_online if limit is None else limit) - num_busy
