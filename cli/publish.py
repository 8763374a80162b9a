"""Commands `tidemark publish` and `rebuild`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from cli.terminal.console import fail_with, out, progress_bars
from cli.terminal.options import settings_for_tasks
from core.errors import UsageError, did_you_mean
from core.plugins import import_parts

if TYPE_CHECKING:
    from core.settings import Settings

    # A function copies the published snapshot to a place; it returns False if the copy is there.
    Copy = Callable[[Settings, str], bool]


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
    """Publish what has landed; copy it for other engines.

    Readers have the former snapshot or copy until the new one is complete. A copy that failed or
    was killed is made by the same command again.
    """
    from warehouse.read.publish import publish

    settings = settings_for_tasks(context)
    targets = [(target, *find_target(target)) for target in to or []]
    out.print(publish(settings, shrink), soft_wrap=True)
    for target, copy, place in targets:
        with progress_bars():
            is_new = copy(settings, place)
        kind = target.partition(":")[0]
        state = "copied" if is_new else "has this snapshot already"
        out.print(f"{kind}: {state}", soft_wrap=True)


def find_target(target: str) -> tuple[Copy, str]:
    """Return the function and the place of a target, which is written ``KIND:PLACE``.

    Extras have the kinds: ``KINDS`` of ``publications.py`` maps a kind to a function.

    Raises:
        UsageError: the target has no place, or no extra knows its kind.
    """
    kind, _, place = target.partition(":")
    kinds: dict[str, Copy] = {}
    for part in import_parts("publications"):
        kinds |= part.KINDS
    if kind not in kinds or not place:
        known = ", ".join(f"{name}:…" for name in sorted(kinds))
        raise UsageError(
            f"cannot publish to {kind}:…; {did_you_mean(kind, kinds)}"
            f"expected one of: {known or 'none'}"
        )
    return kinds[kind], place


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
    from instruments.rebuild import plan_rebuild, rebuild
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
