"""Configuration of a Prefect server: work pools, limits, deployments and automations.

Only differences from the server's state are applied. So a repeated deployment completes an
interrupted deployment and changes nothing else. Objects paused by operators stay paused.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from uuid import UUID

import httpx
from prefect import __version__ as prefect_version
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.actions import (
    DeploymentScheduleCreate,
    DeploymentScheduleUpdate,
    DeploymentUpdate,
    WorkPoolCreate,
    WorkPoolUpdate,
)
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.objects import DeploymentSchedule
from prefect.client.schemas.responses import DeploymentResponse
from prefect.client.schemas.schedules import CronSchedule
from prefect.client.schemas.sorting import FlowRunSort
from prefect.events.schemas.automations import AutomationCore
from prefect.exceptions import ObjectNotFound, PrefectException, PrefectHTTPStatusError
from prefect.workers.process import ProcessWorker
from pydantic import SecretStr

from core.environment import without_password
from core.errors import OrchestrationError, UsageError
from core.gpus import read_fleet
from core.plugins import import_parts
from core.storage.store import Store
from deployments.automations import PREFIX, read_automations
from deployments.prefect_yaml import Deployment, is_ours, read_deployments
from tasks.prefect.server import ask_once

MONTHLY = "monthly/monthly"
NOT_RESTARTED = ("work", "report")  # flows whose crashed runs are not replaced
PAGE = 200  # maximum number of objects that a server returns per request
MAX_SHOWN = 300  # maximum number of characters of a server's response in a message
NO_ID = UUID(int=0)  # placeholder for ids in a dry run

_Outcome = TypeVar("_Outcome")
Verb = Literal["made", "changed", "removed", "as it was"]


@dataclass(frozen=True)
class Change:
    """A change of one object on the server."""

    verb: Verb
    what: str
    detail: str = ""


@dataclass
class Deployed:
    """The result of a deployment: the changes, and the times (UTC) of the next monthly runs."""

    changes: list[Change] = field(default_factory=list)
    next_runs: list[dt.datetime] = field(default_factory=list)
    has_alarms: bool = False


def deploy(
    address: str,
    notify_url: SecretStr | None = None,
    gpu_slots: int | None = None,
    dry_run: bool = False,
    keep_alarms: bool = True,
    period_sources: Sequence[str] = (),
) -> Deployed:
    """Create or update pools, limits, deployments and automations; remove obsolete objects.

    Args:
        address: the API URL from Prefect's settings; only used to name the server in errors.
        notify_url: URL of a webhook for alarms. With None, alarms that exist are kept.
        gpu_slots: maximum number of concurrent runs in the pool ``gpu``. With None, an existing
            limit is kept, and a new pool has limit 1.
        dry_run: True to change nothing, and only return the changes.
        keep_alarms: False to remove alarms if ``notify_url`` is None.
        period_sources: sources of half-months and weeks, whose runs are scheduled.

    Raises:
        OrchestrationError: the server does not answer, or refuses a request.
        MalformedInput: prefect.yaml is malformed.
        UsageError, UnknownName: a period source is not of half-months or weeks, or the extra that
            sends alarms is missing.
    """
    wanted = read_deployments(period_sources=period_sources)

    def apply(client: SyncPrefectClient) -> Deployed:
        work = Deployer(client, dry_run)
        for name in dict.fromkeys(each.work_pool.name for each in wanted):
            work.make_pool(name, gpu_slots if name == "gpu" else None)
        ids = work.make_deployments(wanted)
        alarms = _make_alarms(work, notify_url, keep_alarms, ids[MONTHLY])
        restarted = [ids[each.full_name] for each in wanted if each.flow not in NOT_RESTARTED]
        work.make_automations([*read_automations(restarted), *alarms])
        return Deployed(work.changes, work.next_runs(ids[MONTHLY]), bool(alarms))

    with _explained(address):
        return ask_once(apply)


def widen_pools(address: str, store: Store) -> list[Change]:
    """Raise the limit of pool ``gpu`` to the number of GPUs of all workers; return the changes.

    Pools that are missing are created. A pool without a limit is left as it is.

    Raises:
        OrchestrationError: the server does not answer, or refuses a request.
    """
    num_gpus = read_fleet(store).num_gpus

    def widen(client: SyncPrefectClient) -> list[Change]:
        work = Deployer(client, dry_run=False)
        pool = find(client.read_work_pool, "gpu")
        limit = pool.concurrency_limit if pool else 0
        if limit is not None and limit < num_gpus:
            work.make_pool("gpu", num_gpus)
        work.make_pool("gpu-all", None)
        return [change for change in work.changes if change.verb != "as it was"]

    with _explained(address):
        return ask_once(widen)


def _make_alarms(
    work: Deployer, notify_url: SecretStr | None, keep_alarms: bool, monthly: UUID
) -> list[AutomationCore]:
    """Return the automations that send alarms, from the extra for alarms; none without it."""
    for part in import_parts("alarms"):
        alarms: list[AutomationCore] = part.make_alarms(work, notify_url, keep_alarms, monthly)
        return alarms
    if notify_url:
        raise UsageError(
            "TIDEMARK_NOTIFY_URL is set, but the folder extras/alarms, which sends alarms, is "
            "missing: put it back, or unset the former"
        )
    return []


class Deployer:
    """A client that applies differences to the server, and records them in ``changes``."""

    def __init__(self, client: SyncPrefectClient, dry_run: bool) -> None:
        self.changes: list[Change] = []
        self.client = client
        self._dry_run = dry_run

    def do(self, change: Change, action: Callable[..., Any], *arguments: Any) -> Any:
        """Record a change, and make it unless this is a dry run; return what ``action`` returns."""
        result = None if self._dry_run else action(*arguments)
        self.changes.append(change)
        return result

    def keep(self, what: str, detail: str = "") -> None:
        """Record that an object stays as it is."""
        self.changes.append(Change("as it was", what, detail))

    def make_pool(self, name: str, slots: int | None) -> None:
        """Create a work pool, or change its limit; None keeps an existing limit."""
        what = f"work pool {name}"
        pool = find(self.client.read_work_pool, name)
        if pool is None:
            limit = (slots or 1) if name == "gpu" else None
            new = WorkPoolCreate(
                name=name,
                type="process",
                base_job_template=ProcessWorker.get_default_base_job_template(),
                concurrency_limit=limit,
            )
            detail = f"limit {limit}" if limit else ""
            self.do(Change("made", what, detail), self.client.create_work_pool, new)
            return
        if slots is None or slots == pool.concurrency_limit:
            limit = pool.concurrency_limit
            notes = [f"limit {limit}"] if limit is not None else []
            notes += ["paused"] if pool.is_paused else []
            self.keep(what, ", ".join(notes))
            return
        change = Change("changed", what, f"limit {pool.concurrency_limit} → {slots}")
        self.do(change, self.client.update_work_pool, name, WorkPoolUpdate(concurrency_limit=slots))

    def make_deployments(self, wanted: list[Deployment]) -> dict[str, UUID]:
        """Create or update deployments, remove others of ours; return the ids by full name."""
        existing = self._existing()
        ids = {}
        for each in wanted:
            found = existing.pop(each.full_name, None)
            if found is None:
                change = Change("made", f"deployment {each.full_name}")
                ids[each.full_name] = self.do(change, self._create, each) or NO_ID
            else:
                self._update(each, found)
                ids[each.full_name] = found.id
        for name, found in existing.items():
            if is_ours(name, found.entrypoint, found.parameters):
                change = Change("removed", f"deployment {name}")
                self.do(change, self.client.delete_deployment, found.id)
        return ids

    def _existing(self) -> dict[str, DeploymentResponse]:
        """Return all deployments of the server by full name."""
        flows = {flow.id: flow.name for flow in _all(self.client.read_flows)}
        found = _all(self.client.read_deployments)
        return {f"{flows[each.flow_id]}/{each.name}": each for each in found}

    def _create(self, wanted: Deployment) -> UUID:
        return self.client.create_deployment(
            flow_id=self.client.create_flow_from_name(wanted.flow),
            name=wanted.name,
            schedules=[DeploymentScheduleCreate(schedule=s) for s in wanted.schedules],
            enforce_parameter_schema=True,
            **wanted.fields(),
        )

    def _update(self, wanted: Deployment, found: DeploymentResponse) -> None:
        """Change the fields and schedules of a deployment that differ from the wanted ones."""
        what = f"deployment {wanted.full_name}"
        fields = wanted.fields()
        changed = {name: value for name, value in fields.items() if value != getattr(found, name)}
        if found.global_concurrency_limit is not None:  # prefect.yaml explains why
            changed["concurrency_limit"] = None
        schedules = _reschedule(wanted.schedules, found.schedules)
        if schedules is not None:
            changed["schedules"] = schedules
        if not changed:
            is_paused = found.paused or not all(each.active for each in found.schedules)
            self.keep(what, "paused" if is_paused else "")
            return
        change = Change("changed", what, ", ".join(changed))
        self.do(change, self.client.update_deployment, found.id, DeploymentUpdate(**changed))

    def make_automations(self, wanted: list[AutomationCore]) -> None:
        """Create or update automations; remove all other automations with tidemark's prefix."""
        found = [a for a in _all(self.client.read_automations) if a.name.startswith(PREFIX)]
        existing = {each.name: each for each in found}
        duplicates = [each for each in found if existing[each.name].id != each.id]
        for each in wanted:
            what = f"automation {each.name}"
            old = existing.pop(each.name, None)
            if old is None:
                self.do(Change("made", what), self.client.create_automation, each)
                continue
            same = each.model_copy(update={"enabled": old.enabled})
            if same == AutomationCore.model_validate(old.model_dump()):
                self.keep(what, "" if old.enabled else "switched off")
                continue
            # The client omits unset fields; the server requires all fields except owner_resource.
            whole = AutomationCore.model_validate(same.model_dump(exclude={"owner_resource"}))
            self.do(Change("changed", what), self.client.update_automation, old.id, whole)
        for each in [*existing.values(), *duplicates]:
            change = Change("removed", f"automation {each.name}")
            self.do(change, self.client.delete_automation, each.id)

    def next_runs(self, deployment: UUID) -> list[dt.datetime]:
        """Let the server schedule runs of a deployment; return the times of the next three runs."""
        if not self._dry_run:
            path = {"id": deployment}
            three = {"min_runs": 3}
            self.client.request("POST", "/deployments/{id}/schedule", path_params=path, json=three)
        scheduled = {
            "deployment_id": {"any_": [deployment]},
            "state": {"type": {"any_": ["SCHEDULED"]}},
        }
        runs = self.client.read_flow_runs(
            flow_run_filter=FlowRunFilter.model_validate(scheduled),
            sort=FlowRunSort.EXPECTED_START_TIME_ASC,
            limit=PAGE,
        )
        now = dt.datetime.now(dt.UTC)
        times: list[dt.datetime] = [run.expected_start_time or now for run in runs]
        return [time for time in times if time > now][:3]


