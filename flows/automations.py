"""The automations that a server is to have: the chain of a run's stages, and the alarms."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from prefect.client.schemas.objects import StateType
from prefect.events.actions import ActionTypes, ChangeFlowRunState, RunDeployment, SendNotification
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification

PREFIX = "tidemark: "  # names that begin so belong to `tidemark deploy`
# Longer than the five minutes that a server may be away: runs that went on must not be crashed
# by a server that comes back and has not heard of them.
SILENCE = dt.timedelta(minutes=10)
LONGEST_RUN = dt.timedelta(days=60)
LATENESS = dt.timedelta(minutes=30)
_OURS: dict[str, str | list[str]] = {
    "prefect.resource.id": "prefect.tag.tidemark",
    "prefect.resource.role": "tag",
}
_HEARTBEAT = "prefect.flow-run.heartbeat"


def chain(deployments: Mapping[str, UUID]) -> list[AutomationCore]:
    """Return what starts the next stage of a run when an event says that it is due.

    Args:
        deployments: ids by full name.
    """
    return [
        AutomationCore(
            name=f"{PREFIX}{stage} is due",
            description=f"Starts {stage}/{stage} when the stage before it has ended.",
            trigger=EventTrigger(expect={f"tidemark.{stage}.due"}),
            actions=[
                RunDeployment(
                    source="selected",
                    deployment_id=deployments[f"{stage}/{stage}"],
                    # A lone expression keeps its value, whatever a name has in it.
                    parameters={each: f"{{{{ event.payload.{each} }}}}" for each in parameters},
                    job_variables=None,
                )
            ],
        )
        for stage, parameters in (("score", ("run", "model")), ("report", ("run",)))
    ]


def zombies(silence: dt.timedelta = SILENCE) -> AutomationCore:
    """Return what marks a run as crashed of which nothing is heard any more.

    Args:
        silence: how long that has to last.
    """
    return AutomationCore(
        name=f"{PREFIX}no heartbeat",
        description=f"Marks a run as crashed that has sent no heartbeat for {silence}.",
        trigger=_absence(
            after={_HEARTBEAT},
            expect={_HEARTBEAT, "prefect.flow-run.*"},
            within=silence,
            match={"prefect.resource.id": "prefect.flow-run.*"},
            match_related=_OURS,
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.CRASHED,
                name="Crashed",
                message=f"No heartbeat for {silence}: its process was killed, or its machine died.",
                force=False,  # a run that has ended stays as it ended
            )
        ],
    )


def resumption(coordinators: Sequence[UUID]) -> AutomationCore:
    """Return what starts a monthly run or back-fill again that has crashed; it goes on.

    Args:
        coordinators: ids of their deployments.
    """
    return AutomationCore(
        name=f"{PREFIX}a crashed run goes on",
        description="Starts a monthly run or back-fill again whose worker was killed.",
        trigger=EventTrigger(
            # Not one that cannot even begin: nothing would end that.
            after={"prefect.flow-run.Running"},
            expect={"prefect.flow-run.Crashed"},
            within=LONGEST_RUN,
            for_each={"prefect.resource.id"},
            match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
            match_related=ResourceSpecification(
                {
                    "prefect.resource.id": [f"prefect.deployment.{each}" for each in coordinators],
                    "prefect.resource.role": "deployment",
                }
            ),
        ),
        actions=[
            ChangeFlowRunState(
                state=StateType.SCHEDULED,
                name="AwaitingRetry",
                message="It crashed, and goes on.",
                force=False,
            )
        ],
    )


def alarms(block: UUID, monthly: UUID) -> list[AutomationCore]:
    """Return what tells somebody.

    Args:
        block: id of the notification block.
        monthly: id of the deployment of the monthly run.
    """
    return [_failures(block), _lateness(block, monthly), _workers(block)]


def _failures(block: UUID) -> AutomationCore:
    states = ("Failed", "TimedOut", "Crashed", "Completed (partial)")
    return AutomationCore(
        name=f"{PREFIX}a run failed, crashed or is partial",
        description="Tells of every run of ours that did not do all of its work.",
        trigger=EventTrigger(
            expect={f"prefect.flow-run.{state}" for state in states},
            match=ResourceSpecification({"prefect.resource.id": "prefect.flow-run.*"}),
            match_related=ResourceSpecification(_OURS),
        ),
        actions=_tell(
            block,
            "tidemark: {{ flow_run.name }}: {{ event.payload.validated_state.name }}",
            "{{ event.payload.validated_state.message or '' }}\n{{ flow_run|ui_url or '' }}",
        ),
    )


def _lateness(block: UUID, monthly: UUID) -> AutomationCore:
    ends = ("Pending", "Running", "Cancelled", "Completed", "Failed", "Crashed")
    return AutomationCore(
        name=f"{PREFIX}the monthly run is late",
        description=f"Tells of a monthly run that is late by {LATENESS}.",
        trigger=_absence(
            after={"prefect.flow-run.Late"},
            expect={f"prefect.flow-run.{state}" for state in ends},
            within=LATENESS,
            match={"prefect.resource.id": "prefect.flow-run.*"},
            match_related={"prefect.resource.id": f"prefect.deployment.{monthly}"},
        ),
        actions=_tell(
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
                "prefect.resource.name": ["crawl", "gpu"],
            },
            match_related={},
        ),
        actions=_tell(
            block,
            "tidemark: the pool {{ work_pool.name }} has no worker",
            f"Its last worker has not been heard of for more than {SILENCE}; nothing of this pool "
            "starts.\n{{ work_pool|ui_url or '' }}",
        ),
    )


def _tell(block: UUID, subject: str, body: str) -> list[ActionTypes]:
    return [SendNotification(block_document_id=block, subject=subject, body=body)]


def _absence(
    after: set[str],
    expect: set[str],
    within: dt.timedelta,
    match: dict[str, Any],
    match_related: dict[str, Any],
) -> EventTrigger:
    """One resource has sent the first, and within that time none of the others."""
    return EventTrigger(
        posture=Posture.Proactive,
        after=after,
        expect=expect,
        within=within,
        for_each={"prefect.resource.id"},
        match=ResourceSpecification(match),
        match_related=ResourceSpecification(match_related),
    )
