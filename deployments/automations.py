"""Automations of a Prefect server: mark killed runs as crashed, replace them, send alarms."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from uuid import UUID

from prefect.client.schemas.objects import StateType
from prefect.events.actions import (
    ActionTypes,
    ChangeFlowRunState,
    RunDeployment,
    SendNotification,
    UnknownAction,
)
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification

_Match = dict[str, str | list[str]]

PREFIX = "tidemark: "  # prefix of the names of all automations of `tidemark deploy`
# Time without a heartbeat after which a run counts as crashed. It is longer than the five minutes
# for which a server may be down, so that the server's restart marks no live runs as crashed.
SILENCE = dt.timedelta(minutes=10)
LONGEST_RUN = dt.timedelta(days=60)
LATENESS = dt.timedelta(minutes=30)
_TIDEMARK_TAG: _Match = {
    "prefect.resource.id": "prefect.tag.tidemark",
    "prefect.resource.role": "tag",
}
_FLOW_RUNS: _Match = {"prefect.resource.id": "prefect.flow-run.*"}
_HEARTBEAT = "prefect.flow-run.heartbeat"
LOST = "Lost"  # state of type CRASHED: a worker took the run and died before it began


def zombies(silence: dt.timedelta = SILENCE) -> AutomationCore:
    """Return the automation that marks a run as crashed after ``silence`` without heartbeat."""
    message = f"No heartbeat for {silence}: its process was killed, or its machine died."
    return AutomationCore(
        name=f"{PREFIX}no heartbeat",
        description=f"Marks a run as crashed that has sent no heartbeat for {silence}.",
        trigger=_silence_after(_HEARTBEAT, silence),
        actions=_crash("Crashed", message),
    )


def losses(silence: dt.timedelta = SILENCE) -> AutomationCore:
    """Return the automation that tells of runs which a worker took and, dying, never began.

    No heartbeat tells of such a run, since there was none.
    """
    message = f"Pending for {silence}: the worker that took it died before it began."
    return AutomationCore(
        name=f"{PREFIX}never began",
        description=f"Marks a run as lost that has been pending for {silence}.",
        trigger=_silence_after("prefect.flow-run.Pending", silence),
        actions=_crash(LOST, message),
    )


def _silence_after(event: str, silence: dt.timedelta) -> EventTrigger:
    """Return a trigger for flow runs that tell nothing for ``silence`` after an event."""
    expect = {_HEARTBEAT, "prefect.flow-run.*"}
    return _absence({event}, expect, silence, _FLOW_RUNS, _TIDEMARK_TAG)


def _crash(name: str, message: str) -> list[ActionTypes | UnknownAction]:
    """Return the action that gives a run the state ``name``; one that has ended keeps its own."""
    state = StateType.CRASHED
    return [ChangeFlowRunState(state=state, name=name, message=message, force=False)]


def restarts(deployments: Sequence[UUID]) -> tuple[AutomationCore, AutomationCore]:
    """Return the automations that replace crashed and lost runs of some deployments by new ones.

    The new flow run has the parameters of the former one, and finds what that has done. The same
    flow run must not start again: its worker may still hold a slot for it, and Prefect's worker
    ends if it is given the same flow run twice.
    """
    template = "{{ flow_run.parameters | tojson }}"  # filled in by the server
    parameters = {
        "__prefect_kind": "json",
        "value": {"__prefect_kind": "jinja", "template": template},
    }
    again = RunDeployment(
        source="inferred", deployment_id=None, parameters=parameters, job_variables=None
    )
    match = ResourceSpecification(_FLOW_RUNS)
    related = ResourceSpecification(_of_deployments(deployments))
    crashed = AutomationCore(
        name=f"{PREFIX}a crashed run starts again",
        description="Replaces a run whose process was killed, by a new flow run.",
        trigger=EventTrigger(
            # Only runs that have begun; a run that cannot begin would restart forever.
            after={"prefect.flow-run.Running"},
            expect={"prefect.flow-run.Crashed"},
            within=LONGEST_RUN,
            for_each={"prefect.resource.id"},
            match=match,
            match_related=related,
        ),
        actions=[again],
    )
    lost = AutomationCore(
        name=f"{PREFIX}a lost run starts again",
        description="Replaces a run whose worker died before it began, by a new flow run.",
        trigger=EventTrigger(
            expect={f"prefect.flow-run.{LOST}"},
            match=match,
            match_related=related,
        ),
        actions=[again],
    )
    return crashed, lost


def _of_deployments(deployments: Sequence[UUID]) -> _Match:
    return {
        "prefect.resource.id": [f"prefect.deployment.{each}" for each in deployments],
        "prefect.resource.role": "deployment",
    }


def alarms(block: UUID, monthly: UUID) -> list[AutomationCore]:
    """Return the automations that send alarms through the notification block with id ``block``."""
    return [_failures(block), _lateness(block, monthly), _workers(block)]


def _failures(block: UUID) -> AutomationCore:
    states = ("Failed", "TimedOut", "Crashed", LOST, "Completed (partial)")
    return AutomationCore(
        name=f"{PREFIX}a run failed, crashed or is partial",
        description="Tells of every run of ours that did not do all of its work.",
        trigger=EventTrigger(
            expect={f"prefect.flow-run.{state}" for state in states},
            match=ResourceSpecification(_FLOW_RUNS),
            match_related=ResourceSpecification(_TIDEMARK_TAG),
        ),
        actions=_notification(
            block,
            "tidemark: {{ flow_run.name }}: {{ event.payload.validated_state.name }}",
            "{{ event.payload.validated_state.message or '' }}\n{{ flow_run|ui_url or '' }}",
        ),
    )


def _lateness(block: UUID, monthly: UUID) -> AutomationCore:
    ends = ("Pending", "Running", "Cancelled", "Completed", "Failed", "Crashed", LOST)
    return AutomationCore(
        name=f"{PREFIX}the monthly run is late",
        description=f"Tells of a monthly run that is late by {LATENESS}.",
        trigger=_absence(
            after={"prefect.flow-run.Late"},
            expect={f"prefect.flow-run.{state}" for state in ends},
            within=LATENESS,
            match=_FLOW_RUNS,
            match_related={"prefect.resource.id": f"prefect.deployment.{monthly}"},
        ),
        actions=_notification(
            block,
            "tidemark: the monthly run is late",
            "{{ flow_run.name }} should have begun at {{ flow_run.expected_start_time }}: is there "
            "a worker of the pool crawl, and has it a slot left?\n{{ flow_run|ui_url or '' }}",
        ),
    )


def _workers(block: UUID) -> AutomationCore:
    return AutomationCore(
        name=f"{PREFIX}a pool has no worker",
        description=f"Tells of a pool of ours whose last worker has been gone for {SILENCE}.",
        trigger=_absence(
            after={"prefect.work-pool.not-ready"},
            expect={"prefect.work-pool.ready", "prefect.work-pool.paused"},
            within=SILENCE,
            match={
                "prefect.resource.id": "prefect.work-pool.*",
                "prefect.resource.name": ["crawl", "gpu", "gpu-all", "api"],
            },
            match_related={},
        ),
        actions=_notification(
            block,
            "tidemark: the pool {{ work_pool.name }} has no worker",
            f"Its last worker has not been heard of for more than {SILENCE}; nothing of this pool "
            "starts.\n{{ work_pool|ui_url or '' }}",
        ),
    )


def _notification(block: UUID, subject: str, body: str) -> list[ActionTypes | UnknownAction]:
    return [SendNotification(block_document_id=block, subject=subject, body=body)]


def _absence(
    after: set[str],
    expect: set[str],
    within: dt.timedelta,
    match: _Match,
    match_related: _Match,
) -> EventTrigger:
    return EventTrigger(
        posture=Posture.Proactive,
        after=after,
        expect=expect,
        within=within,
        for_each={"prefect.resource.id"},
        match=ResourceSpecification(match),
        match_related=ResourceSpecification(match_related),
    )
