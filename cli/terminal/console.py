"""Output of the command line: tables, progress bars, errors, ages."""

from __future__ import annotations

import datetime as dt
import logging
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table

from core import progress
from core.errors import TidemarkError, UsageError
from core.progress import duration

# Width of tables in piped output, in columns; the library rich would use 80.
_PIPED_WIDTH = 200
_MAX_COLUMN = 40  # maximum width of a column on a terminal, in the estimate of a table's width
_PADDING = 3  # a border and two blanks per column of a table
# Control characters, except tab and newline, characters that change the text's direction, and lone
# surrogates, which no output can encode.
_CONTROLS = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


class VisibleConsole(Console):
    """Console that escapes control characters, since most output has names from elsewhere."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; escape strings, but not a Table or Text, which callers must escape."""
        texts = (visible(each) if isinstance(each, str) else each for each in objects)
        super().print(*texts, **options)


class _VisibleLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def escape_log() -> None:
    """Escape control characters in warnings, which Python prints where no log is set up."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_VisibleLines())


def _console(stderr: bool) -> Console:
    """Return a console that does not interpret markup, because names may contain brackets."""
    console = VisibleConsole(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = _PIPED_WIDTH
    return console


out = _console(stderr=False)
err = _console(stderr=True)


def visible(text: str) -> str:
    """Escape control characters, so that text of other people cannot control the terminal."""
    return _CONTROLS.sub(_escape, text)


def _escape(control: re.Match[str]) -> str:
    code = ord(control[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table with a title, at most as wide as the console."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("–" if cell is None else visible(str(cell)) for cell in row))
    out.print(table)


def print_fitting(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, or each row as a block of lines if the table is wider than the console.

    ``columns`` and ``rows`` have no control characters.
    """
    # A terminal folds long cells; in a pipe, a row of a table is one line.
    max_column = _MAX_COLUMN if out.is_terminal else out.width
    if not rows or _width([columns, *rows], max_column) <= out.width:
        print_table(title, columns, rows)
        return
    if title:
        out.print(title, style="bold", soft_wrap=True)
    name_width = max(map(cell_len, columns))
    for number, row in enumerate(rows, start=1):
        out.print(f"─ record {number} ".ljust(name_width + 3, "─"), style="bold")
        for name, cell in zip(columns, row, strict=True):
            lines = cell.replace("\n", f"\n{'':{name_width}} │ ")
            out.print(f"{name}{'':{name_width - cell_len(name)}} │ {lines}", soft_wrap=True)


def _width(rows: Sequence[Sequence[str]], max_column: int) -> int:
    """Estimate the width of a printed table in terminal columns."""
    columns = ("\n".join(column).split("\n") for column in zip(*rows, strict=True))
    return 1 + sum(min(max(map(cell_len, lines)), max_column) + _PADDING for lines in columns)


def print_rows(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Print the rows of a query, which has at least one; floats have three decimals."""
    print_fitting(title, list(rows[0]), [list(map(_rounded, row.values())) for row in rows])


def _rounded(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else visible(str(value))


def do_each(step: str, jobs: Mapping[str, Callable[[], None]]) -> list[str]:
    """Call each job, with a progress bar; return the errors of failed jobs. Other jobs continue."""
    failures = []
    with progress_bars():
        for number, (name, job) in enumerate(jobs.items(), start=1):
            try:
                job()
            except UsageError:
                raise
            except TidemarkError as error:
                failures.append(f"{name}: {error}")
            progress.report(step, number - len(failures), len(jobs), len(failures))
    return failures


def fail_with(failures: Sequence[str]) -> None:
    """Print the failures; if there is a failure, end the command with exit code 1."""
    for failure in failures:
        err.print(f"failed: {failure}", soft_wrap=True)
    if failures:
        raise typer.Exit(1)


@contextmanager
def progress_bars() -> Iterator[None]:
    """Draw a progress bar for each step that reports progress, until the ``with`` block ends."""
    from rich import progress as drawn

    columns = (
        drawn.TextColumn("{task.description}", markup=False),
        drawn.BarColumn(bar_width=30),
        drawn.MofNCompleteColumn(),
        drawn.TimeElapsedColumn(),
    )
    with drawn.Progress(*columns, console=err) as bars:
        ids = {}

        def draw(step: str, done: int, total: int, failed: int) -> None:
            name = visible(step) + (f" ({failed} failed)" if failed else "")
            if step not in ids:
                ids[step] = bars.add_task(name, total=total)
            bars.update(ids[step], completed=done, total=total, description=name)

        progress.listen(draw)
        try:
            yield
        finally:
            progress.listen(None)


@contextmanager
def until_signal() -> Iterator[None]:
    """End the ``with`` block at Ctrl-C or SIGTERM, also in a job in the background of a shell.

    The end of its terminal (SIGHUP) ends it, too, but not under ``nohup``.
    """
    ends = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        ends.append(signal.SIGHUP)
    for end in ends:
        signal.signal(end, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        out.print("ended")


def age(moment: dt.datetime) -> str:
    """Return the time since a moment as text; never negative, even if clocks differ."""
    return duration(max(0.0, (dt.datetime.now(dt.UTC) - moment).total_seconds()))
