"""How a deployed run is done by other flow runs: started, watched, started again, cancelled.

Events and automations chain the stages (``flows/stages.py``). The coordinator, which is the flow
run of ``monthly`` or ``backfill``, looks at the run's files and at the server, and does what an
event that was lost or a run that has crashed leaves undone (docs/adr/0020).
"""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import httpx
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.filters import (
    FlowFilter,
    FlowFilterName,
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
)
from prefect.client.schemas.objects import FlowRun, State
from prefect.deployments import run_deployment
from prefect.exceptions import ObjectNotFound
from prefect.flows import Flow
from prefect.logging import get_run_logger
from prefect.states import Cancelling, Crashed

from core.errors import OrchestrationError, StorageError
from core.run_record import Outcome, RunRecord, RunResult, Stage
from core.settings import Settings
from core.storage import Store
from flows.stages import end_part, end_stage
from tasks.storage_keys import worker_settings

ATTEMPTS = 3  # of a part, or of the coordinator itself, before it is given up
AWAY_S = 24 * 3600.0  # so long a server or data root may be away
EVENT_LOOKS = 6  # without a run, until a lost event is made good
TAKEN_LOOKS = 30  # until it is told that no worker takes a run
PENDING_LOOKS = 60  # until a run that a worker took and never began has crashed
_PAGE = 200  # flow runs that a server gives at once
_CLOCKS = dt.timedelta(hours=1)  # that machines' clocks may be apart


@dataclass(frozen=True)
class Part:
    """What one flow run of a stage does: a source, a model, or the report."""

    stage: Stage | Literal["report"]
    name: str

    @property
    def deployment(self) -> str:
        """Name of the deployment that does it."""
        return f"crawl/{self.name}" if self.stage == "crawl" else f"{self.stage}/{self.stage}"

    def parameters(self, record: RunRecord) -> dict[str, Any]:
        """What its flow run is given."""
        if self.stage == "crawl":
            months = record.request().months
            about: dict[str, Any] = {"source": self.name, "first": months[0], "last": months[-1]}
        else:
            about = {"model": self.name} if self.stage == "score" else {}
        return {**about, "run": record.run}

    def is_done_by(self, run: FlowRun) -> bool:
        """Whether a flow run of this run does this part."""
        given = run.parameters
        if self.stage == "report":
            return given.get("source") is None and given.get("model") is None
        return given.get("source" if self.stage == "crawl" else "model") == self.name


class Coordinator:
    """Sees to it that all parts of a run end.

    Args:
        record: of the run.
        settings: how often to look.
    """

    def __init__(self, record: RunRecord, settings: Settings) -> None:
        self._record = record
        self._interval_s = settings.watch_interval_s
        self._due_since: dict[str, float] = {}  # by stage
        self._warned: set[str] = set()  # pools
        self._log = get_run_logger()

    def wait(self) -> RunResult:
        """Return when the run has ended.

        Raises:
            httpx.HTTPError, StorageError: the server or the data root is away for a day.
        """
        answered_at = time.monotonic()
        while True:
            try:
                self.look()
                if (result := self._record.result()) is not None:
                    return result
                answered_at = time.monotonic()
            except (httpx.HTTPError, StorageError) as error:
                away_s = time.monotonic() - answered_at
                if away_s > AWAY_S:
                    raise
                self._log.warning("waiting, for %.0f s by now: %s", away_s, error)
            time.sleep(self._interval_s)

    def look(self) -> None:
        """Do once what is to be done now."""
        with get_client(sync_client=True) as client:
            # Before the files, so that a run that has ended since does not seem to have failed.
            runs = find_runs(client, self._record.run, self._record.request().started_at)
            self._warn_of_idle_pools(runs)
            for part in self._due():
                self._tend(client, part, [run for run in runs if part.is_done_by(run)])

    def _due(self) -> list[Part]:
        if self._record.result() is not None:
            return []
        stages: tuple[Stage, ...] = ("crawl", "score")
        for stage in stages:
            if missing := self._record.missing(stage):
                return [Part(stage, name) for name in missing]
            end_stage(self._record, stage)  # if the last part's run was killed just before
        return [Part("report", "")]

    def _tend(self, client: SyncPrefectClient, part: Part, runs: list[FlowRun]) -> None:
        """Start a part that no flow run is doing, or give it up."""
        under_way = [run for run in runs if run.state and not run.state.is_final()]
        if under_way:
            self._end_stuck(client, under_way)
        elif len(runs) >= ATTEMPTS:
            last = max(runs, key=lambda run: run.created or self._record.request().started_at)
            state = f"{last.state.name}: {last.state.message}" if last.state else "no state"
            self._give_up(part, f"{ATTEMPTS} flow runs have not done it; the last is {state}")
        elif runs or part.stage == "crawl" or self._is_event_lost(part):
            self._start(part, attempt=len(runs) + 1)

    def _is_event_lost(self, part: Part) -> bool:
        """Whether an automation should have started the part long ago."""
        due_since = self._due_since.setdefault(part.stage, time.monotonic())
        return time.monotonic() - due_since > EVENT_LOOKS * self._interval_s

    def _start(self, part: Part, attempt: int) -> None:
        run = self._record.run
        try:
            started: Any = run_deployment(
                part.deployment,
                parameters=part.parameters(self._record),
                timeout=0,
                tags=[f"tidemark-run:{run}"],
                # A second coordinator, after a crash of the first, starts nothing twice.
                idempotency_key=f"{run}/{part.stage}/{part.name}/{attempt}",
                as_subflow=False,
            )
        except ObjectNotFound:
            self._give_up(part, f"there is no deployment {part.deployment}; run `tidemark deploy`")
        else:
            self._log.info("started %s %s: %s", part.stage, part.name, started.name)

    def _give_up(self, part: Part, why: str) -> None:
        hole = f"{part.stage} {part.name}".strip() + f": {why}"
        self._log.error("given up: %s", hole)
        if part.stage == "report":
            self._record.finish("", [hole])
        else:
            end_part(self._record, part.stage, part.name, Outcome(done=0, holes=(hole,)))

    def _end_stuck(self, client: SyncPrefectClient, runs: list[FlowRun]) -> None:
        """End runs whose worker died between taking and beginning them: nobody else would."""
        for run in runs:
            if run.state and run.state.is_pending() and self._looks_since(run) > PENDING_LOOKS:
                why = "a worker took this run and never began it"
                client.set_flow_run_state(run.id, Crashed(message=why), force=True)

    def _warn_of_idle_pools(self, runs: list[FlowRun]) -> None:
        """Tell once of a pool none of whose workers takes anything."""
        taken = {run.work_pool_name for run in runs if run.state and run.state.is_running()}
        for run in runs:
            pool = run.work_pool_name or ""
            is_waiting = run.state is not None and run.state.is_scheduled()
            if not is_waiting or self._looks_since(run) <= TAKEN_LOOKS or pool in taken:
                continue
            if pool not in self._warned:
                self._warned.add(pool)
                self._log.warning(
                    "no worker of the pool %s takes the run %s: see that one runs and has a slot "
                    "free (prefect worker start --pool %s)", pool, run.name, pool,
                )  # fmt: skip

    def _looks_since(self, run: FlowRun) -> float:
        """How many intervals ago a flow run has got its state, or was to begin if it has not."""
        since = run.expected_start_time or dt.datetime.now(dt.UTC)
        if run.state and not run.state.is_scheduled():
            since = run.state.timestamp
        return (dt.datetime.now(dt.UTC) - since).total_seconds() / self._interval_s


