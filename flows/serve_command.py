"""`tidemark serve`: the report and the published snapshot over HTTP, read-only."""

from __future__ import annotations

from typing import Annotated

import typer

from flows.console import out
from flows.options import settings_of


def serve_command(
    context: typer.Context,
    host: Annotated[
        str, typer.Option(help="Address to listen on; 0.0.0.0: all.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8080,
) -> None:
    """Serve the report page and warehouse.duckdb to read, until Ctrl-C.

    It knows neither passwords nor TLS: a reverse proxy does, see docs/operate.md.
    """
    from reports.server import run_server

    settings = settings_of(context)
    out.print(f"{settings.home}: http://{host}:{port}/", soft_wrap=True)
    run_server(settings, host, port)
