"""What tests need of a Prefect server to run monthly runs on it: pools, deployments, automations.

By the API and not by `tidemark deploy`, so that a test can leave one of them out.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.events import AutomationCore, EventTrigger, Posture, ResourceSpecification
from prefect.events.actions import RunDeployment
from prefect.exceptions import ObjectAlreadyExists
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.backfill import backfill
from flows.crawl import crawl
from flows.monthly import monthly
from flows.report import report
from flows.score import score

from ..servers import PrefectServer

ROOT = Path(__file__).resolve().parents[2]
FLOWS = {"monthly": monthly, "backfill": backfill, "crawl": crawl, "score": score, "report": report}


@contextmanager
def api(server: PrefectServer) -> Iterator[SyncPrefectClient]:
    """Let this process talk to the server, and not to one of its own."""
    with (
        temporary_settings({PREFECT_API_URL: server.url}),
        get_client(sync_client=True) as client,
    ):
        yield client


def make_deployments(client: SyncPrefectClient, sources: list[str]) -> None:
    """Make the pools, and the deployments of all stages."""
    for pool in ("crawl", "gpu"):
        with suppress(ObjectAlreadyExists):
            client.create_work_pool(WorkPoolCreate(name=pool, type="process"))
    names = {
        "monthly": ["monthly"], "backfill": ["backfill"], "score": ["score"],
        "report": ["report"], "crawl": sources,
    }  # fmt: skip
    step = {"prefect.deployments.steps.set_working_directory": {"directory": str(ROOT)}}
    for flow, deployments in names.items():
        flow_id = client.create_flow(FLOWS[flow])
        for name in deployments:
            client.create_deployment(
                flow_id,
                name,
                entrypoint=f"flows/{flow}.py:{flow}",
                work_pool_name="gpu" if flow == "score" else "crawl",
                pull_steps=[step],
                parameter_openapi_schema={"type": "object", "properties": {}},
                enforce_parameter_schema=False,
            )


def chain(client: SyncPrefectClient, event: str, deployment: str, *given: str) -> None:
    """Let an event start a deployment with some fields of its payload."""
    parameters: dict[str, Any] = {
        name: {"__prefect_kind": "jinja", "template": "{{ event.payload." + name + " }}"}
        for name in given
    }
    client.create_automation(
        AutomationCore(
            name=f"test {event}",
            trigger=EventTrigger(
                expect={event},
                match=ResourceSpecification({"prefect.resource.id": "tidemark.run.*"}),
                posture=Posture.Reactive,
                threshold=1,
            ),
            actions=[
                RunDeployment(
                    deployment_id=client.read_deployment_by_name(deployment).id,
                    parameters=parameters,
                )
            ],
        )
    )
