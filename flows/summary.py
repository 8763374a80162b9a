"""The table that ends a demo or a run."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from core.settings import Settings
from flows.console import out
from reports.summary import GapRow, by_model, gap_rows

_FIGURES = ("before", "after", "gap", "95 % interval", "TBI\na year", "est.\ncutoff", "cutoff")
_NOTE = (
    "A model's own line is the mean over its sources. TBI: slope in bits per byte a year.\n"
    "(month): no cutoff is known; split where another model's cutoff is, to be held against it."
)


def print_gaps(settings: Settings) -> None:
    """Print bits per byte before and after the cutoffs, by model and source."""
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
        # An estimate's interval goes below it.
        table.add_column(name, justify="right", overflow="fold", max_width=19)
    for rows in by_model(gap_rows(settings, settings.protocol)):
        for number, row in enumerate(rows):
            table.add_row(
                # Names are from outside: shown as they are, never read as markup.
                Text(_name(row, is_first=number == 0)),
                *_figures(row),
                style=None if row.source else "bold",
            )
    out.print(table)


def _name(row: GapRow, is_first: bool) -> str:
    return f"  {row.source}" if row.source else row.model if is_first else ""


def _figures(row: GapRow) -> list[str]:
    split = row.split if row.split is None or row.provenance else f"({row.split})"
    figures = [row.before, row.after, row.gap, row.interval, row.tbi]
    of_model = ["", ""] if row.source else [row.estimated_cutoff or "–", split or "–"]
    return [figure or "–" for figure in figures] + of_model
