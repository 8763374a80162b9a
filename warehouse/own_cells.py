"""Our own cells on their way into the warehouse: losses, records and provenance, some at a time.

Landing a cell is two dozen statements, whatever it holds; many small cells are therefore landed in
one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.cell_record import CellRecord, read_cell_record
from core.cells import Cell
from core.errors import SchemaMismatch, StorageError, TidemarkError
from core.schemas import LOSSES, validate
from core.storage import Store
from warehouse.dimensions import RECORD_TABLES, record_tables
from warehouse.landed_already import LandedAlready
from warehouse.statements import show

MAX_ROWS = 250_000  # in one transaction, if it has more than one cell: some dozen megabytes
MAX_CELLS = 200
_NUM_READERS = 16  # at once: an object store answers slowly
_PROVENANCE = pa.schema(
    [
        ("model", pa.string()),
        ("source", pa.string()),
        ("month", pa.date32()),
        ("protocol", pa.string()),
        ("partition_digest", pa.string()),
        ("partition_version", pa.int32()),
        ("scoring", pa.string()),
    ]
)
NO_PROVENANCE = _PROVENANCE.empty_table()


@dataclass(frozen=True)
class OwnCell:
    """A cell that is about to land.

    Attributes:
        cell: what was scored.
        record: what scoring took; None of cells of older versions.
        losses: its rows.
    """

    cell: Cell
    record: CellRecord | None
    losses: pa.Table

    @property
    def where(self) -> str:
        """For messages."""
        return f"losses of {self.cell}"

    @property
    def key(self) -> dict[str, object]:
        """What its rows have in common."""
        month = self.cell.partition.month
        return {
            "model": self.cell.model,
            "revision": self.cell.revision,
            "source": self.cell.partition.source,
            "month": month.first_day if month else None,
            "protocol": self.cell.protocol,
        }

    def check(self) -> None:
        """See that the rows are of this cell.

        Raises:
            SchemaMismatch: names the first that is of another, or not of LOSSES.
        """
        table = validate(self.losses, LOSSES, self.where)
        for name, value in self.key.items():
            same = pc.equal(table[name], pa.scalar(value, table[name].type))
            same = pc.is_null(table[name]) if value is None else pc.fill_null(same, False)
            if not pc.all(same).as_py():
                [row] = table.filter(pc.invert(same)).select(list(self.key))[:1].to_pylist()
                raise SchemaMismatch(f"{self.where}: a row is of another cell: {show(row)}")


def read_own(
    store: Store, cells: Sequence[Cell], landed: LandedAlready
) -> Iterator[tuple[OwnCell, ...]]:
    """Yield the cells that are not landed, as many at a time as are to land together.

    Raises:
        StorageError: the file of a cell is missing or damaged; those before it were yielded.
        MalformedInput: its record is damaged; so here.
    """
    group: list[OwnCell] = []
    try:
        with ThreadPoolExecutor(_NUM_READERS) as pool:
            records = pool.map(lambda cell: read_cell_record(store, cell), cells)
            for cell, record in zip(cells, records, strict=True):
                if landed.has(cell, record):
                    continue
                group.append(OwnCell(cell, record, read_losses(store, cell)))
                num_rows = sum(each.losses.num_rows for each in group)
                if num_rows >= MAX_ROWS or len(group) >= MAX_CELLS:
                    yield tuple(group)
                    group = []
    except TidemarkError:
        if group:
            yield tuple(group)
        raise
    if group:
        yield tuple(group)


def read_losses(store: Store, cell: Cell) -> pa.Table:
    """Read the losses of a cell.

    Raises:
        StorageError: its file is missing or damaged.
    """
    try:
        with store.open(cell.path) as file:
            return pq.read_table(file)
    except (pa.ArrowInvalid, OSError) as error:
        raise StorageError(
            f"{store.url(cell.path)} is damaged ({error}); delete it and score again"
        ) from error


def provenance_of(group: Sequence[OwnCell]) -> pa.Table:
    """Return what the losses of some cells follow from, one row a cell."""
    rows = [
        {
            **each.key,
            "partition_digest": each.cell.partition_digest,
            "partition_version": each.cell.partition_version,
            "scoring": each.cell.scoring,
        }
        for each in group
    ]
    return pa.Table.from_pylist(rows, schema=_PROVENANCE)


def records_of(group: Sequence[OwnCell]) -> dict[str, pa.Table]:
    """Lay the records of some cells out as rows of the tables that they land in, by their names."""
    tables = [record_tables(each.key, each.record) for each in group if each.record is not None]
    return {
        name: pa.concat_tables([schema.empty_table(), *(table[name] for table in tables)])
        for name, schema in RECORD_TABLES.items()
    }
