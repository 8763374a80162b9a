"""Command `metrics`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from cli.operations import until_ctrl_c
from cli.terminal.console import out
from cli.terminal.options import settings_of


def metrics_command(
    context: typer.Context,
    port: Annotated[int, Option(min=0, max=65535, help="0: any free port.")] = 9464,
    host: Annotated[
        str, Option(help="Address to listen on; 0.0.0.0: all.", metavar="ADDRESS")
    ] = "127.0.0.1",
) -> None:
    """Serve metrics of the data root for Prometheus, until Ctrl-C.

    The metrics (partitions, cells, claims, runs, age of the snapshot) are computed from files of
    the data root. docs/monitoring.md lists all metrics, with alerts.
    """
    from prometheus_client import CollectorRegistry, start_http_server

    from extras.metrics.collecting import DataRoot

    registry = CollectorRegistry()
    registry.register(DataRoot(settings_of(context)))
    with until_ctrl_c(f"{host}:{port}", "--host or --port"):
        server, _ = start_http_server(port, addr=host, registry=registry)
        out.print(f"http://{host}:{server.server_port}/metrics", soft_wrap=True)


COMMANDS = {"Operate": {"metrics": metrics_command}}
