"""Commands `tidemark deploy`, `simulate` and `take-over`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from cli.terminal.console import out, until_signal
from cli.terminal.options import settings_for_tasks, settings_of
from core.errors import UsageError
from core.month import Month, month_range

if TYPE_CHECKING:
    from deployments.deploy import Deployed

YEAR = 12  # number of simulated months by default


def deploy_command(
    context: typer.Context,
    gpu_slots: Annotated[
        int | None,
        Option(
            min=1,
            help="Number of models scored at once on all GPU workers together. Default: the "
            "present limit of pool gpu; 1 if the pool is new.",
        ),
    ] = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print what would change, and change nothing.")
    ] = False,
    no_alarms: Annotated[
        bool, Option("--no-alarms", help="Remove alarms; TIDEMARK_NOTIFY_URL must not be set.")
    ] = False,
) -> None:
    """Create what tidemark needs on a Prefect server, or change it.

    These are pools, limits, deployments and automations.

    PREFECT_API_URL is the address of the server. A repeated deployment changes only what differs.
    Alarms are sent to TIDEMARK_NOTIFY_URL. Without this setting, existing alarms are kept.
    """
    from core.environment import prefect_server

    address = prefect_server()
    if address is None:
        raise UsageError(
            "tidemark deploy needs a Prefect server: start one (`prefect server start`) and set "
            "PREFECT_API_URL to its address, such as http://127.0.0.1:4200/api"
        )
    settings = settings_for_tasks(context, needs_server=True)
    from deployments.deploy import deploy
    from models.unloaded import ONLY_COMPRESSORS, scores_only_compressors

    if no_alarms and settings.notify_url:
        raise UsageError("--no-alarms removes alarms, but TIDEMARK_NOTIFY_URL is set: unset it")
    deployed = deploy(
        address,
        notify_url=settings.notify_url,
        gpu_slots=gpu_slots,
        dry_run=dry_run,
        keep_alarms=not no_alarms,
        period_sources=settings.period_sources,
    )
    _print(deployed, dry_run)
    if scores_only_compressors(settings):
        out.print(f"by this environment, {ONLY_COMPRESSORS}", soft_wrap=True)
    if not deployed.has_alarms:
        out.print(
            "no alarms: nobody is told when a run fails; set TIDEMARK_NOTIFY_URL to a webhook and "
            "deploy again",
            soft_wrap=True,
        )


def _print(deployed: Deployed, dry_run: bool) -> None:
    """Print the changes on the server, and the times of the next monthly runs."""
    if dry_run:
        out.print("dry run, nothing is changed; what `tidemark deploy` would do:")
    for change in deployed.changes:
        detail = f" ({change.detail})" if change.detail else ""
        out.print(f"{change.verb:10} {change.what}{detail}", soft_wrap=True)
    times = ", ".join(f"{time:%Y-%m-%d %H:%M}" for time in deployed.next_runs)
    out.print(f"next runs of monthly (UTC): {times or 'none; not deployed, or paused'}")


@contextmanager
def until_ctrl_c(where: str, options: str) -> Iterator[None]:
    """Wait for Ctrl-C or SIGTERM after the ``with`` block. Convert OSError to UsageError."""
    with until_signal():
        try:
            yield
        except OSError as error:
            raise UsageError(
                f"cannot listen on {where} ({error}); give {options} another"
            ) from error
        out.print("Ctrl-C ends it.")
        threading.Event().wait()


def simulate_command(
    seed: Annotated[int, Option(help="Seed of the simulated world.")] = 0,
    first: Annotated[str | None, Option("--from", help="First month.", metavar="YYYY-MM")] = None,
    last: Annotated[
        str | None, Option("--to", help="Last month, inclusive.", metavar="YYYY-MM")
    ] = None,
    port: Annotated[
        int,
        Option(
            min=0,
            max=65000,
            help="Port of the index page; the sites have the next ones. 0: any free ports.",
        ),
    ] = 8600,
) -> None:
    """Serve the simulated sites on loopback until Ctrl-C.

    `curl -X POST 'http://127.0.0.1:8600/faults?site=arxiv&fault=403&times=3'` adds a fault, and
    `POST /faults/clear` removes all faults. Default: the last twelve complete months.
    """
    from simulator import control
    from simulator.server import running, serve
    from simulator.world import World

    until = Month(last) if last else Month.last_complete()
    months = list(month_range(Month(first) if first else until - (YEAR - 1), until))
    title = f"A simulated web of {months[0]} to {months[-1]}, seed {seed}"
    with ExitStack() as sites, until_ctrl_c(f"port {port} and the next ones", "--port"):
        first_port = port and port + 1  # 0: any free ports
        web = sites.enter_context(serve(World(seed, months[0], months[-1]), first_port=first_port))
        url = sites.enter_context(running(control.Site(web, title), web, port=port))
        out.print(f"{title}: {url}/", soft_wrap=True)
        out.print("\n".join(control.exports(web)), soft_wrap=True)


def take_over_command(context: typer.Context) -> None:
    """Make this machine the only writer of the warehouse.

    Use this if the scratch folder of the former writer is lost. The new database begins as a copy
    of the published snapshot. The next `tidemark score` or `run` lands the missing cells.

    On the writer's own machine, a process that hangs while it holds the writer's lock is killed.
    """
    from warehouse.database.writer import take_over

    settings = settings_of(context)
    is_new = take_over(settings)
    what = "is written from here now" if is_new else "has been written from here before"
    out.print(f"the warehouse of {settings.home} {what}", soft_wrap=True)
