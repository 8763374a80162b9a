"""Commands `tidemark run`, `backfill` and `demo`: whole runs, their plans and summaries."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text
from typer import Option

from cli.losses import warn_of_inaccessible
from cli.query import print_paths
from cli.terminal.console import fail_with, out, print_table, progress_bars, visible
from cli.terminal.options import (
    ModelNames,
    Sources,
    nothing_kept,
    settings_for_tasks,
    settings_of,
    window,
)
from core.errors import OrchestrationError, TidemarkError
from core.month import month_range
from core.periods import parse_period

if TYPE_CHECKING:
    from core.settings import Settings
    from flows.run import RunSummary
    from instruments.planning import Request
    from reports.summary import GapRow

# Of a new database of Prefect's embedded server, which waits for minutes if it has less.
ROOM_BYTES = 8 * 2**20
_FIGURES = ("before", "after", "gap", "95 % interval", "TBI\na year", "est.\ncutoff", "cutoff")
_NOTE = (
    "A model's own line is the mean over its sources. TBI: slope in bits per byte a year.\n"
    "Interval: would other months like these say the same? (–: too few months)\n"
    "(month): no cutoff is known; split where another model's cutoff is, to be held against it."
)


def demo_command(
    context: typer.Context,
    seed: Annotated[int, Option(help="Seed of the simulated world and of the models.")] = 0,
    home: Annotated[
        str | None, Option(help="Folder of the demo. Default: tidemark-demo.", metavar="ROOT")
    ] = None,
) -> None:
    """Run all steps on a simulated web, offline.

    Four simulated sources are crawled over loopback HTTP. Three small models are trained up to a
    known month each, one of them before the first. The models and three compressors are scored on
    every month. The report shows whether the cutoffs are found. A second run reuses finished work.
    """
    before = context.parent.params["home"] if context.parent else None  # of tidemark --home X demo
    given = before if home is None else home
    from core.settings import load_settings

    context.obj = load_settings(home="tidemark-demo" if given is None else given)
    settings = settings_for_tasks(context, needs_server=True)
    from flows.demo import run_demo

    with _running_flows(settings):
        summary = run_demo(settings, seed)
    if summary.report:
        print_gaps(settings)
        print_paths(settings, summary.report)
    fail_with([str(hole) for hole in summary.holes])


def run_command(
    context: typer.Context,
    month: Annotated[
        str | None, Option(help="Default: the last complete month.", metavar="YYYY-MM")
    ] = None,
    source: Sources = None,
    model: ModelNames = None,
) -> None:
    """Do a monthly run: crawl, score, land, publish and report."""
    from instruments.planning import check_request, last_period

    # Check before Prefect starts, as Prefect takes seconds and would print a traceback.
    months = window(month, None) or [last_period(source)]
    check_request(months, source, model, settings_of(context))
    warn_of_inaccessible(model, settings_of(context))
    settings = settings_for_tasks(context, needs_server=True)
    from flows.monthly import monthly
    from tasks.prefect.storage_keys import using

    with _running_flows(settings), using(settings):
        summary = monthly(month=month, sources=source, models=model)
    _print_summary(summary)
    fail_with([str(hole) for hole in summary.holes])


@contextmanager
def _running_flows(settings: Settings) -> Iterator[None]:
    """Show progress of flows that run in this process; convert errors of Prefect's server.

    Raises:
        DiskFull: there is no space for the database of Prefect's embedded server.
        TidemarkError: what ended a flow, also if the server failed when it was told so.
        OrchestrationError: the server failed.
    """
    import httpx

    from core.environment import prefect_server
    from core.storage.store import explain_disk_errors

    if prefect_server() is None:
        scratch = settings.scratch
        with explain_disk_errors(str(scratch)), tempfile.TemporaryFile(dir=scratch) as room:
            os.posix_fallocate(room.fileno(), 0, ROOM_BYTES)
    log = logging.getLogger("prefect.flow_runs")
    log.addFilter(_has_no_traceback)
    try:
        with progress_bars():
            yield
    except httpx.HTTPError as error:
        cause: BaseException | None = error
        while cause and not isinstance(cause, TidemarkError):
            cause = cause.__context__
        raise cause or OrchestrationError(
            f"the Prefect server failed ({type(error).__name__}): {str(error).splitlines()[0]}; "
            f"see that {settings.scratch} has space, then run the same command again"
        ) from None
    finally:
        log.removeFilter(_has_no_traceback)


def _has_no_traceback(record: logging.LogRecord) -> bool:
    return record.exc_info is None  # the error reaches the command line, which shows it


def _print_summary(summary: RunSummary) -> None:
    out.print(str(summary), soft_wrap=True)
    for partition in summary.partial:
        out.print(f"partial: {partition}", soft_wrap=True)


def backfill_command(
    context: typer.Context,
    first: Annotated[str, Option("--from", help="First month.", metavar="YYYY-MM")],
    last: Annotated[str, Option("--to", help="Last month, inclusive.", metavar="YYYY-MM")],
    source: Sources = None,
    model: ModelNames = None,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print the plan and an estimate of its time; do nothing.")
    ] = False,
) -> None:
    """Do the monthly run for a range of months.

    Finished work is skipped.
    """
    from instruments.planning import check_request

    months = list(month_range(parse_period(first), parse_period(last)))
    request = check_request(months, source, model, settings_of(context))
    if dry_run:
        with nothing_kept(settings_of(context)):
            _print_plan(request, settings_of(context))
        return
    warn_of_inaccessible(model, settings_of(context))
    settings = settings_for_tasks(context, needs_server=True)
    from flows.backfill import backfill as backfill_flow
    from tasks.prefect.storage_keys import using

    with _running_flows(settings), using(settings):
        summary = backfill_flow(first=first, last=last, sources=source, models=model)
    _print_summary(summary)
    fail_with([str(hole) for hole in summary.holes])


def _print_plan(request: Request, settings: Settings) -> None:
    from instruments.run_plan import plan_run

    plan = plan_run(request, settings)
    for table in plan.tables():
        print_table(table.title, table.columns, table.rows)
    out.print(plan.total(), soft_wrap=True)


def print_gaps(settings: Settings) -> None:
    """Print bits per byte before and after the cutoffs, by model and source; then the panel's."""
    from reports.summary import by_model, gap_rows
    from warehouse.database.schema import read_sql
    from warehouse.read.query import query

    table = Table(
        title="bits per byte before and after the cutoff",
        title_justify="left",
        title_style="bold",
        caption=_NOTE,
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
        pad_edge=False,
    )
    table.add_column("model / source", overflow="fold")
    for name in _FIGURES:
        # Narrow columns put the interval of an estimate on a second line.
        table.add_column(name, justify="right", overflow="fold", max_width=19)
    for rows in by_model(gap_rows(settings, settings.protocol)):
        for number, row in enumerate(rows):
            table.add_row(
                # ``Text`` prints names as they are; rich would interpret brackets in a string.
                Text(visible(_name(row, is_first=number == 0))),
                *_figures(row),
                style=None if row.source else "bold",
            )
    out.print(table)
    panel = query(settings, read_sql("read/sql", "show_panel"), {"protocol": settings.protocol})
    rows_of_panel = [list(row.values()) for row in panel.to_pylist()]
    print_table("gap less what other models share", panel.column_names, rows_of_panel)


def _name(row: GapRow, is_first: bool) -> str:
    return f"  {row.source}" if row.source else row.model if is_first else ""


def _figures(row: GapRow) -> list[str]:
    split = row.split if row.split is None or row.provenance else f"({row.split})"
    figures = [row.before, row.after, row.gap, row.interval, row.tbi]
    of_model = ["", ""] if row.source else [row.estimated_cutoff or "–", split or "–"]
    return [figure or "–" for figure in figures] + of_model
