"""Command `forecast import`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from cli.forecast import print_seals
from cli.terminal.options import settings_for_tasks


def import_command(
    context: Context,
    path: Annotated[Path, Argument(help="A file, or a folder of related files.")],
    source: Annotated[str, Option(help="Name of the source to import as.", metavar="NAME")],
    replace: Annotated[
        bool, Option("--replace", help="Replace sealed questions that differ.")
    ] = False,
) -> None:
    """Import published questions: FreshBench's gjo.json, or ForecastBench's question sets.

    Each question is stored under the month of its resolution. If a file is malformed, the command
    fails and writes nothing.
    """
    from core.storage.store import Store
    from extras.question_files.importing import import_questions

    settings = settings_for_tasks(context)
    store = Store(settings.home, settings.scratch)
    print_seals(import_questions(path, source, store, replace))


COMMANDS = {"Other instruments": {"forecast import": import_command}}
