"""Commands `tidemark run` and `backfill`: whole runs and their summaries."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text
from typer import Option

from cli.losses import warn_of_inaccessible
from cli.terminal.console import err, fail_with, out, print_table, progress_bars, visible
from cli.terminal.options import (
    ModelNames,
    RetryFailed,
    Sources,
    nothing_kept,
    settings_for_tasks,
    settings_of,
    window,
)
from core.month import month_range
from core.periods import parse_period
from core.progress import counted, duration

if TYPE_CHECKING:
    from core.settings import Settings
    from instruments.crawling import CrawlMonth
    from instruments.planning import Request
    from instruments.summary import RunSummary
    from reports.summary import GapRow

_FIGURES = ("before", "after", "gap", "95 % interval", "TBI\na year", "est.\ncutoff", "cutoff")
_MAX_WIDTH = 19  # maximum width of a column of figures in characters
_NOTE = (
    "A model's own line is the mean over its sources. TBI: slope in bits per byte a year.\n"
    "Interval: would other months like these say the same? (–: too few months)\n"
    "(month): no cutoff is known; split where another model's cutoff is, to be held against it."
)


def run_command(
    context: typer.Context,
    month: Annotated[
        str | None, Option(help="Default: the last complete month.", metavar="YYYY-MM")
    ] = None,
    source: Sources = None,
    model: ModelNames = None,
    retry_failed: RetryFailed = False,
) -> None:
    """Do a monthly run: crawl, score, land, publish and report."""
    from instruments.planning import check_request, last_period

    months = window(month, None) or [last_period(source)]
    request = check_request(months, source, model, settings_of(context))
    _run(context, request, model, retry_failed)


def _run(
    context: typer.Context, request: Request, models: list[str] | None, retry_failed: bool
) -> None:
    """Run a request with the settings of the command line; fail if cells or months are missing."""
    from core.environment import prefect_server

    for why in request.left_out:
        err.print(f"left out: {why}", soft_wrap=True)
    warn_of_inaccessible(models, settings_of(context))
    settings = settings_for_tasks(context, needs_server=prefect_server() is not None)
    from instruments.runs import run

    with progress_bars():
        summary = run(request, settings, _crawl_month(), retry_failed)
    _print_summary(summary)
    fail_with(summary.holes)


def _crawl_month() -> CrawlMonth:
    """Return the function that crawls a month, with limits and tokens of a configured server."""
    from core.environment import prefect_server
    from instruments.crawling import crawl_patiently

    if prefect_server() is None:
        return crawl_patiently
    from tasks.crawling import crawl

    return partial(crawl_patiently, crawl=crawl)


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
    retry_failed: RetryFailed = False,
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
    _run(context, request, model, retry_failed)


def _print_plan(request: Request, settings: Settings) -> None:
    """Print what a run would crawl and score, and the estimated time, from names of files."""
    from instruments.status import find_status

    status = find_status(settings, request.months, request)
    rows = []
    for source, states in status.partitions.items():
        for state, number in Counter(states).items():
            pairs = zip(status.months, states, strict=True)
            months = [month for month, each in pairs if each == state]
            rows.append((source, state, f"{months[0]} … {months[-1]}", number))
    print_table("months", ("source", "state", "months", "number"), rows)
    num_new = sum(status.counts[state] for state in ("missing", "held"))
    num_to_crawl = num_new + status.counts["partial"]
    cells = []
    num_to_score = 0
    total_s = 0.0
    unknown = []  # models without a timed cell
    for model in status.models:
        number = model.num_pending + num_new
        model_s = None if number and model.cell_s is None else number * (model.cell_s or 0.0)
        cells.append((model.model, model.num_done, number, duration(model_s)))
        num_to_score += number
        total_s += model_s or 0.0
        if model_s is None:
            unknown.append(model.model)
    print_table("cells", ("model", "done", "to score", "time"), cells)
    estimate = f"about {duration(total_s)} to score, one cell at a time"
    if unknown:
        estimate += f"; not known: {', '.join(unknown)}"
    crawled = counted(num_to_crawl, "partition")
    scored = counted(num_to_score, "cell")
    out.print(f"total: {crawled} to crawl, {scored} to score; {estimate}", soft_wrap=True)


def print_gaps(settings: Settings) -> None:
    """Print the gaps in bits per byte by model and source, then the estimates over all models."""
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
        table.add_column(name, justify="right", overflow="fold", max_width=_MAX_WIDTH)
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
    panel_rows = [list(row.values()) for row in panel.to_pylist()]
    print_table("gap less what other models share", panel.column_names, panel_rows)


def _name(row: GapRow, is_first: bool) -> str:
    if row.source:
        return f"  {row.source}"
    return row.model if is_first else ""


def _figures(row: GapRow) -> list[str]:
    """Return the cells of a row below ``_FIGURES``; cutoffs only in the line of a model."""
    split = row.split if row.split is None or row.provenance else f"({row.split})"
    figures = [row.before, row.after, row.gap, row.interval, row.tbi]
    of_model = ["", ""] if row.source else [row.estimated_cutoff or "–", split or "–"]
    return [figure or "–" for figure in figures] + of_model
