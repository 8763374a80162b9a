"""The command line. Each command parses, calls one function, and prints; nothing is decided here.

Exit codes: 0 ok, 1 failure, 2 wrong usage.
"""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from core.errors import TidemarkError, UsageError
from core.month import Month, month_range, require_complete
from core.settings import Settings, load_settings
from core.storage import Store
from flows.analyst_commands import export_app, shell_command, sql_command
from flows.catalogues import models_app, protocols_app, sources_app
from flows.codec_commands import compress_command, decompress_command, verify_losses_command
from flows.console import err, fail_with, out, print_table, progress_bars, visible
from flows.corpus_commands import corpus_app
from flows.crawl_command import crawl_command
from flows.deploy_command import deploy_command
from flows.forecast_commands import forecast_app
from flows.import_commands import import_media_command, import_texts_command
from flows.integrity_commands import check_command, release_command, reproduce_command
from flows.metrics_command import metrics_command
from flows.options import (
    FirstMonth,
    LastMonth,
    ModelNames,
    Sources,
    nothing_kept,
    settings_for_tasks,
    settings_of,
    window,
)
from flows.published_commands import (
    land_answers_command,
    land_published_command,
    load_benchmarks_command,
)
from flows.scylla_commands import scylla_app
from flows.serve_command import serve_command
from flows.simulate_command import simulate_command
from flows.status_command import status_command
from flows.text_commands import compare_texts_command
from flows.writer_commands import take_over_command

if TYPE_CHECKING:  # it imports Prefect, which takes seconds
    from flows.run import RunSummary

app = typer.Typer(
    help="How well do language models predict text that was written after they were trained?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(models_app, name="models")
app.add_typer(sources_app, name="sources")
app.add_typer(protocols_app, name="protocols")
app.add_typer(export_app, name="export")
app.add_typer(corpus_app, name="corpus")
app.add_typer(forecast_app, name="forecast")
app.add_typer(scylla_app, name="scylla")


@app.callback(invoke_without_command=False)
def options(
    context: typer.Context,
    home: Annotated[
        str | None,
        typer.Option(
            help="Data root, instead of TIDEMARK_HOME: a folder or s3://…", metavar="ROOT"
        ),
    ] = None,
) -> None:
    """Read the settings once; every command gets them from here."""
    context.obj = load_settings(home=home)


@app.command()
def demo(
    context: typer.Context,
    seed: Annotated[int, typer.Option(help="Seed of the simulated world and of the models.")] = 0,
    home: Annotated[
        str | None, typer.Option(help="Folder of the demo. Default: tidemark-demo.", metavar="ROOT")
    ] = None,
) -> None:
    """Run the whole job on a simulated web: no network, no GPU, no configuration.

    Four simulated sources are crawled over loopback HTTP, two small models are trained up to two
    known months, they and three compressors are scored on every month, and the report shows
    whether the planted cutoffs come back. A second run reuses what is done.
    """
    before = context.parent.params["home"] if context.parent else None  # tidemark --home ROOT demo
    given = before if home is None else home
    context.obj = load_settings(home="tidemark-demo" if given is None else given)
    settings = settings_for_tasks(context)
    from flows.demo import run_demo
    from flows.summary import print_gaps

    with progress_bars():
        summary = run_demo(settings, seed)
    if summary.report:
        print_gaps(settings)
        _print_paths(settings, summary.report)
    fail_with([str(hole) for hole in summary.holes])


def _print_paths(settings: Settings, report: str) -> None:
    out.print(f"database  {Store(settings.home).url('warehouse.duckdb')}", soft_wrap=True)
    out.print(f"report    {report}", soft_wrap=True)


app.command("crawl")(crawl_command)
app.command("metrics")(metrics_command)
app.command("status")(status_command)
app.command("simulate")(simulate_command)
app.command("serve")(serve_command)
app.command("import-texts")(import_texts_command)
app.command("import-media")(import_media_command)
app.command("compare-texts")(compare_texts_command)
app.command("compress")(compress_command)
app.command("decompress")(decompress_command)
app.command("verify-losses")(verify_losses_command)
app.command("check")(check_command)
app.command("release")(release_command)
app.command("reproduce")(reproduce_command)
app.command("take-over")(take_over_command)


@app.command()
def score(
    context: typer.Context,
    model: ModelNames = None,
    source: Sources = None,
    month: FirstMonth = None,
    to: LastMonth = None,
    protocol: Annotated[
        list[str] | None,
        typer.Option(
            help="See `tidemark protocols list`; repeat for several, which share passes of the "
            "model where their windows are the same.",
            metavar="NAME",
        ),
    ] = None,
    context_tokens: Annotated[
        int | None, typer.Option("--context", min=2, help="Another window, in tokens.")
    ] = None,
    stride: Annotated[
        int | None, typer.Option(min=1, help="Slide the window by so many tokens.")
    ] = None,
) -> None:
    """Score sealed partitions, land the losses and publish the warehouse.

    Without --source or --month: everything that is sealed. Cells that are done are skipped.
    """
    settings = settings_for_tasks(context)
    from flows.direct import score_and_land
    from models.protocols import get_protocol

    names = protocol or [settings.protocol]
    chosen = dict.fromkeys(get_protocol(name, context_tokens, stride).name for name in names)
    months = window(month, to)
    if months:
        require_complete(months[-1])
    _warn_of_inaccessible(model, settings)
    with progress_bars():
        landed, failures = score_and_land(
            settings, model or list(settings.models), source, months, list(chosen)
        )
    out.print(f"{landed} cells landed")
    fail_with(failures)


def _warn_of_inaccessible(models: list[str] | None, settings: Settings) -> None:
    """Name at once what will fail later; the rest of the run goes on."""
    from tasks.planning import find_inaccessible

    for problem in find_inaccessible(models, settings):
        err.print(visible(f"warning: {problem}"), soft_wrap=True)


@app.command()
def land(
    context: typer.Context,
    files: Annotated[list[Path], typer.Argument(help="Parquet files in the LOSSES schema.")],
    replace: Annotated[
        bool, typer.Option("--replace", help="Supersede chunks that are landed already.")
    ] = False,
) -> None:
    """Land losses that were computed elsewhere, and publish the warehouse.

    Each file lands whole or not at all; a bad one changes nothing. Rows that are landed already are
    passed over. (What tidemark itself has scored, `tidemark score` lands.)
    """
    settings = settings_for_tasks(context)
    from flows.direct import land_files

    landed, failures = land_files(settings, files, replace)
    out.print(f"{landed} of {len(files)} files landed")
    fail_with(failures)


app.command("land-published")(land_published_command)
app.command("land-answers")(land_answers_command)
app.command("load-benchmarks")(load_benchmarks_command)


@app.command()
def run(
    context: typer.Context,
    month: Annotated[
        str | None, typer.Option(help="Default: the last complete month.", metavar="YYYY-MM")
    ] = None,
    source: Sources = None,
    model: ModelNames = None,
) -> None:
    """Do a monthly run: crawl, score, land, publish, report."""
    from tasks.planning import check_request

    # Before Prefect starts, which takes seconds and would show a wrong request with a traceback.
    months = window(month, None) or [Month.last_complete()]
    check_request(months, source, model, settings_of(context))
    _warn_of_inaccessible(model, settings_of(context))
    settings = settings_for_tasks(context)
    from flows.monthly import monthly

    with progress_bars():
        summary = monthly(month=month, sources=source, models=model, settings=settings)
    _print_summary(summary)
    fail_with([str(hole) for hole in summary.holes])


def _print_summary(summary: RunSummary) -> None:
    out.print(str(summary), soft_wrap=True)
    for partition in summary.partial:
        out.print(visible(f"partial: {partition}"), soft_wrap=True)


@app.command()
def backfill(
    context: typer.Context,
    first: Annotated[str, typer.Option("--from", help="First month.", metavar="YYYY-MM")],
    last: Annotated[str, typer.Option("--to", help="Last month, included.", metavar="YYYY-MM")],
    source: Sources = None,
    model: ModelNames = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print the plan and its estimated cost; do nothing."),
    ] = False,
) -> None:
    """Do the monthly run for a range of months; what is done already is skipped."""
    from tasks.planning import check_request

    months = list(month_range(Month(first), Month(last)))
    request = check_request(months, source, model, settings_of(context))
    if dry_run:
        with nothing_kept(settings_of(context)):
            from flows.dry_run import print_dry_run

            print_dry_run(request, settings_of(context))
        return
    _warn_of_inaccessible(model, settings_of(context))
    settings = settings_for_tasks(context)
    from flows.backfill import backfill as backfill_flow

    with progress_bars():
        summary = backfill_flow(
            first=first, last=last, sources=source, models=model, settings=settings
        )
    _print_summary(summary)
    fail_with([str(hole) for hole in summary.holes])


