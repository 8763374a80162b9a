"""Command `import changelogs`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from cli.imports import Replace, SourceName, import_files
from core.month import Month


def import_changelogs_command(
    context: Context,
    folder: Annotated[
        Path, Argument(help="A folder with files changelog*, packed or not: /usr/share/doc.")
    ],
    source: SourceName = "debian_changelogs",
    first: Annotated[
        str, Option("--from", help="Leave out earlier entries.", metavar="YYYY-MM")
    ] = "1998-01",
    replace: Replace = False,
) -> None:
    """Import the entries of Debian's changelogs, each with the month of its date.

    Any machine with Debian or its descendants has some in /usr/share/doc. They are for local use:
    exports leave them out. Entries that several packages share count once a month. Entries that
    cannot be read are counted.
    """
    from extras.debian_changelogs.changelogs import options_for_changelogs

    options = options_for_changelogs(Month(first), replace)
    import_files(context, [str(folder)], source, lambda _: options)


COMMANDS = {"Collect text": {"import changelogs": import_changelogs_command}}
