"""Events that tell a Prefect server what has happened, for its automations (docs/adr/0020).

Where no server is configured, nothing is sent. An event may get lost all the same: nothing that
has to happen may depend on one alone.
"""

from __future__ import annotations

import logging
from typing import Any

import httpx
from prefect.client.orchestration import get_client
from prefect.context import FlowRunContext
from prefect.events import Event, RelatedResource, Resource

from core.corpus import Partition
from core.settings import prefect_server

SCORE_DUE = "tidemark.score.due"
REPORT_DUE = "tidemark.report.due"
SEALED = "tidemark.partition.sealed"
GIVEN_UP = "tidemark.partition.given-up"
LANDED = "tidemark.model.landed"

_log = logging.getLogger(__name__)


def emit(event: str, resource: str, **payload: Any) -> None:
    """Send an event, and return when the server has it; one that cannot be sent is logged.

    Not by ``prefect.events.emit_event``, whose thread may be cut off by the end of the process.

    Args:
        event: its name.
        resource: id of what it is about.
        payload: facts that automations may use.
    """
    if prefect_server() is None:
        return
    message = Event(
        event=event,
        resource=Resource({"prefect.resource.id": resource}),
        related=_this_flow_run(),
        payload=payload,
    )
    try:
        with get_client(sync_client=True) as client:
            client.request("POST", "/events", json=[message.model_dump(mode="json")])
    except (httpx.HTTPError, RuntimeError) as error:  # RuntimeError: the client's first question
        _log.warning("the event %s of %s is lost: %s", event, resource, error)


def emit_score_due(run: str, model: str) -> None:
    """Say that all of a run is crawled that will be, and that a model can be scored."""
    emit(SCORE_DUE, resource_of_run(run), run=run, model=model)


def emit_report_due(run: str) -> None:
    """Say that the last model of a run has landed, or has been given up."""
    emit(REPORT_DUE, resource_of_run(run), run=run)


def emit_sealed(partition: Partition, num_documents: int, lacks: str | None) -> None:
    """Say that a partition has been sealed; ``lacks`` says of which items, if any."""
    facts = {"source": partition.source, "month": str(partition.month)}
    emit(SEALED, _resource_of(partition), **facts, documents=num_documents, lacks=lacks)


def emit_given_up(partition: Partition, why: str) -> None:
    """Say that nothing could be sealed of a partition."""
    facts = {"source": partition.source, "month": str(partition.month)}
    emit(GIVEN_UP, _resource_of(partition), **facts, why=why)


def emit_landed(model: str, cells: int, holes: int) -> None:
    """Say that a model's cells have landed: how many, and what could not."""
    emit(LANDED, f"tidemark.model.{model}", model=model, cells=cells, holes=holes)


def resource_of_run(run: str) -> str:
    """Return the id of a run as a resource."""
    return f"tidemark.run.{run}"


def _resource_of(partition: Partition) -> str:
    return f"tidemark.partition.{partition.source}.{partition.month}"


def _this_flow_run() -> list[RelatedResource]:
    context = FlowRunContext.get()
    if context is None or context.flow_run is None:
        return []
    key = f"prefect.flow-run.{context.flow_run.id}"
    return [RelatedResource({"prefect.resource.id": key, "prefect.resource.role": "flow-run"})]
