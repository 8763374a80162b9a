"""Comparisons that the demo makes."""

from __future__ import annotations

from core.settings import Settings
from core.storage.store import Store
from extras.text_comparisons.comparing import compare_texts, plan_comparisons
from extras.text_comparisons.difference import Against

SOURCE = "wikipedia_monitored"


def land_for_demo(settings: Settings) -> None:
    """Compare each month of a source with the month before it, and land the differences."""
    store = Store(settings.home)
    compare_texts(plan_comparisons(store, [SOURCE], None, [Against.PREVIOUS]), settings)
