"""`tidemark check`, `release` and `reproduce`: whether figures can be trusted, cited, repeated."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.month import Month
from core.storage import Store
from flows.console import out, print_table, progress_bars, visible
from flows.options import settings_for_tasks, settings_of

if TYPE_CHECKING:  # torch takes seconds to import
    from flows.reproduction import Reproduction
    from warehouse.check import Finding


def check_command(
    context: typer.Context,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Read every chunk, and all of corpus/ and losses/, too."),
    ] = False,
) -> None:
    """Check that what is published is sound, and say what is wrong; nothing is changed.

    Exits with 1 where something was found.
    """
    from warehouse.check_root import check_home
    from warehouse.query import local_snapshot

    settings = settings_of(context)
    with local_snapshot(settings) as path, progress_bars():
        findings = list(check_home(path, Store(settings.home), deep))
    for finding in findings:
        _print_finding(finding)
    if findings:
        raise typer.Exit(1)
    out.print("sound" if deep else "sound, as far as quick checks tell; --deep reads everything")


def _print_finding(finding: Finding) -> None:
    from warehouse.statements import show

    num = "1 row" if finding.num_rows == 1 else f"{finding.num_rows:,} rows"
    out.print(f"{finding.check}: {num}")
    lines = [finding.meaning, *map(show, finding.rows)]
    if finding.num_rows > len(finding.rows):
        lines.append(f"… and {finding.num_rows - len(finding.rows):,} more")
    for line in [*lines, f"What to do: {finding.remedy}"]:
        out.print(visible(f"    {line}").replace("\n", " "), soft_wrap=True)


def release_command(
    context: typer.Context,
    month: Annotated[str, typer.Argument(help="The last month in it.", metavar="YYYY-MM")],
    output: Annotated[
        Path | None,
        typer.Option(help="A new folder, instead of releases/YYYY-MM of the data root."),
    ] = None,
) -> None:
    """Freeze what is published, up to a month, so that it can be cited and verified.

    Everything is checked first, as by `tidemark check --deep`. A release is never written over.
    """
    from warehouse.release import make_release

    settings = settings_of(context)
    with progress_bars():
        address = make_release(settings, Month(month), output)
    out.print(visible(f"{address}: verify it with `sha256sum -c SHA256SUMS`"), soft_wrap=True)


def reproduce_command(
    context: typer.Context,
    cell: Annotated[
        str,
        typer.Argument(
            help="MODEL/SOURCE/YYYY-MM/PROTOCOL, or undated for the month.", metavar="CELL"
        ),
    ],
    release: Annotated[
        str | None,
        typer.Option(
            help="Compare with a release of the data root, or of a folder. Default: with what is "
            "published.",
            metavar="YYYY-MM|FOLDER",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Where the model is now, if its name does not say."),
    ] = None,
) -> None:
    """Score one cell again, and compare it with its landed losses; nothing is changed.

    The text and the model have to be those that were scored. Exits with 1 where the cell's nats, or
    those of a chunk, are off by more than 1e-6 of the cell's.
    """
    settings = settings_for_tasks(context)
    from flows.reproduction import reproduce

    found = reproduce(settings, cell, release, model)
    _print_comparison(cell, found)
    if not found.is_reproduced:
        raise typer.Exit(1)


def _print_comparison(cell: str, found: Reproduction) -> None:
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
