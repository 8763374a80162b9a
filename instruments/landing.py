"""Landing of finished cells in the warehouse, and publishing.

Only one machine writes the warehouse of a data root (``warehouse/database/lock.py``).
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

from core import progress
from core.cells.losses import Cell, list_losses
from core.corpus.partition import find_version
from core.errors import StorageError, TidemarkError
from core.settings import Settings
from core.storage.store import Store
from crawlers.registry import is_source, load_crawler
from instruments.canary import land_canary_runs
from instruments.running.retries import retrying
from models.catalogue import ModelEntry, add_model, list_models
from models.scoring.protocols import get_protocol
from warehouse.database.schema import SNAPSHOT
from warehouse.land.losses import Warehouse, open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

_NUM_TOGETHER = 200  # number of cells that land between two progress reports
_SHOWN_FAULTS = 5  # maximum number of faults in a message


def land_losses(entry: ModelEntry, cells: tuple[Cell, ...], settings: Settings) -> list[Cell]:
    """Land the finished cells of one model, with the documents, model, sources and protocols.

    Skip landed cells; return the newly landed cells.

    Raises:
        StorageError: a file of a cell is damaged, and all other cells have landed; or the store
            does not answer.
        MalformedInput, SchemaMismatch: as for a damaged file, if it is the only one.
        WarehouseError: a statement failed.
    """
    store = Store(settings.home)
    # Sort by path, not by month: the month of an undated partition is None.
    in_order = sorted(cells, key=lambda cell: cell.path)
    losses = list_losses(store, cells[0].model) if cells else set()
    finished = [cell for cell in in_order if cell.path in losses]
    with open_warehouse(settings) as warehouse:
        _land_dimensions(warehouse, entry, finished)
        land_canary_runs(warehouse, store)
        if not finished:
            return []
        _land_partitions(warehouse, store, finished)
        land_sources(warehouse, {cell.partition.source for cell in finished})
        before = warehouse.find_landed(finished[0].model).cells
        faults: list[TidemarkError] = []
        for number in range(0, len(finished), _NUM_TOGETHER):
            batch = finished[number : number + _NUM_TOGETHER]
            faults += warehouse.land_cells(batch).faults
            progress.report(f"land {entry.name}", number + len(batch), len(finished))
        after = warehouse.find_landed(finished[0].model).cells
    _raise_faults(faults, len(finished))
    # A cell has newly landed if the landed row of its key differs from before.
    keys = {cell: (cell.partition, cell.protocol) for cell in finished}
    return [cell for cell, key in keys.items() if before.get(key) != after.get(key)]


def _raise_faults(faults: list[TidemarkError], num_cells: int) -> None:
    """Raise the errors of cells that could not land, as one error, if there are any."""
    if len(faults) == 1:
        raise faults[0]
    if faults:
        shown = "; ".join(str(fault) for fault in faults[:_SHOWN_FAULTS])
        if len(faults) > _SHOWN_FAULTS:
            shown += f"; and {len(faults) - _SHOWN_FAULTS} more"
        raise StorageError(
            f"{len(faults)} of {num_cells} cells could not land; the others have landed: {shown}"
        ) from faults[0]


def land_model(entry: ModelEntry, revision: str, settings: Settings) -> None:
    """Land the catalogue entry of a model, with the revision that was used."""
    with open_warehouse(settings) as warehouse:
        warehouse.upsert_models([{**vars(entry), "revision": revision}])


def _land_partitions(warehouse: Warehouse, store: Store, cells: list[Cell]) -> None:
    """Land the documents of the cells' months, for sources with a new version of a month."""
    if not cells:
        return
    landed = warehouse.find_landed(cells[0].model)
    digests = {cell.partition: cell.partition_digest for cell in cells}
    # With a new month of a source, read all its manifests again: the regime of a month may change
    # while its digest does not.
    has_new = {
        part.source for part, digest in digests.items() if landed.partitions.get(part) != digest
    }
    for partition, digest in digests.items():
        if partition.source not in has_new:
            continue
        seal = find_version(store, partition, digest)
        if seal is not None:
            warehouse.land_documents(seal)


def _land_dimensions(warehouse: Warehouse, entry: ModelEntry, cells: list[Cell]) -> None:
    """Land the catalogue entry of a model, and the protocols of its cells."""
    revision = cells[0].revision if cells else entry.revision
    warehouse.upsert_models([{**vars(entry), "revision": revision}])
    rows = []
    for name in sorted({cell.protocol for cell in cells}):
        protocol = get_protocol(name)
        definition = json.dumps(dataclasses.asdict(protocol))
        rows.append({**vars(protocol), "definition": definition, "hash": protocol.digest})
    warehouse.upsert_protocols(rows)


def land_sources(warehouse: Warehouse, names: set[str]) -> None:
    """Land title, category and licence of the sources that have a crawler."""
    known = sorted(filter(is_source, names))
    warehouse.upsert_sources([vars(load_crawler(source).INFO) for source in known])


def catalogue_model(entry: ModelEntry, settings: Settings, replace: bool) -> None:
    """Write an entry into the user's catalogue, and publish it if the views show this model.

    If the change is refused, or this machine may not write the warehouse, nothing is changed.
    """
    is_published = Store(settings.home).exists(SNAPSHOT) and query(
        settings, "from models where model = ?", [entry.name]
    )
    if not is_published:
        add_model(entry, settings, replace)
        return
    with open_warehouse(settings) as warehouse:
        add_model(entry, settings, replace)
        describe_models(warehouse, settings)
    publish(settings)


def describe_models(warehouse: Warehouse, settings: Settings) -> None:
    """Land the catalogue entries (such as cutoffs) of all models that the warehouse names."""
    landed = warehouse.landed_models()
    warehouse.upsert_models(
        [
            {**vars(entry), "revision": landed[entry.name]}
            for entry in list_models(settings)
            if entry.name in landed
        ]
    )


def land_files(settings: Settings, files: list[Path], replace: bool) -> tuple[int, list[str]]:
    """Land files of imported losses, each file in one transaction, and publish.

    Return the number of landed files, and an error message per failed file.
    """
    landed = 0
    failures = []
    with open_warehouse(settings) as warehouse:
        for path in files:
            try:
                warehouse.land_file(path, replace=replace)
                landed += 1
            except TidemarkError as error:
                failures.append(str(error))
            progress.report("land", landed, len(files), len(failures))
        describe_models(warehouse, settings)
    if landed:
        publish_alone(settings)
    return landed, failures


def publish_alone(settings: Settings) -> str:
    """Publish the warehouse; retry after transient errors; return the URL of the snapshot."""
    return retrying("publish", lambda: publish(settings))
