"""The main module of the command line. Exit codes: 0 for success, 1 failure, 2 wrong usage."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer import Option

from cli import (
    clean,
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
    scylla,
    sources,
    status,
    worker,
)
from cli.terminal.console import err, escape_log, out
from core.errors import TidemarkError, UsageError


def version_command() -> None:
    """Print the version of tidemark."""
    from importlib.metadata import version

    out.print(version("tidemark"))


_PANELS: dict[str, dict[str, Callable[..., None] | typer.Typer]] = {
    "Start": {
        "demo": run.demo_command,
        "doctor": doctor.doctor_command,
        "version": version_command,
    },
    "Collect text": {
        "crawl": sources.crawl_command,
        "record": sources.record_command,
        "import-html": imports.import_html_command,
        "import-texts": imports.import_texts_command,
        "import-set": imports.import_set_command,
        "import-media": imports.import_media_command,
        "compare-texts": corpus.compare_texts_command,
        "clean": clean.clean_command,
        "simulate": operations.simulate_command,
        "sources": sources.sources_app,
        "corpus": corpus.corpus_app,
    },
    "Score models": {
        "run": run.run_command,
        "backfill": run.backfill_command,
        "score": losses.score_command,
        "land": losses.land_command,
        "models": models.models_app,
        "protocols": losses.protocols_app,
    },
    "Other instruments": {
        "land-published": losses.land_published_command,
        "land-answers": losses.land_answers_command,
        "load-benchmarks": losses.load_benchmarks_command,
        "compress": integrity.compress_command,
        "decompress": integrity.decompress_command,
        "forecast": forecast.forecast_app,
        "scylla": scylla.scylla_app,
    },
    "Ask": {
        "sql": query.sql_command,
        "shell": query.shell_command,
        "report": query.report_command,
        "export": query.export_app,
        "xray": query.xray_command,
    },
    "Operate": {
        "status": status.status_command,
        "deploy": operations.deploy_command,
        "worker": worker.worker_command,
        "serve": operations.serve_command,
        "metrics": operations.metrics_command,
        "publish": publish.publish_command,
        "take-over": operations.take_over_command,
    },
    "Trust": {
        "check": integrity.check_command,
        "canary": losses.canary_command,
        "release": integrity.release_command,
        "reproduce": integrity.reproduce_command,
        "verify-losses": integrity.verify_losses_command,
    },
}
# `tidemark shell` passes the arguments after -- to the DuckDB client.
_CONTEXTS: dict[str, dict[str, Any]] = {"shell": {"allow_extra_args": True}}

app = typer.Typer(
    help="How well do language models predict text that was written after they were trained?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback(invoke_without_command=False)
def options(
    context: typer.Context,
    home: Annotated[
        str | None,
        Option(help="Data root, instead of TIDEMARK_HOME: a folder or s3://…", metavar="ROOT"),
    ] = None,
) -> None:
    """Read the settings once, and pass them to the command through its context."""
    if context.invoked_subcommand == "version":
        return
    from core.settings import load_settings

    context.obj = load_settings(home=home)


for _panel, _commands in _PANELS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, typer.Typer):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            _add = app.command(_name, rich_help_panel=_panel, context_settings=_CONTEXTS.get(_name))
            _add(_command)


def main() -> None:
    """Run the command line; print an error of tidemark as one line, and exit with its code."""
    escape_log()
    try:
        app()
    except TidemarkError as error:
        err.print(f"error: {error}", soft_wrap=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        # The pipe's reader (such as head) has ended. Else Python would report an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
