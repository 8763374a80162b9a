"""The coordinator of a deployed run: it starts the parts as child flow runs and watches them.

The coordinator is the flow run of ``monthly``, ``backfill``, ``forecast`` or ``scylla``. A part is
a source to crawl, the work of a model, or the report. The files of the run record which parts have
ended. The server knows the state of each child run. See docs/adr/0020 and docs/adr/0029.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, cast
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.flows import Flow
from prefect.logging import get_run_logger
from prefect.states import Cancelled, Cancelling, Crashed

from core.errors import StorageError
from core.progress import counted
from core.run_record import Outcome, RunRecord, RunResult, Stage
from core.settings import Settings
from core.storage.store import Store
from flows.crawl import find_sealed
from flows.gpus import GpuPools
from tasks.prefect.storage_keys import worker_settings
from tasks.prefect.tracing import name_of_run
from tasks.reporting import find_finished_report

ATTEMPTS = 3  # maximum number of attempts of a part; maximum number of crashes of a run
AWAY_S = 24 * 3600.0  # maximum outage of the server or the data root, in seconds
TAKEN_LOOKS = 30  # polling intervals before a warning that no worker takes a run
PENDING_LOOKS = 60  # polling intervals after which a pending run counts as crashed
_PARTS = {
    "crawl": ("source", "to crawl"),
    "score": ("model", "to score"),
    "answer": ("model", "to ask"),
    "solve": ("model", "to solve puzzles"),
}
_Result = TypeVar("_Result")
_PAGE = 200  # maximum number of flow runs per response of the server


@dataclass(frozen=True)
class Part:
    """The work of one child flow run: a source to crawl, the work of a model, or the report.

    ``more`` are further models that the same flow run asks.
    """

    stage: Stage | Literal["report"]
    name: str
    more: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.stage} {', '.join((self.name, *self.more))}".strip()

    def deployment(self, pools: GpuPools) -> str:
        """Return the full name of the deployment that does this part."""
        if self.stage == "crawl" or self.stage == "report":
            source = self.name.partition(":")[0]  # of a subset, such as github_new:cpp
            return f"{self.stage}/{source or self.stage}"
        return pools.deployment_of(self.stage, self.name)

    def parameters(self, record: RunRecord) -> dict[str, Any]:
        """Return the parameters of the flow run that does this part."""
        if self.stage == "crawl":
            months = record.request().months
            window = {"first": months[0], "last": months[-1]}
            return {"source": self.name, **window, "run": record.run}
        if self.stage in ("answer", "solve"):
            models = [self.name, *self.more]
            return {**record.request().parameters, "models": models, "run": record.run}
        return {**({"model": self.name} if self.stage == "score" else {}), "run": record.run}


class Coordinator:
    """The object that starts and watches all parts of a run, inside the parent flow run."""

    def __init__(self, record: RunRecord, settings: Settings) -> None:
        self._record = record
        self._settings = settings
        self._interval_s = settings.watch_interval_s
        self._store = Store(settings.home)
        self._runs: dict[Part, FlowRun] = {}  # latest child run of each part
        self._num_started: Counter[Part] = Counter()
        self._warned: set[str] = set()  # pools with a logged warning
        self._pools = GpuPools(record, settings)
        self._further: set[tuple[Part, int]] = set()  # started further runs of models
        # Time at which a state of a child run was first seen, in seconds of the monotonic clock.
        self._seen_at: dict[tuple[UUID, StateType | None], float] = {}
        self._log = get_run_logger()

    def wait(self) -> RunResult:
        """Start and watch parts until the run has ended; return the result of the run.

        Raises:
            httpx.HTTPError, StorageError: the server or data root was unavailable for ``AWAY_S`` s.
        """
        return self._watch(self._record.result)

    def wait_for_models(self) -> None:
        """Start and watch parts until no model is missing, or the run was cancelled."""
        [stage] = self._record.request().stages
        self._watch(lambda: not self._record.missing(stage) or self._record.result() or None)

    def _watch(self, until: Callable[[], _Result | None]) -> _Result:
        answered_at = time.monotonic()
        while True:
            try:
                self.look()
                if (result := until()) is not None:
                    return result
                answered_at = time.monotonic()
            except (httpx.HTTPError, StorageError) as error:
                away_s = time.monotonic() - answered_at
                if away_s > AWAY_S:
                    raise
                self._log.warning("waiting, for %.0f s by now: %s", away_s, error)
            time.sleep(self._interval_s)

    def look(self) -> None:
        """Check all parts once; start, restart or give up parts as needed."""
        with get_client(sync_client=True) as client:
            # Read run states before outcomes: a run that ends in between must not count as failed.
            before, self._runs = self._runs, self._read_runs(client)
            self._log_ends(before)
            self._warn_of_idle_pools()
            due = self._due()
            for part, number in due:
                if number == 1:
                    self._tend(client, part)
                else:
                    self._start_further(part, number)
            if any(part.stage == "score" for part, _ in due) or self._further:
                self._help(client)

    def _read_runs(self, client: SyncPrefectClient) -> dict[Part, FlowRun]:
        parts = {run.id: part for part, run in self._runs.items()}
        ids, found = list(parts), list[FlowRun]()
        for start in range(0, len(ids), _PAGE):
            page = FlowRunFilter.model_validate({"id": {"any_": ids[start : start + _PAGE]}})
            found += client.read_flow_runs(flow_run_filter=page, limit=_PAGE)
        return {parts[run.id]: run for run in found}

    def _log_ends(self, before: Mapping[Part, FlowRun]) -> None:
        """Log each child run that has ended since the last look, and what remains to be done."""
        states = {part: run.state for part, run in self._runs.items() if run.state}
        new = [
            part for part, state in states.items() if state.is_final() and _is_active(before[part])
        ]
        for part in new:
            is_well = states[part].is_completed() and states[part].name == "Completed"
            level, end = logging.INFO if is_well else logging.WARNING, states[part]
            self._log.log(level, "ended %s: %s. %s", part, end.name, end.message or "")
        if new:
            stages = self._record.request().stages
            parts = [(len(self._record.missing(stage)), *_PARTS[stage]) for stage in stages]
            left = [f"{counted(number, unit)} {work}" for number, unit, work in parts]
            self._log.info("left: %s", ", ".join(left))

    def _due(self) -> list[tuple[Part, int]]:
        """Return the parts of the present stage, and the numbers of their runs, in order."""
        if self._record.result() is not None:
            return []
        stages = self._record.request().stages
        if "crawl" in stages:
            self._settle_sealed()
        for stage in stages:
            missing = self._record.missing(stage)
            if missing and stage == "crawl":
                return [(Part(stage, name), 1) for name in missing]
            if missing:
                states = [(part.name, run.state) for part, run in self._runs.items()]
                running = {name for name, state in states if state and state.is_running()}
                starts = self._pools.plan(stage, missing, running)
                due = [(self._part_of(stage, start.model), start.number) for start in starts]
                return list(dict.fromkeys(due))
        if "score" not in stages:
            return []
        site = find_finished_report(self._record.run, self._settings)
        if Part("report", "") not in self._runs and site is not None:
            self._log.info("nothing to publish or to report")
            self._record.finish(site)
            return []
        return [(Part("report", ""), 1)]

    def _part_of(self, stage: Stage, model: str) -> Part:
        name, *more = [model] if stage == "score" else self._pools.asked_together(model)
        return Part(stage, name, tuple(more))

    def _help(self, client: SyncPrefectClient) -> None:
        """Start further runs of slow models on free GPUs; cancel those of models that are done."""
        models = self._record.missing("score")
        active = _active_children(client, [self._record])
        for run in active:
            is_idle = run.parameters.get("helps") and run.parameters.get("model") not in models
            if is_idle and run.state and run.state.is_scheduled():
                client.set_flow_run_state(run.id, Cancelled(), force=True)
        if models:
            for start in self._pools.choose_helped(client, models, active):
                self._start_further(Part("score", start.model), start.number)

    def _start_further(self, part: Part, number: int) -> None:
        """Start one more run of a model, if it is not started; it needs no watching."""
        if (part, number) not in self._further:
            with contextlib.suppress(ObjectNotFound):  # ``_start`` reports it
                self._further.add((part, number))
                run = self._run(part, f"further-{number}", helps=True)
                self._log.info("started a further run of %s: %s", part, run.name)

    def _settle_sealed(self) -> None:
        """Settle each source with nothing to crawl, which needs no child run."""
        months = self._record.request().window()
        for source in self._record.missing("crawl"):
            if Part("crawl", source) in self._runs:
                continue
            if (outcome := find_sealed(source, months, self._store)) is not None:
                self._log.info("nothing to crawl of %s: %s", source, outcome)
                self._record.settle("crawl", source, outcome)

    def _tend(self, client: SyncPrefectClient, part: Part) -> None:
        """Start a part that has no active child run; after ``ATTEMPTS`` starts, give it up."""
        run = self._runs.get(part)
        if run and run.state and not run.state.is_final():
            self._end_stuck(client, run)
        elif self._num_started[part] < ATTEMPTS:
            self._start(part)
        else:
            last = f"{run.state.name}: {run.state.message}" if run and run.state else "deleted"
            self._give_up(part, f"{ATTEMPTS} flow runs have not done it; the last is {last}")

    def _start(self, part: Part) -> None:
        """Start the next child run of a part.

        After a crash, the new process of the coordinator repeats this call for parts that the old
        process has started. Because of idempotency keys, the server returns the same child runs.
        """
        attempt = self._num_started[part] + 1
        try:
            child = self._run(part, str(attempt))
        except ObjectNotFound:
            missing = part.deployment(self._pools)
            self._give_up(part, f"there is no deployment {missing}; run `tidemark deploy`")
            return
        self._runs[part], self._num_started[part] = child, attempt
        self._log.info("started %s", part)

    def _run(self, part: Part, attempt: str, **parameters: bool) -> FlowRun:
        run = self._record.run
        child: Any = run_deployment(
            part.deployment(self._pools),
            parameters={**part.parameters(self._record), **parameters},
            flow_run_name=f"{part} ({attempt})" if parameters else str(part),
            timeout=0,
            tags=[_tag_of(run)],
            idempotency_key=f"{run}/{part.stage}/{part.name}/{attempt}",
            as_subflow=True,
        )
        if child.parent_task_run_id:  # Prefect gives this task run a random name
            with get_client(sync_client=True) as client:
                client.set_task_run_name(child.parent_task_run_id, str(part))
        return cast(FlowRun, child)

    def _give_up(self, part: Part, why: str) -> None:
        hole = f"{part}: {why}"
        self._log.error("given up: %s", hole)
        if part.stage == "report":
            self._record.finish("", [hole])
        else:
            for name in {part.name, *part.more} & set(self._record.missing(part.stage)):
                self._record.settle(part.stage, name, Outcome(done=0, holes=(hole,)))

    def _end_stuck(self, client: SyncPrefectClient, run: FlowRun) -> None:
        """Mark a pending run as crashed if its worker died before the run began."""
        if run.state and run.state.is_pending() and self._looks_since(run) > PENDING_LOOKS:
            why = "a worker took this run and never began it"
            client.set_flow_run_state(run.id, Crashed(message=why), force=True)

    def _warn_of_idle_pools(self) -> None:
        runs = self._runs.values()
        taken = {run.work_pool_name for run in runs if run.state and run.state.is_running()}
        for run in runs:
            pool = run.work_pool_name or ""
            is_waiting = run.state is not None and run.state.is_scheduled()
            is_late = is_waiting and self._looks_since(run) > TAKEN_LOOKS
            if is_late and pool not in taken | self._warned:
                self._warned.add(pool)
                self._log.warning(
                    "no worker of the pool %s takes the run %s: see that one runs and has a slot "
                    "free (prefect worker start --pool %s)", pool, run.name, pool,
                )  # fmt: skip

    def _looks_since(self, run: FlowRun) -> float:
        """Return for how many polling intervals this coordinator has seen a run in its state.

        Times of the server are not used, since the clocks of two machines may differ.
        """
        now = time.monotonic()
        since = self._seen_at.setdefault((run.id, run.state_type), now)
        return (now - since) / self._interval_s


def _is_active(run: FlowRun) -> bool:
    return run.state is None or not run.state.is_final()


def records_of(name: str, store: Store) -> list[RunRecord]:
    """Return the records of a run: the first, and one for each restart after the run ended."""
    records = [RunRecord(store, name)]
    while records[-1].exists():
        records.append(RunRecord(store, f"{name}-{len(records) + 1}"))
    return records[:-1]


def cancel_run(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """End the run of a cancelled coordinator, and cancel its child runs.

    A worker calls this hook of the flow. The server looks for remaining child runs every 20 s, and
    cancels them.
    """
    name = name_of_run(flow.name, flow_run.parameters.get("resume") or flow_run.id)
    records = records_of(name, Store(worker_settings().home))
    for record in records:
        if record.result() is None:
            # Child runs that begin after this will end at once.
            record.finish("", ["report: the run was cancelled"])
    with get_client(sync_client=True) as client:
        for child in _active_children(client, records):
            client.set_flow_run_state(child.id, Cancelling())


def _active_children(client: SyncPrefectClient, records: list[RunRecord]) -> list[FlowRun]:
    """Return the child runs of a run that have not ended, those of its crashed flow runs included.

    A run has more than ``_PAGE`` active children only if it has as many sources or models.
    """
    active = {"type": {"any_": ["SCHEDULED", "PENDING", "RUNNING", "PAUSED"]}}
    found = list[FlowRun]()
    for record in records:
        wanted = {"tags": {"all_": [_tag_of(record.run)]}, "state": active}
        chosen = FlowRunFilter.model_validate(wanted)
        found += client.read_flow_runs(flow_run_filter=chosen, limit=_PAGE)
    return found


def _tag_of(run: str) -> str:
    return f"tidemark-run:{run}"
