"""Command `tidemark rebuild`."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Option

from cli.terminal.console import fail_with, out, progress_bars
from cli.terminal.options import settings_for_tasks


def rebuild_command(
    context: typer.Context,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print what would land, the space and the time; end.")
    ] = False,
    partial: Annotated[
        bool,
        Option("--partial", help="Replace the warehouse even if some cells could not land."),
    ] = False,
) -> None:
    """Make the warehouse again from the cells, and publish.

    A new database is made beside the old one, and replaces it when it is complete. Rows that came
    from other people's files are copied from the old one, or from the published snapshot if the old
    one is damaged; then the old one is kept as writer.duckdb.kept-1. Landing waits meanwhile.
    """
    settings = settings_for_tasks(context)
    from core.errors import DiskFull
    from core.progress import counted
    from extras.repair.rebuild import plan_rebuild, rebuild
    from warehouse.read.publish import publish

    with progress_bars():
        plan = plan_rebuild(settings)
    cells = plan.cells
    num_cells = len(cells.losses) + len(cells.answers) + len(cells.puzzles)
    out.print(
        f"{counted(num_cells, 'cell')} of {counted(len(cells.models), 'model')}: about "
        f"{plan.seconds / 60:,.0f} minutes and {plan.num_bytes / 2**20:,.0f} MiB, of "
        f"{plan.num_free_bytes / 2**20:,.0f} MiB free",
        soft_wrap=True,
    )
    if dry_run:
        fail_with(cells.problems)
        return
    if plan.num_bytes > plan.num_free_bytes:
        raise DiskFull(
            f"too little space in {settings.scratch}; free some, or set TIDEMARK_WORK_DIR"
        )
    with progress_bars():
        rebuilt = rebuild(settings, plan, partial)
    out.print(f"{counted(rebuilt.num_cells, 'cell')} landed")
    for note in rebuilt.notes:
        out.print(note, soft_wrap=True)
    if rebuilt.is_replaced:
        out.print(publish(settings), soft_wrap=True)
    else:
        out.print(
            "the old warehouse stays; repair what is listed, or run `tidemark rebuild --partial`",
            soft_wrap=True,
        )
    fail_with(list(rebuilt.problems))


COMMANDS = {"Operate": {"rebuild": rebuild_command}}
