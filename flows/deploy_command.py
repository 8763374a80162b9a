"""`tidemark deploy`: a Prefect server gets pools, limits, deployments and automations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from core.errors import UsageError
from core.settings import prefect_server
from flows.console import out, visible
from flows.options import settings_for_tasks

if TYPE_CHECKING:  # it imports Prefect, which takes seconds
    from flows.deploy import Deployed


def deploy_command(
    context: typer.Context,
    gpu_slots: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many models are scored at a time, on all GPU workers together. Default: "
            "what the pool gpu has; 1 where it is new.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print what would change, and change nothing.")
    ] = False,
) -> None:
    """Make the pools, limits, deployments and automations of tidemark on a Prefect server.

    PREFECT_API_URL says where it is. Deploying again changes what differs, and nothing else.
    Alarms go to TIDEMARK_NOTIFY_URL.
    """
    address = prefect_server()
    if address is None:
        raise UsageError(
            "tidemark deploy needs a Prefect server: start one (`prefect server start`) and set "
            "PREFECT_API_URL to its address, such as http://127.0.0.1:4200/api"
        )
    settings = settings_for_tasks(context)
    from flows.deploy import deploy

    _print(deploy(address, settings.notify_url, gpu_slots, dry_run), dry_run)
    if settings.notify_url is None:
        out.print(
            "no alarms: nobody is told when a run fails; set TIDEMARK_NOTIFY_URL to a webhook and "
            "deploy again",
            soft_wrap=True,
        )


def _print(deployed: Deployed, dry_run: bool) -> None:
    if dry_run:
        out.print("dry run, nothing is changed; what `tidemark deploy` would do:")
    for change in deployed.changes:
        detail = f" ({change.detail})" if change.detail else ""
        out.print(visible(f"{change.verb:10} {change.what}{detail}"), soft_wrap=True)
    times = ", ".join(f"{time:%Y-%m-%d %H:%M}" for time in deployed.next_runs)
    out.print(f"next runs of monthly (UTC): {times or 'none; not deployed, or paused'}")
