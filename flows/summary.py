"""The table that ends a demo or a run."""

from __future__ import annotations

from core.settings import Settings
from flows.console import print_table
from reports.summary import COLUMNS, gap_rows


def print_gaps(settings: Settings) -> None:
    """Print bits per byte before and after the cutoffs, by model and source."""
    rows = gap_rows(settings, settings.protocol)
    print_table("bits per byte before and after the cutoff", COLUMNS, [row.cells() for row in rows])
