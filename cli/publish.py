"""Command `tidemark publish`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from cli.terminal.console import out, progress_bars
from cli.terminal.options import settings_for_tasks
from core.errors import UsageError, did_you_mean
from core.plugins import import_parts

if TYPE_CHECKING:
    from core.settings import Settings

    # A function that copies the published snapshot to a place. It returns False if the place has
    # this copy already.
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

    Extras define the kinds: ``KINDS`` in their ``publications.py`` maps a kind to a function.

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