def find(read: Callable[..., _Outcome], *names: str) -> _Outcome | None:
    """Return the object that ``read`` returns by its name, or None if the server lacks it."""
    try:
        return read(*names)
    except ObjectNotFound:
        return None


def _all(read: Callable[..., list[Any]]) -> Iterator[Any]:
    """Yield all objects of a list that the server returns page by page."""
    offset = 0
    while page := read(limit=PAGE, offset=offset):
        yield from page
        offset += len(page)


def _reschedule(
    wanted: tuple[CronSchedule, ...], found: list[DeploymentSchedule]
) -> list[DeploymentScheduleUpdate] | None:
    """Return the schedules to set, or None if the server already has the wanted schedules.

    Paused schedules stay paused. If all schedules were paused, new schedules are also paused.
    """
    active = {
        (each.schedule.cron, each.schedule.timezone): each.active
        for each in found
        if isinstance(each.schedule, CronSchedule)
    }
    keys = [(each.cron, each.timezone) for each in wanted]
    if len(found) == len(keys) and set(keys) == set(active):
        return None
    are_new_active = not found or any(each.active for each in found)
    return [
        DeploymentScheduleUpdate(schedule=each, active=active.get(key, are_new_active))
        for each, key in zip(wanted, keys, strict=True)
    ]


