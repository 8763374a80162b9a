"""Tasks that land finished cells, publish the warehouse, and write the site."""

from __future__ import annotations

from prefect import task
from prefect.cache_policies import NO_CACHE

from core.cells.files import FoundCells
from core.cells.losses import Cell
from core.settings import Settings
from instruments.landing import land_losses
from instruments.written import land_texts_of
from models.catalogue import ModelEntry
from reports.site.build import find_current_site, write_site
from tasks.prefect.observe import observe
from tasks.prefect.retries import OF_WRITES
from tasks.prefect.telling import tell
from warehouse.read.publish import is_current, publish


@task(task_run_name="land {entry.name}", **OF_WRITES)
def land_cells(entry: ModelEntry, cells: tuple[Cell, ...], settings: Settings) -> int:
    """Land the losses of a model's cells; return the number of cells that had not landed yet."""
    observe()
    landed = land_losses(entry, cells, settings)
    tell("landed", entry.name, landed, len(cells))
    return len(landed)


@task(task_run_name="land answers of {model}", **OF_WRITES)
def land_answers(model: str, found: FoundCells, settings: Settings) -> int:
    """Land a model's answers to questions and puzzles; return the number of new cells."""
    observe()
    return land_texts_of(model, found, settings)


@task(task_run_name="publish the warehouse", **OF_WRITES)
def publish_warehouse(settings: Settings) -> None:
    """Publish a checked snapshot of the warehouse, unless nothing has landed since the last."""
    if not is_current(settings):
        tell("published", publish(settings))


@task(task_run_name="write the site", cache_policy=NO_CACHE, persist_result=False)
def write_report(settings: Settings) -> str:
    """Write the site unless it shows the published snapshot; return the address of its page."""
    observe()
    current = find_current_site(settings)
    if current is not None:
        return current
    address = write_site(settings)
    tell("reported", address, settings)
    return address
