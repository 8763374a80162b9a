"""Calls of extras that show the results of a run on the Prefect server."""

from __future__ import annotations

from typing import Any

from core.environment import prefect_server
from core.plugins import import_parts


def tell(what: str, *facts: Any) -> None:
    """Call the function ``what`` of each extra's ``display.py``; without a server, do nothing.

    Without a server, Prefect would start one of its own. The functions are:

        sealed(seal, began)                 a partition is sealed; its task run began then
        given_up(partition, why)            its crawl failed
        scored(cells, began, settings)      losses of cells are there; their task run began then
        landed(model, cells, num_cells)     losses of cells have landed, which are new of num_cells
        published(address)                  a snapshot was published
        shown(model, cells, settings)       the snapshot has these cells of a model
        reported(address, settings)         the site was written
        task_ended(what, task, future)      a task run of this flow run has ended
        ending()                            this flow run ends soon
    """
    if prefect_server():
        for part in import_parts("display"):
            getattr(part, what)(*facts)
