"""Command `check cell`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from cli.terminal.console import out, print_table
from cli.terminal.options import settings_for_tasks

if TYPE_CHECKING:  # importing torch takes seconds
    from extras.reproduction.reproduction import Reproduction


def reproduce_command(
    context: typer.Context,
    cell: Annotated[
        str,
        Argument(help="MODEL/SOURCE/MONTH/PROTOCOL; MONTH: YYYY-MM or undated.", metavar="CELL"),
    ],
    release: Annotated[
        str | None,
        Option(
            help="Release to compare with: a month, or a folder. Default: compare with the "
            "published snapshot.",
            metavar="YYYY-MM|FOLDER",
        ),
    ] = None,
    model: Annotated[
        str | None,
        Option("--model", "-m", help="Present name or folder of the model, if it has moved."),
    ] = None,
) -> None:
    """Score one cell again, and compare the losses with those landed.

    Nothing is changed. Text and model must be unchanged. The exit code is 1 if the loss of the
    cell, or of a chunk, differs by more than 1e-6 of the cell's loss.
    """
    settings = settings_for_tasks(context)
    from extras.reproduction.reproduction import reproduce

    found = reproduce(settings, cell, release, model)
    _print_comparison(cell, found)
    if not found.is_reproduced:
        raise typer.Exit(1)


def _print_comparison(cell: str, found: Reproduction) -> None:
    """Print landed and new losses beside each other, and whether they are equal."""
    rows = [
        ("nats", repr(found.landed_nats), repr(found.rescored_nats)),
        *(
            (name, found.then.get(name), found.now.get(name))
            for name in dict.fromkeys([*found.then, *found.now])
        ),
    ]
    print_table(cell, ["", "landed", "now"], rows)
    out.print(f"relative difference       {found.relative_difference:.1e}")
    out.print(f"largest chunk difference  {found.largest_chunk_nats:.1e} nats")
    out.print(f"chunks                    {found.num_chunks:,}")
    if found.num_unmatched:
        out.print(f"chunks that do not match  {found.num_unmatched:,}")
    if not found.is_same_scoring:
        out.print("scored otherwise now: the protocol, the dtype or tidemark's code has changed")
    out.print("reproduced" if found.is_reproduced else "NOT reproduced")


COMMANDS = {"Trust": {"check cell": reproduce_command}}
FORMER = {"reproduce": "check cell"}
