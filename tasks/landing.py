"""Landing of finished cells, and publication."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

from prefect import task
from prefect.cache_policies import NO_CACHE

from core import progress
from core.cells import Cell, list_losses
from core.corpus import find_version
from core.settings import Settings
from core.storage import Store
from crawlers.contract import list_sources, load_crawler
from models.catalogue import ModelEntry, list_models
from models.protocols import get_protocol
from tasks import assets
from tasks.canary import land_canary_runs
from tasks.observe import observe, show_landed
from tasks.retries import retrying
from tasks.server import writer_slot
from tasks.tracing import span
from warehouse.keyed_rows import LandedRows
from warehouse.land import Warehouse, open_warehouse
from warehouse.landed_already import partitions_with_duplicates
from warehouse.publish import publish

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_NUM_TOGETHER = 200  # cells that land between two reports of progress


def land_finished(entry: ModelEntry, cells: tuple[Cell, ...], settings: Settings) -> int:
    """Land the cells of one model that have losses, and what they need to be joined with.

    Cells that are landed already cost little; so a killed run is simply run again.

    Args:
        entry: the model.
        cells: in any order; those without a losses file are passed over.
        settings: the data root.

    Returns:
        How many cells changed the warehouse.
    """
    return len(_land(entry, cells, settings))


def _land(entry: ModelEntry, cells: tuple[Cell, ...], settings: Settings) -> list[Cell]:
    """Land, and again where what went wrong may pass; return the cells that are new."""
    return retrying(f"land {entry.name}", lambda: _land_once(entry, cells, settings))


def _land_once(entry: ModelEntry, cells: tuple[Cell, ...], settings: Settings) -> list[Cell]:
    store = Store(settings.home)
    # By path: a source may have months and an undated partition, which have no order.
    in_order = sorted(cells, key=lambda cell: cell.path)
    losses = list_losses(store, cells[0].model) if cells else set()
    finished = [cell for cell in in_order if cell.path in losses]
    with writer_slot(), open_warehouse(settings) as warehouse:
        _land_dimensions(warehouse, entry, finished)
        land_canary_runs(warehouse, store)
        if not finished:
            return []
        _land_partitions(warehouse, store, finished)
        before = warehouse.find_landed(finished[0].model).cells
        for number in range(0, len(finished), _NUM_TOGETHER):
            some = finished[number : number + _NUM_TOGETHER]
            warehouse.land_cells(some)
            progress.report(f"land {entry.name}", number + len(some), len(finished))
        after = warehouse.find_landed(finished[0].model).cells
    keys = {cell: (cell.partition, cell.protocol) for cell in finished}
    return [cell for cell, key in keys.items() if before.get(key) != after.get(key)]


def _land_partitions(warehouse: Warehouse, store: Store, cells: list[Cell]) -> None:
    """Land the documents that cells are joined with, and their duplicates, where they are new."""
    if not cells:
        return
    landed = warehouse.find_landed(cells[0].model)
    to_look_at = landed.duplicates | partitions_with_duplicates(store)
    digests = {cell.partition: cell.partition_digest for cell in cells}
    for partition, digest in digests.items():
        if landed.partitions.get(partition) == digest and partition not in to_look_at:
            continue
        seal = find_version(store, partition, digest)
        if seal is not None:
            warehouse.land_documents(seal)
            warehouse.land_duplicates(seal)


def _land_dimensions(warehouse: Warehouse, entry: ModelEntry, cells: list[Cell]) -> None:
    revision = cells[0].revision if cells else entry.revision
    warehouse.upsert_models([{**_fields(entry), "revision": revision}])
    known = set(list_sources()) & {cell.partition.source for cell in cells}
    warehouse.upsert_sources([_fields(load_crawler(source).INFO) for source in sorted(known)])
    protocols = [get_protocol(name) for name in sorted({cell.protocol for cell in cells})]
    warehouse.upsert_protocols(
        [
            {
                "protocol": protocol.name,
                "description": protocol.description,
                "definition": json.dumps(dataclasses.asdict(protocol)),
                "hash": protocol.digest,
            }
            for protocol in protocols
        ]
    )


def describe_model(entry: ModelEntry, revision: str, settings: Settings) -> None:
    """Land what is known of a model, as its answers need it."""
    with open_warehouse(settings) as warehouse:
        warehouse.upsert_models([{**_fields(entry), "revision": revision}])


def describe_models(warehouse: Warehouse, settings: Settings) -> None:
    """Land what the catalogue knows of the landed models: losses from elsewhere bring no cutoff."""
    landed = warehouse.landed_models()
    warehouse.upsert_models(
        [
            {**_fields(entry), "revision": landed[entry.name]}
            for entry in list_models(settings)
            if entry.name in landed
        ]
    )


def describe_published(rates: LandedRows, settings: Settings) -> None:
    """Land what the catalogues know of the models and sources of published rates."""
    with open_warehouse(settings) as warehouse:
        landed = warehouse.landed_models()
        warehouse.upsert_models(
            [
                {**_fields(entry), "revision": landed.get(entry.name)}
                for entry in list_models(settings)
                if entry.name in rates.models
            ]
        )
        known = set(list_sources()) & set(rates.sources)
        warehouse.upsert_sources([_fields(load_crawler(source).INFO) for source in sorted(known)])


def _fields(record: DataclassInstance) -> dict[str, object]:
    """The fields as they are; ``dataclasses.asdict`` would take a Month apart."""
    return {field.name: getattr(record, field.name) for field in dataclasses.fields(record)}


@task(task_run_name="land {entry.name}", cache_policy=NO_CACHE, persist_result=False)
def land_cells(entry: ModelEntry, cells: tuple[Cell, ...], settings: Settings) -> int:
    """Land a model's finished cells; see ``land_finished``."""
    observe()
    with span("land", model=entry.name):
        landed = _land(entry, cells, settings)
    show_landed(entry.name, landed, len(cells))
    return len(landed)


@task(cache_policy=NO_CACHE, persist_result=False)
def publish_warehouse(settings: Settings) -> str:
    """Swap a checked snapshot in; returns its address."""
    with span("publish"):
        address = publish_alone(settings)
    assets.published(address)
    return address


def publish_alone(settings: Settings) -> str:
    """Do ``publish`` while no other machine lands or publishes."""

    def publish_once() -> str:
        with writer_slot():
            return publish(settings)

    return retrying("publish", publish_once)
