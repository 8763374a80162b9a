"""Command `release`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cli.terminal.console import out, progress_bars
from cli.terminal.options import settings_of
from core.month import Month


def release_command(
    context: typer.Context,
    month: Annotated[str, Argument(help="Last month of the release.", metavar="YYYY-MM")],
    output: Annotated[
        Path | None, Option(help="A new folder. Default: releases/YYYY-MM of the data root.")
    ] = None,
) -> None:
    """Copy the snapshot, up to a month, as a citable release.

    All checks of `tidemark check --deep` run first. A release is never overwritten.
    """
    from extras.releases.release import make_release

    settings = settings_of(context)
    with progress_bars():
        address = make_release(settings, Month(month), output)
    out.print(f"{address}: verify it with `sha256sum -c SHA256SUMS`", soft_wrap=True)


COMMANDS = {"Trust": {"release": release_command}}
