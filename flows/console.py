"""What the command line prints: tables, progress bars, errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from core import progress

# Piped output has no width of its own; rich would cut tables at 80 columns.
_PIPED_WIDTH = 200

out = Console()
err = Console(stderr=True)
if not out.is_terminal:
    out = Console(width=_PIPED_WIDTH)
if not err.is_terminal:
    err = Console(stderr=True, width=_PIPED_WIDTH)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print rows under a title; names from outside are shown as they are, never as markup."""
    table = Table(title=title, title_justify="left", title_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text("–" if cell is None else str(cell)) for cell in row))
    out.print(table)


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
