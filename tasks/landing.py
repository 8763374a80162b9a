"""Tasks that land finished cells and publish the warehouse."""

from __future__ import annotations

from typing import Any

from prefect import task

from core.cells.losses import Cell
from core.settings import Settings
from core.storage.store import Store
from instruments.landing import land_losses
from models.catalogue import ModelEntry
from tasks.prefect import events
from tasks.prefect.observe import observe, show_landed
from tasks.prefect.retries import OF_WRITES
from tasks.prefect.server import writer_slot
from tasks.prefect.tracing import span
from warehouse.database.schema import SNAPSHOT
from warehouse.read.publish import is_current, publish


@task(task_run_name="land {entry.name}", **OF_WRITES)
def land_cells(entry: ModelEntry, cells: tuple[Cell, ...], settings: Settings) -> int:
    """Land the losses of a model's cells; return the number of cells that had not landed yet."""
    observe()
    with span("land", model=entry.name):
        landed = land_losses(entry, cells, settings, writer_slot)
    show_landed(entry.name, landed, len(cells))
    return len(landed)


# ``plan`` is Any, so that Prefect does not validate it: the class Plan is abstract.
@task(task_run_name="land {plan.entry.name}", **OF_WRITES)
def land_plan(plan: Any, settings: Settings) -> int:
    """Land the finished cells of a plan; return the number of landed cells."""
    observe()
    with span("land", model=plan.entry.name):
        landed: int = plan.land(settings, writer_slot)
        return landed


def publications_due(settings: Settings) -> list[tuple[str, dict[str, Any]]]:
    """Return the call of ``publish_warehouse`` for ``fan_out``, or none if there is nothing new."""
    return [] if is_current(settings) else [("publish", {"settings": settings})]


@task(task_run_name="publish the warehouse", **OF_WRITES)
def publish_warehouse(settings: Settings) -> str:
    """Publish a checked snapshot of the warehouse; return the address of the snapshot.

    If nothing was written since the last publication, that snapshot stays.
    """
    if is_current(settings):
        return Store(settings.home).url(SNAPSHOT)
    with span("publish"), writer_slot():
        address = publish(settings)
    events.published(address)
    return address