def name_of_run(flow: str, flow_run_id: object) -> str:
    """Return the name of the run that a flow run of ``monthly`` or ``backfill`` is.

    By the end of its id: those of scheduled runs begin with the time at which they were scheduled.
    """
    return f"{flow}-{str(flow_run_id)[-12:]}"


def records_of(name: str, store: Store) -> list[RunRecord]:
    """Return the records of a run: its first, and one for each time that it was started anew."""
    records = [RunRecord(store, name)]
    while records[-1].exists():
        records.append(RunRecord(store, f"{name}-{len(records) + 1}"))
    return records[:-1]


def has_crashed(client: SyncPrefectClient, flow_run_id: UUID) -> bool:
    """Whether a flow run has ended in a crash the last time.

    Raises:
        OrchestrationError: it has crashed ``ATTEMPTS`` times.
    """
    states = client.read_flow_run_states(flow_run_id)
    ends = sorted((each for each in states if each.is_final()), key=lambda end: end.timestamp)
    if not ends or not ends[-1].is_crashed():
        return False
    if sum(end.is_crashed() for end in ends) >= ATTEMPTS:
        raise OrchestrationError(
            f"this run has crashed {ATTEMPTS} times, see its logs; start another one, which finds "
            "what this one has done"
        )
    return True


def find_runs(client: SyncPrefectClient, run: str, since: dt.datetime) -> list[FlowRun]:
    """Return the flow runs that do parts of a run, whoever has started them.

    Args:
        client: of the server.
        run: the run.
        since: when it began.
    """
    found: list[FlowRun] = []
    flows = FlowFilter(name=FlowFilterName(any_=["crawl", "score", "report"]))
    start = FlowRunFilterExpectedStartTime.model_validate({"after_": since - _CLOCKS})
    while True:
        page = client.read_flow_runs(
            flow_filter=flows,
            flow_run_filter=FlowRunFilter(expected_start_time=start),
            limit=_PAGE,
            offset=len(found),
        )
        found += page
        if len(page) < _PAGE:
            return [each for each in found if each.parameters.get("run") == run]


def cancel_run(flow: Flow[..., Any], flow_run: FlowRun, state: State[Any]) -> None:
    """End the run of a coordinator that is being cancelled, and cancel what it has set going.

    A hook of its flow. Called by the worker, whose settings count.
    """
    name = name_of_run(flow.name, flow_run.id)
    for record in records_of(name, Store(worker_settings().home)):
        if record.result() is not None:
            continue
        record.finish("")  # first: what an event starts from now on finds the run ended
        with get_client(sync_client=True) as client:
            for part in find_runs(client, record.run, record.request().started_at):
                if part.state and not part.state.is_final():
                    client.set_flow_run_state(part.id, Cancelling())
