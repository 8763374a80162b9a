"""The flow runs of workers: a run starts them while work is pending, and waits for them.

Workers divide the cells by claims, so nothing is assigned to them. The states of these flow runs
are read from Prefect, and the pending cells from the data root. See docs/adr/0044.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound, PrefectHTTPStatusError

from core.errors import OrchestrationError, StorageError
from core.settings import Settings
from instruments.pools import POOLS, Pool
from instruments.running.stopping import rest
from tasks.prefect.cancelling import cancels_subflows
from tasks.prefect.server import in_time, run_log

ATTEMPTS = 3  # maximum number of rounds that begin with the same pending work
AWAY_S = 24 * 3600.0  # maximum outage of the server or the data root, in seconds
PATIENCE = 30  # maximum number of looks in which ``gpu`` waits for a flow run of ``gpu-all``
_PAGE = 200  # maximum number of flow runs per response of the server
_REFUSALS = (400, 409, 422)  # statuses: a repeated request would be refused again


@dataclass
class Pending:
    """The pending work of one pool: names of cells, or of models that are asked, by model."""

    keys: dict[str, frozenset[str]] = field(default_factory=dict)
    num_claimed: int = 0  # number of these cells that processes compute now

    @property
    def all(self) -> frozenset[str]:
        """The pending work of all models."""
        return frozenset(f"{model}/{key}" for model, keys in self.keys.items() for key in keys)


ListPending = Callable[[Collection[str]], Mapping[Pool, Pending]]


class Rounds:
    """The flow runs ``work/<pool>`` of one run.

    ``list_pending`` is called with the models whose flow runs have completed so far. Each flow run
    works on all models of its pool.
    """

    def __init__(
        self, list_pending: ListPending, parameters: Mapping[str, Any], settings: Settings
    ) -> None:
        self.problems: list[str] = []
        self._list_pending = list_pending
        self._parameters = parameters
        self._interval_s = settings.watch_interval_s
        self._active: dict[UUID, FlowRun] = {}
        self._completed: set[str] = set()  # models
        self._last: dict[Pool, tuple[frozenset[str], int]] = {}  # last pending work, and attempts
        self._given_up: set[Pool] = set()  # pools without a deployment
        self._num_waits = 0

    @cancels_subflows()
    def drain(self, is_over: Callable[[], bool]) -> None:
        """Start flow runs while work is pending, until none is and ``is_over`` returns True.

        If this run is cancelled meanwhile, so are the flow runs.

        Raises:
            OrchestrationError: the server or data root was unavailable for ``AWAY_S`` seconds.
        """
        answered_at = time.monotonic()
        while True:
            is_last = is_over()  # before the look, so that the look sees what was sealed last
            try:
                is_idle = self._look()
                answered_at = time.monotonic()
                if is_last and is_idle:
                    return
            except (httpx.HTTPError, StorageError, TimeoutError) as error:
                away_s = time.monotonic() - answered_at
                if away_s > AWAY_S:
                    raise OrchestrationError(
                        f"the Prefect server or the data root has not answered for {away_s:.0f} s "
                        f"({type(error).__name__}: {error}): see that both can be reached, then "
                        "start the run again, which finds what this one has done"
                    ) from error
                run_log().warning("waiting, for %.0f s by now: %s", away_s, error)
            rest(self._interval_s)

    def _look(self) -> bool:
        """Read the states of the flow runs, start needed ones; return True if none is active."""
        with get_client(sync_client=True) as client:
            self._read_states(client)
            pending = self._list_pending(self._completed)
            for pool in POOLS:
                if pool in pending and pool not in self._given_up and not self._waits(pool):
                    self._start(client, pool, pending[pool])
        return not self._active

    def _read_states(self, client: SyncPrefectClient) -> None:
        """Ask for the states of the active flow runs; log and drop those that have ended."""
        ids = list(self._active)
        found: list[FlowRun] = []
        for start in range(0, len(ids), _PAGE):
            wanted = FlowRunFilter.model_validate({"id": {"any_": ids[start : start + _PAGE]}})
            found += in_time(partial(client.read_flow_runs, flow_run_filter=wanted, limit=_PAGE))
        self._active = {}
        for run in found:
            if run.state is None or not run.state.is_final():
                self._active[run.id] = run
                continue
            run_log().info("%s: %s. %s", run.name, run.state.name, run.state.message or "")
            if run.state.is_completed():
                self._completed.update(run.parameters["models"])

    def _active_of(self, pool: Pool) -> list[FlowRun]:
        return [run for run in self._active.values() if run.parameters["pool"] == pool]

    def _waits(self, pool: Pool) -> bool:
        """Return True while single GPUs must stay free for a model that needs all of a machine.

        Else flow runs of single GPUs would begin first, and the model would wait for all of them.
        """
        for_all_gpus = self._active_of("gpu-all")
        if pool != "gpu" or not for_all_gpus:
            return False
        if any(run.state is not None and run.state.is_running() for run in for_all_gpus):
            return False
        self._num_waits += 1
        return self._num_waits <= PATIENCE  # later, no worker of ``gpu-all`` seems to run

    def _start(self, client: SyncPrefectClient, pool: Pool, pending: Pending) -> None:
        """Start the flow runs of a pool that its pending work and its free workers need."""
        num_active = len(self._active_of(pool))
        if not pending.all or (num_active and pool == "api"):
            return
        num_free = 0 if pool == "api" else in_time(partial(count_free_workers, client, pool))
        if num_active:  # start further flow runs on workers that have become free
            num_taken = max(num_active, pending.num_claimed)  # each active run takes a cell
            groups = [list(pending.keys)] * min(num_free, max(0, len(pending.all) - num_taken))
        else:
            groups = self._divide(pool, pending, num_free)
        for group in groups:
            if pool not in self._given_up:
                self._start_one(client, pool, group)

    def _count_attempt(self, pool: Pool, keys: frozenset[str]) -> int:
        """Return the number of rounds in a row, with this one, that begin with the same work."""
        last, number = self._last.get(pool, (frozenset[str](), 0))
        number = number + 1 if keys == last else 1
        self._last[pool] = (keys, number)
        if number == ATTEMPTS + 1:
            self.problems.append(f"work on {pool}: {ATTEMPTS} rounds of flow runs did not help")
        return number

    def _divide(self, pool: Pool, pending: Pending, num_free: int) -> list[list[str]]:
        """Return the models of each flow run of the next round; none after ``ATTEMPTS`` rounds."""
        attempt = self._count_attempt(pool, pending.all)
        if attempt > ATTEMPTS:
            return []
        if attempt == ATTEMPTS:  # one of the models may kill its process
            return [[model] for model, keys in pending.keys.items() if keys]
        # Models without pending work may have some once more months are sealed.
        return [list(pending.keys)] * max(1, min(num_free, len(pending.all)))

    def _start_one(self, client: SyncPrefectClient, pool: Pool, models: list[str]) -> None:
        """Start one flow run; give the pool up if the server has or accepts no such run."""
        given = {**self._parameters, "pool": pool, "models": models}
        start = partial(run_deployment, parameters=given, timeout=0, as_subflow=True)
        try:
            run: Any = in_time(partial(start, f"work/{pool}"))
        except ObjectNotFound:
            self._given_up.add(pool)
            self.problems.append(f"there is no deployment work/{pool}; run `tidemark deploy`")
            return
        except PrefectHTTPStatusError as error:
            if error.response.status_code not in _REFUSALS:
                raise
            self._given_up.add(pool)
            why = f"{error.response.status_code}: {error.response.text[:300]}"
            self.problems.append(
                f"the server refuses to start work/{pool} ({why}); run `tidemark deploy`"
            )
            return
        self._active[run.id] = run
        if run.parent_task_run_id:  # Prefect gives this task run a random name
            rename = partial(client.set_task_run_name, run.parent_task_run_id, f"work on {pool}")
            in_time(rename)
        run_log().info("started work on %s for %s", pool, ", ".join(models))


def count_free_workers(client: SyncPrefectClient, pool: str) -> int:
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
    return max(0, min(num_online, num_online if limit is None else limit) - num_busy)
