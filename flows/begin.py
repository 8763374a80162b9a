"""The beginning of a run: its month, its name, and the limit of restarts. Call it inside a flow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from uuid import UUID

from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowRunFilter
from prefect.client.schemas.sorting import FlowRunSort
from prefect.runtime import flow_run

from core.errors import OrchestrationError
from core.month import Period
from instruments.planning import last_period
from tasks.prefect.server import ask_server, run_log

MAX_CRASHES = 5  # number of crashes in a row after which a run is not begun again


def period_due(sources: list[str] | None) -> Period:
    """Return the last period of the sources at the scheduled start of this flow run (UTC)."""
    return last_period(sources, flow_run.scheduled_start_time)


def name_of_run() -> str:
    """Return this run's name: flow name and end of the id (the start of the id can be a time)."""
    return f"{flow_run.flow_name}-{str(flow_run.id)[-12:]}"


def begin_run(left_out: Sequence[str] = (), **pinned: str) -> str:
    """Return the name of this run, unless it keeps crashing; log the reasons in ``left_out``.

    ``pinned`` are parameters that would depend on the time. They are stored on the server, which
    starts another run with the same parameters if this run crashes.

    Raises:
        OrchestrationError: the server started this run after ``MAX_CRASHES`` crashes in a row.
    """
    for why in left_out:
        run_log().warning("left out: %s", why)
    ask_server(partial(_pin, pinned))
    crashes = ask_server(_count_crashes)
    if crashes >= MAX_CRASHES:
        raise OrchestrationError(
            f"this run has crashed {crashes} times, see its logs; start another one by hand, which "
            "finds what this one has done"
        )
    return name_of_run()


def _pin(pinned: Mapping[str, str], client: SyncPrefectClient) -> None:
    this = client.read_flow_run(UUID(flow_run.id))
    given = {**this.parameters, **pinned}
    if given != this.parameters:
        client.update_flow_run(this.id, parameters=given)


def _count_crashes(client: SyncPrefectClient) -> int:
    """Return the number of crashes in a row after which the server restarted this run."""
    this = client.read_flow_run(UUID(flow_run.id))
    if this.created_by is None or this.created_by.type != "AUTOMATION":
        return 0
    of = FlowRunFilter.model_validate({"deployment_id": {"any_": [str(this.deployment_id)]}})
    latest_first = FlowRunSort.EXPECTED_START_TIME_DESC
    number = 0
    for run in client.read_flow_runs(flow_run_filter=of, sort=latest_first):
        if run.id == this.id or run.parameters != this.parameters or run.state is None:
            continue
        if not run.state.is_crashed():
            break
        number += 1
    return number
