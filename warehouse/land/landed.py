"""Functions that decide whether a cell has landed, and that list landed cells.

A cell (of losses, answers, puzzles or text comparisons) has landed if the warehouse has a cell with
the same key and equal digests. The digests cover all inputs and the method of computation.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from core.cells.losses import Cell
from core.cells.record import CellRecord
from core.corpus.partition import Partition
from core.errors import DamagedFile, StorageError
from core.periods import kind_of
from core.schemas.validation import validate
from core.storage.store import Store
from warehouse.database.statements import Row, Statements

REMEDY = "bring it back from a backup, or move it out of the data root"  # of a damaged file
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


def read_valid(
    store: Store, path: str, schema: pa.Schema, remedy: str = REMEDY, where: str | None = None
) -> pa.Table:
    """Read a Parquet file of the data root, and validate its rows.

    Raises:
        DamagedFile: the content is damaged; the message states ``remedy``.
        SchemaMismatch: a row violates the schema; the message names ``where``, or the path.
        StorageError: the file cannot be read.
    """
    try:
        with store.open(path) as file:
            table = pq.read_table(file, page_checksum_verification=True)
    # Of a damaged schema, names may not be UTF-8, and types may be unknown.
    except (pa.ArrowException, OSError, ValueError, LookupError) as error:
        # Errors about content have no number; those of the disk or the network have one.
        is_content = not isinstance(error, OSError) or error.errno is None
        kind = DamagedFile if is_content else StorageError
        raise kind(f"{store.url(path)} is damaged ({error}); {remedy}") from error
    return validate(table, schema, where or path)


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
