"""`tidemark simulate`: the simulated web, for a person to click through."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer

from core.errors import UsageError
from core.month import Month, month_range
from flows.console import out

YEAR = 12  # months that are served where none are given


def simulate_command(
    seed: Annotated[int, typer.Option(help="Seed of the simulated world.")] = 0,
    first: Annotated[
        str | None, typer.Option("--from", help="First month.", metavar="YYYY-MM")
    ] = None,
    last: Annotated[
        str | None, typer.Option("--to", help="Last month, included.", metavar="YYYY-MM")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of the page that names all sites; 0: any.")
    ] = 8600,
) -> None:
    """Serve the simulated sites on loopback until Ctrl-C, with faults to switch on and off.

    Open the page that is printed. Default: the twelve months up to the last complete one.
    """
    from simulator import front_page
    from simulator.server import running, serve
    from simulator.world import World

    until = Month(last) if last else Month.last_complete()
    months = list(month_range(Month(first) if first else until - (YEAR - 1), until))
    title = f"A simulated web of {months[0]} to {months[-1]}, seed {seed}"
    for end in (signal.SIGINT, signal.SIGTERM):  # a shell's background jobs ignore the first
        signal.signal(end, signal.default_int_handler)
    with serve(World(seed, months[0], months[-1])) as web:
        try:
            with running(front_page.Site(web, title), web, port=port) as url:
                out.print(f"{title}: {url}/", soft_wrap=True)
                out.print("\n".join(front_page.exports(web)), soft_wrap=True)
                out.print("Ctrl-C ends it.")
                threading.Event().wait()
        except OSError as error:
            raise UsageError(f"port {port} cannot be had ({error}); give --port another") from error
        except KeyboardInterrupt:
            out.print("ended")
