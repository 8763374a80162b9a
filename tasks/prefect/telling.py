"""Calls of extras that show on the Prefect server what a run has done."""

from __future__ import annotations

from typing import Any

from core.environment import prefect_server
from core.plugins import import_parts


def tell(what: str, *facts: Any) -> None:
    """Call the function ``what`` of each extra's ``display.py``; without a server, do nothing.

    Without a server, Prefect would start one of its own. The functions are:

        sealed(seal)                        a partition was sealed
        given_up(partition, why)            its crawl failed
        scored(cell, facts)                 losses of a cell were computed
        landed(model, cells)                losses of a model's cells have landed
        published(address)                  a snapshot was published
        shown(model, cells, settings)       the snapshot has these cells of a model
        reported(address, settings)         the site was written
    """
    if prefect_server():
        for part in import_parts("display"):
            getattr(part, what)(*facts)
