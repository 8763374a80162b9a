"""What the command line prints: tables, progress bars, errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from core import progress

# Piped output has no width of its own; rich would cut tables at 80 columns.
_PIPED_WIDTH = 200
# All but tab and newline, and what changes the direction of the text around it.
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def _console(stderr: bool) -> Console:
    """Names from outside are shown as they are, never read as markup."""
    console = Console(stderr=stderr, markup=False, emoji=False, highlight=False)
    if not console.is_terminal:
        console.width = _PIPED_WIDTH
    return console


out = _console(stderr=False)
err = _console(stderr=True)


def visible(text: str) -> str:
    """Spell out control characters, by which text from outside could steer the terminal."""
    return _CONTROLS.sub(lambda match: _spelled(ord(match[0])), text)


def _spelled(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under a title."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("–" if cell is None else visible(str(cell)) for cell in row))
    out.print(table)


def fail_with(failures: Sequence[str]) -> None:
    """Print what failed; if anything did, end the command with exit code 1."""
    for failure in failures:
        err.print(visible(f"failed: {failure}"), soft_wrap=True)
    if failures:
        raise typer.Exit(1)


@contextmanager
def progress_bars() -> Iterator[None]:
    """Draw one bar for each step that reports progress, until the block ends."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=err) as bars:
        ids = {}

        def draw(step: str, done: int, total: int) -> None:
            if step not in ids:
                ids[step] = bars.add_task(step, total=total)
            bars.update(ids[step], completed=done, total=total)

        progress.listen(draw)
        try:
            yield
        finally:
            progress.listen(None)
