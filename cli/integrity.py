"""Command `check`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from cli.terminal.console import out, progress_bars
from cli.terminal.options import settings_of
from core.errors import UsageError
from core.progress import counted
from core.storage.store import Store

if TYPE_CHECKING:  # importing torch takes seconds
    from warehouse.read.findings import Finding


check_app = typer.Typer(invoke_without_command=True)
_QUICK = "sound, as far as quick checks tell; --deep reads everything"


@check_app.callback()
def check_command(
    context: typer.Context,
    deep: Annotated[
        bool, Option("--deep", help="Also read every chunk, and all sealed and computed files.")
    ] = False,
) -> None:
    """Check the published snapshot, or what a command below names.

    Faults are listed, and nothing is changed. The exit code is 1 if there is a fault.
    """
    if context.invoked_subcommand is not None:
        if deep:
            raise UsageError(f"give --deep after `check`, without {context.invoked_subcommand}")
        return
    from warehouse.read.check import check_home, check_writer
    from warehouse.read.query import local_snapshot

    settings = settings_of(context)
    with local_snapshot(settings) as path, progress_bars():
        findings = list(check_home(path, Store(settings.home), deep, settings))
        findings += check_writer(settings, deep)
    _report(findings, "sound" if deep else _QUICK)


@check_app.command("warehouse")
def check_warehouse_command(context: typer.Context) -> None:
    """Check every row of the published snapshot, without reading other files."""
    from warehouse.read.check import check_database
    from warehouse.read.query import local_snapshot

    settings = settings_of(context)
    with local_snapshot(settings) as path, progress_bars():
        findings = list(check_database(path, is_deep=True, settings=settings))
    _report(findings, "sound")


@check_app.command("corpus")
def check_corpus_command(context: typer.Context) -> None:
    """Check that sealed files are as sealed, and removed documents are gone."""
    from warehouse.read.check import check_corpus

    settings = settings_of(context)
    with progress_bars():
        findings = list(check_corpus(Store(settings.home)))
    _report(findings, "sound")


def _report(findings: list[Finding], if_sound: str) -> None:
    """Print the findings and exit with code 1, or print ``if_sound`` if there are none."""
    for finding in findings:
        _print_finding(finding)
    if findings:
        raise typer.Exit(1)
    out.print(if_sound)


def _print_finding(finding: Finding) -> None:
    """Print a failed check: its meaning, the first faulty rows, and the remedy."""
    from warehouse.database.statements import show

    num = counted(finding.num_rows, "row")
    out.print(f"{finding.check}: {num}")
    lines = [finding.meaning, *map(show, finding.rows)]
    if finding.num_rows > len(finding.rows):
        lines.append(f"… and {finding.num_rows - len(finding.rows):,} more")
    for line in [*lines, f"What to do: {finding.remedy}"]:
        out.print(f"    {line}".replace("\n", " "), soft_wrap=True)
