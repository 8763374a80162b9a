"""Cells that were scored where the warehouse is not written: their run's report lands them.

    runs/<run>/to-land/<model>.json

The embedded warehouse of a data root is written from one machine (``warehouse/one_writer.py``). A
GPU worker on another one writes down there what it has scored, with what its catalogue says of the
model, whose files the writer's machine need not have.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from core.cells import Cell
from core.corpus import Partition
from core.errors import MalformedInput
from core.month import Month
from core.settings import Settings
from core.storage import Store, path_part
from models.catalogue import ModelEntry

_ENTRY = TypeAdapter(ModelEntry)


class _Cell(BaseModel):
    model_config = ConfigDict(frozen=True)

    model: str
    revision: str
    source: str
    month: str | None
    partition_digest: str
    partition_version: int | None
    protocol: str
    scoring: str

    def as_cell(self) -> Cell:
        given = self.model_dump(exclude={"source", "month"})
        partition = Partition(self.source, Month(self.month) if self.month else None)
        return Cell(partition=partition, **given)


class _Left(BaseModel):
    entry: dict[str, Any]
    cells: tuple[_Cell, ...]


def leave(run: str, entry: ModelEntry, cells: tuple[Cell, ...], settings: Settings) -> None:
    """Write down a model's cells for the report of their run."""
    facts = {
        name: str(value) if isinstance(value, (Month, dt.date)) else value
        for name, value in ((f.name, getattr(entry, f.name)) for f in dataclasses.fields(entry))
    }
    left = _Left(entry=facts, cells=tuple(map(_described, cells)))
    path = f"{_folder(run)}/{path_part(entry.name)}.json"
    Store(settings.home).write_bytes(path, left.model_dump_json().encode())


def read_left(run: str, settings: Settings) -> list[tuple[ModelEntry, tuple[Cell, ...]]]:
    """Return what scoring runs have left to the report of their run, a model each.

    Raises:
        MalformedInput: a file was not written by this version of tidemark.
    """
    store, found = Store(settings.home), []
    for path in store.list(f"{_folder(run)}/*.json"):
        try:
            left = _Left.model_validate_json(store.read_bytes(path))
            entry = _ENTRY.validate_python(left.entry)
        except ValidationError as error:
            raise MalformedInput(
                f"{store.url(path)} does not say what is to land ({error}); score the model again"
            ) from error
        found.append((entry, tuple(cell.as_cell() for cell in left.cells)))
    return found


def _folder(run: str) -> str:
    return f"runs/{path_part(run)}/to-land"


def _described(cell: Cell) -> _Cell:
    month = cell.partition.month
    return _Cell(
        model=cell.model,
        revision=cell.revision,
        source=cell.partition.source,
        month=str(month) if month else None,
        partition_digest=cell.partition_digest,
        partition_version=cell.partition_version,
        protocol=cell.protocol,
        scoring=cell.scoring,
    )
