"""What is landed already, asked for once for all cells of a model: a question a cell is slow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.cell_record import CellRecord
from core.cells import Cell
from core.corpus import Partition, partition_of
from core.month import Month
from core.storage import Store
from warehouse.dimensions import naive_utc
from warehouse.statements import Statements

DUPLICATES_FILE = "duplicate_of.parquet"  # beside a partition


@dataclass(frozen=True)
class LandedAlready:
    """What is landed of one model, and of all partitions, at one moment.

    Attributes:
        cells: revision, digest of the partition, scoring, and when it was scored, by source,
            month and protocol.
        partitions: digests.
        duplicates: the partitions of which duplicates are landed.
    """

    cells: Mapping[tuple[Partition, str], tuple[Any, ...]]
    partitions: Mapping[Partition, str]
    duplicates: frozenset[Partition]

    def has(self, cell: Cell, record: CellRecord | None) -> bool:
        """Whether a cell is landed as these very losses.

        Not if what is landed was scored at another time, as after a drift that the canary found.
        """
        revision, digest, scoring, scored_at = self.cells.get(
            (cell.partition, cell.protocol), (None, None, None, None)
        )
        if (revision, digest, scoring) != (cell.revision, cell.partition_digest, cell.scoring):
            return False
        return record is None or scored_at in (None, naive_utc(record.scored_at))


def find_landed(statements: Statements, model: str) -> LandedAlready:
    """Find out what is landed of a model, and of all partitions."""
    cells = {
        (_partition(source, month), protocol): (revision, digest, scoring, scored_at)
        for source, month, protocol, revision, digest, scoring, scored_at in statements.run(
            "list_landed_cells", {"model": model}
        )
    }
    rows = statements.run("list_landed_partitions")
    return LandedAlready(
        cells,
        {_partition(source, month): digest for source, month, digest, _ in rows},
        frozenset(_partition(source, month) for source, month, _, has in rows if has),
    )


def partitions_with_duplicates(store: Store) -> set[Partition]:
    """Return the partitions of which duplicates were found after sealing."""
    folders = ("corpus/source=*/month=*", "corpus/source=*/month=*/version=*")
    return {
        partition_of(path)
        for folder in folders
        for path in store.list(f"{folder}/{DUPLICATES_FILE}")
    }


def _partition(source: str, month: dt.date | None) -> Partition:
    return Partition(source, Month(f"{month:%Y-%m}") if month else None)