@contextlib.contextmanager
def _explained(address: str) -> Iterator[None]:
    """Convert errors of Prefect and httpx in a ``with`` block into OrchestrationError."""
    server = f"the Prefect server at {without_password(address)} (PREFECT_API_URL)"
    try:
        yield
    except PrefectHTTPStatusError as error:
        asked = f"{error.request.method} {error.request.url.path}"
        raise OrchestrationError(
            f"{server} answers {error.response.status_code} to {asked}: "
            f"{error.response.text[:MAX_SHOWN]}; is it one of Prefect 3.9? Then deploy again: what "
            "was made is left"
        ) from error
    except (httpx.TransportError, httpx.InvalidURL, TimeoutError) as error:
        raise OrchestrationError(
            f"{server} does not answer ({type(error).__name__}: {error}): see that it runs, then "
            "deploy again: what was made is left"
        ) from error
    except (PrefectException, httpx.HTTPError, RuntimeError, ValueError) as error:
        # Prefect's client raises these errors for responses of another version, or without JSON.
        found = " ".join(repr(error).split())[:MAX_SHOWN]
        raise OrchestrationError(
            f"{server} answers otherwise than Prefect {prefect_version} does ({found}): "
            "is it one of this version, and does the address end in /api? Then deploy again: what "
            "was made is left"
        ) from error
