"""Command `tidemark publish`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from cli.terminal.console import out, progress_bars
from cli.terminal.options import settings_for_tasks


def publish_command(
    context: typer.Context,
    to: Annotated[
        list[str] | None,
        Option(
            "--to",
            help="Copy the snapshot to parquet:FOLDER, or to ducklake:CATALOGUE "
            "data_path=FOLDER; repeat for several.",
            metavar="KIND:PLACE",
        ),
    ] = None,
    shrink: Annotated[
        bool,
        Option(
            "--shrink",
            help="Publish even if more than half of the losses, models or months are missing.",
        ),
    ] = False,
) -> None:
    """Publish what has landed; copy the snapshot for other machines and other engines.

    Readers have the former snapshot or copy until the new one is complete. A copy that failed or
    was killed is made by the same command again.
    """
    from warehouse.read.publish import publish
    from warehouse.read.targets import copy_snapshot, find_target

    settings = settings_for_tasks(context)
    targets = to or []
    for target in targets:
        find_target(target)  # fails early if a kind is misspelt
    out.print(publish(settings, shrink), soft_wrap=True)
    for target in targets:
        with progress_bars():
            is_new = copy_snapshot(settings, target)
        kind = target.partition(":")[0]
        state = "copied" if is_new else "has this snapshot already"
        out.print(f"{kind}: {state}", soft_wrap=True)
