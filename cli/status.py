"""Command `tidemark status`: the state of the data root and of the Prefect server, if any."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

from cli.terminal.console import age, out, print_table
from cli.terminal.options import FirstMonth, GivenMonth, LastMonth, settings_of, window
from core.month import Period
from core.progress import duration

if TYPE_CHECKING:
    from cli.server import ServerStatus
    from instruments.status import ModelState, Status

_MONTHS_A_LINE = 72
_MAX_FAILURES = 20  # maximum number of failed cells that are listed
_YEAR_WIDTH = 4  # number of characters of a year
_MARKS = {
    "sealed": "#",
    "partial": "p",
    "held": "h",
    "crawling": ">",
    "missing": ".",
    "lacking": "-",
    "damaged": "!",
}
_LEGEND = (
    "# sealed   p partial   h held back   > crawling   . missing   - not available   ! damaged"
)


def status_command(
    context: typer.Context,
    month: GivenMonth = None,
    first: FirstMonth = None,
    last: LastMonth = None,
    as_json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show finished, running, failed and missing work.

    An estimate of the time left is printed, too. The state is read from files of the data root. A
    configured Prefect server is asked for its runs and workers. Without --month, all months that
    have a partition are shown. The exit code is 0 even if work is missing.
    """
    from cli.server import ask_server
    from instruments.status import find_status

    status = find_status(settings_of(context), window(month, first, last))
    server = ask_server()
    if as_json:
        out.print(json.dumps(_plain(status, server), indent=2, default=str), soft_wrap=True)
        return
    for line in [*_months(status), *_summary(status)]:
        out.print(line, soft_wrap=True)
    if status.models:
        columns = ["model", "done", "published", "running", "to score", "time left", "failed"]
        print_table("cells", columns, map(_model_row, status.models))
    for line in [*_failures(status.models), *_server(server)]:
        out.print(line, soft_wrap=True)


def _months(status: Status) -> Iterator[str]:
    """Yield lines that show the state of each month of each source, as one character per month."""
    if not status.months:
        return
    width = max([len(source) for source in status.partitions], default=0) + 2
    for start in range(0, len(status.months), _MONTHS_A_LINE):
        months = status.months[start : start + _MONTHS_A_LINE]
        yield " " * width + _years(months)
        for source, states in status.partitions.items():
            marks = "".join(_MARKS[state] for state in states[start : start + _MONTHS_A_LINE])
            yield f"{source:<{width}}{_by_year(months, marks)}"
    yield _LEGEND
    yield ""


def _years(months: Sequence[Period]) -> str:
    """Return the header line: each year above its first month, if the year has room."""
    groups = groupby(str(month)[:_YEAR_WIDTH] for month in months)
    years = [(year, len(list(group))) for year, group in groups]
    return " ".join(f"{year if num >= _YEAR_WIDTH else '':<{num}}" for year, num in years)


def _by_year(months: Sequence[Period], marks: str) -> str:
    """Return the marks of months, with a blank between two years."""
    pairs = groupby(zip(months, marks, strict=True), key=lambda pair: str(pair[0])[:_YEAR_WIDTH])
    return " ".join("".join(mark for _, mark in year) for _, year in pairs)


def _summary(status: Status) -> Iterator[str]:
    """Yield the lines above the tables: months, publication, faults, work that is left."""
    counts = ", ".join(f"{num} {state}" for state, num in sorted(status.counts.items()))
    span = f"{status.months[0]} … {status.months[-1]}" if status.months else "no months"
    yield f"data root: {status.home}"
    yield f"months: {span}: {counts or 'nothing is sealed'}"
    at = status.published_at
    yield f"published: {f'{at:%Y-%m-%d %H:%M} UTC, {age(at)} ago' if at else 'nothing yet'}"
    yield from (f"PROBLEM: {fault}" for fault in status.faults)
    times = [model.pending_s for model in status.models]
    if status.crawl_s != 0:
        yield f"to crawl what is missing: {_about(status.crawl_s)}, one month after the other"
    if any(model.num_pending for model in status.models):
        total = None if None in times else sum(each or 0 for each in times)
        at_end = ""
        if total is not None:
            end = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=total)
            at_end = f", that is until {end:%Y-%m-%d %H:%M} UTC"
        yield f"to score what is sealed: {_about(total)}, one cell at a time{at_end}"


def _about(seconds: float | None) -> str:
    if seconds is None:
        return "not known, because none was measured"
    return f"about {duration(seconds)}"


def _model_row(model: ModelState) -> Sequence[object]:
    running = ", ".join(model.running[:2]) + (" …" if len(model.running) > 2 else "")
    left = duration(model.pending_s) if model.num_pending else "–"
    done = f"{model.num_done} of {model.num_sealed}"
    num_failed = len(model.failed)
    return model.model, done, model.num_published, running, model.num_pending, left, num_failed


def _failures(models: Sequence[ModelState]) -> Iterator[str]:
    failed = [failure for model in models for failure in model.failed]
    for failure in failed[:_MAX_FAILURES]:
        yield f"failed: {failure}"
    if len(failed) > _MAX_FAILURES:
        yield f"… {len(failed) - _MAX_FAILURES} more failed cells; --json shows all"


def _server(server: ServerStatus | None) -> Iterator[str]:
    """Yield a line for each flow run and pool of the Prefect server."""
    if server is None:
        yield "no Prefect server is configured (PREFECT_API_URL)"
        return
    if server.problem:
        yield f"Prefect server {server.address} {server.problem}"
        return
    yield f"Prefect server {server.address}"
    for title, runs in (("under way", server.under_way), ("broken", server.broken)):
        for name, deployment, state, start in runs:
            of = f" of {deployment}" if deployment else ""
            yield f"  {title}: {name}{of}, {state}{_since(start)}"
    for deployment, num in server.late:
        yield f"  late: {num} of {deployment}"
    for deployment, at in server.scheduled:
        yield f"  next: {deployment} at {dt.datetime.fromisoformat(at):%Y-%m-%d %H:%M %Z}"
    for pool, workers in server.workers:
        yield f"  pool {pool}: {', '.join(workers) or 'no worker'}"


def _since(start: str) -> str:
    return f", started {age(dt.datetime.fromisoformat(start))} ago" if start else ""


def _plain(status: Status, server: ServerStatus | None) -> dict[str, object]:
    """Return the status as plain values for ``--json``."""
    return {
        "home": status.home,
        "months": [str(month) for month in status.months],
        "partitions": {
            source: dict(zip(map(str, status.months), states, strict=True))
            for source, states in status.partitions.items()
        },
        "counts": dict(status.counts),
        "models": [
            {**vars(model), "num_pending": model.num_pending, "num_failed": len(model.failed)}
            for model in status.models
        ],
        "published_at": status.published_at,
        "faults": list(status.faults),
        "seconds_to_crawl": status.crawl_s,
        "server": server and dataclasses.asdict(server),
    }
