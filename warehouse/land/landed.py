"""Functions that decide whether a cell has landed, and that list landed cells.

A cell (of losses, answers, puzzles or text comparisons) has landed if the warehouse has a cell with
the same key and equal digests. The digests cover all inputs and the method of computation.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

from core.cells.losses import Cell
from core.cells.record import CellRecord
from core.corpus.partition import Partition
from core.periods import kind_of
from warehouse.database.statements import Row, Statements

_DIGESTS = ("revision", "partition_digest", "scoring")


@dataclass(frozen=True)
class LandedCells:
    """The landed cells of one model, and all landed partitions."""

    cells: Mapping[tuple[Partition, str], Row]  # by protocol; scored_at is UTC without a zone
    partitions: Mapping[Partition, str]  # digest of the landed version of each partition

    def has(self, cell: Cell, record: CellRecord | None) -> bool:
        """Return True if a cell of losses has landed, with the same scoring record."""
        landed = self.cells.get((cell.partition, cell.protocol))
        if landed is None or any(landed[name] != getattr(cell, name) for name in _DIGESTS):
            return False
        times = {landed["scored_at"], naive_utc(record.scored_at) if record else None}
        return None in times or len(times) == 1


def find_landed(statements: Statements, model: str) -> LandedCells:
    """Return the landed cells of a model, and all landed partitions."""
    cells = {
        (partition_at(row.pop("source"), row.pop("month")), row.pop("protocol")): row
        for row in statements.rows("list_landed_cells", {"model": model})
    }
    rows = statements.run("list_landed_partitions")
    return LandedCells(
        cells, {partition_at(source, month): digest for source, month, digest in rows}
    )


def partition_at(source: str, month: dt.date | None) -> Partition:
    """Return the partition of a source and the first day of its month (None: undated)."""
    return Partition(source, kind_of(source).of(month) if month else None)


def naive_utc(moment: dt.datetime) -> dt.datetime:
    """Return a time in UTC without a time zone, as the warehouse stores it.

    DuckDB would convert a time with a zone to the machine's local time.
    """
    return moment.astimezone(dt.UTC).replace(tzinfo=None)


def partition_key(partition: Partition) -> dict[str, object]:
    """Return a partition's source and month as column values or statement parameters."""
    month = partition.month
    return {"source": partition.source, "month": month.first_day if month else None}
