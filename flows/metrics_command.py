"""`tidemark metrics`: figures about the data root, for Prometheus to fetch."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer

from core.errors import UsageError
from flows.console import out
from flows.options import settings_of


def metrics_command(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 9464,
    host: Annotated[
        str, typer.Option(help="Address to listen on; others than this machine's are asked for.")
    ] = "127.0.0.1",
) -> None:
    """Serve figures about the data root for Prometheus, read-only, until Ctrl-C.

    Partitions, cells, claims, runs and the age of what is published, from files alone: what runs
    need not be asked. docs/operate.md names all metrics, with alerts.
    """
    from prometheus_client import CollectorRegistry, start_http_server

    from reports.metrics import DataRoot

    registry = CollectorRegistry()
    registry.register(DataRoot(settings_of(context)))
    for end in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore the first
        signal.signal(end, signal.default_int_handler)
    try:
        server, _ = start_http_server(port, addr=host, registry=registry)
        out.print(f"http://{host}:{server.server_port}/metrics", soft_wrap=True)
        out.print("Ctrl-C ends it.")
        threading.Event().wait()
    except OSError as error:
        raise UsageError(
            f"{host}:{port} cannot be had ({error}); give --host or --port another"
        ) from error
    except KeyboardInterrupt:
        out.print("ended")
