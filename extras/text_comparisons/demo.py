"""Comparisons that the demo makes."""

from __future__ import annotations

from core.corpus.partition import list_sealed
from core.settings import Settings
from core.storage.store import Store
from extras.text_comparisons.comparing import compare_texts, plan_comparisons
from extras.text_comparisons.difference import Against

SOURCE = "wikipedia_monitored"


def land_for_demo(settings: Settings) -> None:
    """Compare each month of a source with the month before it, and land the differences.

    Without the extra that crawls the source, nothing is compared.
    """
    store = Store(settings.home)
    if not list_sealed(store, SOURCE):
        return
    compare_texts(plan_comparisons(store, [SOURCE], None, [Against.PREVIOUS]), settings)
