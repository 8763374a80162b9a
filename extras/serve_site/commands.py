"""Command `serve`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from cli.terminal.console import out
from cli.terminal.options import settings_of


def serve_command(
    context: typer.Context,
    host: Annotated[
        str, Option(help="Address to listen on; 0.0.0.0: all.", metavar="ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=1, max=65535, help="Port to listen on.")] = 8080,
    names: Annotated[
        list[str] | None,
        Option(
            "--name",
            help="Host name in the addresses of clients, such as that of a proxy; repeat for "
            "several. localhost and the name in TIDEMARK_REPORT_URL are always known.",
        ),
    ] = None,
) -> None:
    """Serve the site and the snapshot, read-only, until Ctrl-C.

    The server has no passwords and no TLS: put a reverse proxy before it, see docs/operate.md.
    Requests for other names are refused, because a foreign page may name this machine as it likes.
    """
    from extras.serve_site.server import run_server

    settings = settings_of(context)
    out.print(f"{settings.home}: http://{host}:{port}/", soft_wrap=True)
    run_server(settings, host, port, names or ())


COMMANDS = {"Operate": {"serve": serve_command}}
