"""The main module of the command line. Exit codes: 0 for success, 1 failure, 2 wrong usage."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer
from typer import Option
from typer.core import TyperGroup

from cli import (
    corpus,
    doctor,
    forecast,
    imports,
    integrity,
    losses,
    models,
    operations,
    publish,
    query,
    run,
    sources,
    status,
    worker,
)
from cli.terminal.console import err, escape_log, out
from cli.terminal.registry import Commands, add_commands, list_tables
from core.errors import TidemarkError, UsageError
from core.plugins import import_parts

import_app = typer.Typer(no_args_is_help=True, help="Import files as sealed partitions.")
land_app = typer.Typer(no_args_is_help=True, help="Land results that were computed elsewhere.")

_COMMANDS: Commands = {
    "Start": {"doctor": doctor.doctor_command},
    "Collect text": {
        "crawl": sources.crawl_command,
        "import": import_app,
        "import texts": imports.import_texts_command,
        "import html": imports.import_html_command,
        "simulate": operations.simulate_command,
        "sources": sources.sources_app,
        "corpus": corpus.corpus_app,
    },
    "Score models": {
        "run": run.run_command,
        "backfill": run.backfill_command,
        "score": losses.score_command,
        "land": land_app,
        "land losses": losses.land_command,
        "models": models.models_app,
        "protocols": losses.protocols_app,
    },
    "Other instruments": {"forecast": forecast.forecast_app},
    "Ask": {
        "sql": query.sql_command,
        "shell": query.shell_command,
        "report": query.report_command,
        "export": query.export_app,
    },
    "Operate": {
        "status": status.status_command,
        "deploy": operations.deploy_command,
        "worker": worker.worker_command,
        "publish": publish.publish_command,
        "take-over": operations.take_over_command,
    },
    "Trust": {"check": integrity.check_app, "check numerics": losses.canary_command},
}


class _ByPanel(TyperGroup):
    """A group that sorts its commands by the panels of ``_COMMANDS``; other panels come last."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, sorted for the help."""
        panels = list(_COMMANDS)

        def place(name: str) -> int:
            panel = getattr(self.commands[name], "rich_help_panel", None)
            return panels.index(panel) if panel in panels else len(panels)

        # The demo is what a new user runs first.
        names = super().list_commands(ctx)
        return sorted(names, key=lambda name: (place(name), name != "demo"))


app = typer.Typer(
    cls=_ByPanel,
    help="How well do language models predict text that was written after they were trained?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from core.version import own_version

        out.print(own_version())
        raise typer.Exit


@app.callback(invoke_without_command=False)
def options(
    context: typer.Context,
    home: Annotated[
        str | None,
        Option(help="Data root, instead of TIDEMARK_HOME: a folder or s3://…", metavar="ROOT"),
    ] = None,
    version: Annotated[
        bool, Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Read the settings once, and pass them to the command through its context."""
    from core.settings import load_settings

    context.obj = load_settings(home=home)


add_commands(app, _COMMANDS)
for _table in list_tables():
    add_commands(app, _table)


def main() -> None:
    """Run the command line; print an error of tidemark as one line, and exit with its code."""
    escape_log()
    arguments = sys.argv[1:]
    for part in import_parts("spellings"):
        line = part.respell(arguments)
        arguments = line.arguments
        for note in line.notes:
            err.print(note, soft_wrap=True)
    try:
        app(args=arguments)
    except TidemarkError as error:
        err.print(f"error: {error}", soft_wrap=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        # The pipe's reader (such as head) has ended. Else Python would report an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