app.command("deploy")(deploy_command)
app.command("sql")(sql_command)
app.command("shell", context_settings={"allow_extra_args": True})(shell_command)


@app.command()
def report(context: typer.Context) -> None:
    """Write the report page from the published warehouse."""
    from reports.page import write_report

    settings = settings_of(context)
    _print_paths(settings, write_report(settings))


@app.command()
def doctor(context: typer.Context) -> None:
    """Check Python, torch, Chromium, git, disk, data root, warehouse, server; say how to mend."""
    from flows.doctor import examine

    findings = examine(settings_of(context))
    rows = [
        (f.what, "ok" if f.is_well else "PROBLEM", f.detail, "" if f.is_well else f.mend)
        for f in findings
    ]
    print_table("doctor", ["what", "state", "found", "to mend it"], rows)
    if not all(f.is_well for f in findings):
        raise typer.Exit(1)


@app.command()
def canary(context: typer.Context) -> None:
    """Rescore a frozen model on frozen texts, and record whether the loss is what it has to be.

    Run it after upgrades; the monthly run does. A drift above 1e-6 makes the cells suspect that
    were scored since the last good run on this device (view suspect_cells), and exits with 1.
    """
    settings = settings_for_tasks(context)
    from tasks.canary import check_canary
    from warehouse.publish import publish

    run = check_canary(settings)
    publish(settings)
    out.print(f"canary on {run.device}, {run.dtype}: {run.nll_nats!r} nats, drift {run.drift:.1e}")
    fail_with([] if run.is_well else [str(run)])


@app.command("version")
def show_version() -> None:
    """Print the version."""
    out.print(version("tidemark"))


def main() -> None:
    """Run the command line; our own errors become one line and an exit code."""
    try:
        app()
    except TidemarkError as error:
        err.print(visible(f"error: {error}"), soft_wrap=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        # The reader (head, less) has gone; Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
