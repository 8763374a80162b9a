"""Commands `sources record` and `sources check`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from cli.terminal.console import do_each, fail_with, out
from cli.terminal.options import settings_of
from core.errors import UsageError
from core.periods import parse_period
from core.storage.store import Store


def record_command(
    context: typer.Context,
    source: Annotated[str, Argument(help="Name of a source of texts or of questions.")],
    month: Annotated[str, Argument(help="Month to crawl.", metavar="YYYY-MM")],
    folder: Annotated[Path, Option("--out", help="New or empty folder.", metavar="FOLDER")],
    limit: Annotated[int, Option(min=1, help="Ask for about this many documents.")] = 3,
) -> None:
    """Record the responses of a source's sites, for a bug report.

    A small crawl asks for them. Tokens, cookies, secret parameters and TIDEMARK_CONTACT are left
    out. Nothing is sealed. If the crawl fails, the recording shows how. README.txt in the folder
    says what it holds.
    """
    from extras.recording.recording import record

    settings = settings_of(context)
    store = Store(settings.home, settings.scratch)
    found = record(source, parse_period(month), folder, store, settings, limit)
    out.print(f"{folder}: {found}", soft_wrap=True)


def check_command(
    context: typer.Context,
    recordings: Annotated[
        Path, Option(help="A recording, or a folder of recordings.", metavar="FOLDER")
    ],
    live: Annotated[bool, Option("--live", help="Required: the real sites are asked.")] = False,
) -> None:
    """Compare the shapes of live responses with recordings, by one request a source.

    The first request of each recording is repeated. Fields that are missing, new or of another type
    are printed. Exit code 1 if a field is missing or of another type.
    """
    from extras.recording.recording import INDEX_FILE, compare_live

    if not live:
        raise UsageError("the check asks the real sites; if that is meant, add --live")
    folders = sorted(path.parent for path in recordings.glob(f"**/{INDEX_FILE}"))
    if not folders:
        raise UsageError(f"{recordings} has no recording; make one with `tidemark sources record`")
    settings = settings_of(context)
    failures = []

    def check(folder: Path) -> None:
        found = compare_live(folder, Store(settings.home, settings.scratch), settings)
        for each in found:
            out.print(str(each), soft_wrap=True)
        faults = sum(each.is_fault for each in found)
        if faults:
            failures.append(f"{folder}: {faults} fields are missing or of another type")
        elif not found:
            out.print(f"{folder}: as recorded", soft_wrap=True)

    failures += do_each("check", {str(each): partial(check, each) for each in folders})
    fail_with(failures)


COMMANDS = {"Collect text": {"sources record": record_command, "sources check": check_command}}
FORMER = {"record": "sources record"}
