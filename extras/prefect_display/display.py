"""Functions that ``tasks.prefect.telling`` calls: events, a table of cells, a link."""

from __future__ import annotations

from core.settings import Settings
from extras.prefect_display import events
from extras.prefect_display.artifacts import show_cells, show_link
from extras.prefect_display.events import given_up, landed, published, scored, sealed

__all__ = ["given_up", "landed", "published", "reported", "scored", "sealed", "shown"]

shown = show_cells


def reported(address: str, settings: Settings) -> None:
    """Send the event that the site was written, and show a link to it."""
    events.site_written(address)
    show_link(address, settings)
