"""Conversion of scored cells to rows of the warehouse's tables.

The cost of landing is mostly per transaction, so many small cells land in one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from core.cells.losses import Cell
from core.cells.record import CellRecord, read_cell_record
from core.errors import DamagedFile, MalformedInput, SchemaMismatch, StorageError, TidemarkError
from core.month import Month
from core.schemas.reading import REMEDY, read_valid
from core.schemas.tables import LOSSES
from core.storage.store import Store
from warehouse.database.statements import show
from warehouse.land.landed import LandedCells, naive_utc, partition_key

# Columns of schema DOCUMENTS that the warehouse stores or derives a column from; not the text.
DOCUMENT_COLUMNS = [
    "document_id", "source", "month", "category", "language", "licence", "cluster_id",
    "num_chars", "num_bytes", "title", "url", "event_time", "extra", "native_id",
]  # fmt: skip

DIMENSIONS = {"models": "model", "sources": "source", "protocols": "protocol"}  # key by table name
_CELL = ("model", "source", "month", "protocol")
RECORD_TABLES = {  # key by table name
    "cell_costs": _CELL,
    "cell_milestones": (*_CELL, "milestone"),
    "byte_class_losses": (*_CELL, "byte_class"),
    "tokenizers": ("model", "revision"),
}


def as_table(rows: Sequence[Mapping[str, object]], dimension: str, columns: pa.Schema) -> pa.Table:
    """Convert rows to an Arrow table for table ``models``, ``sources`` or ``protocols``.

    Rows have values by column name; ``name`` denotes the key column. A Month becomes its first day.
    Missing columns become NULL; unknown columns are ignored.

    Raises:
        SchemaMismatch: a key is missing or duplicate, or a value has the wrong type.
    """
    key = DIMENSIONS[dimension]
    plain = []
    for row in rows:
        named = {key: row.get("name"), **row}
        plain.append({name: _first_day_of(value) for name, value in named.items()})
    names = [row[key] for row in plain]
    if None in names or len(set(names)) < len(names):
        raise SchemaMismatch(f"{dimension}: every row needs a {key} of its own; got {names}")
    try:
        return pa.Table.from_pylist(plain, schema=columns)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaMismatch(f"{dimension}: {error}") from error


def _first_day_of(value: object) -> object:
    return value.first_day if isinstance(value, Month) else value


MAX_ROWS = 250_000  # maximum number of rows per transaction, which take some dozen megabytes
MAX_CELLS = 200
_NUM_READERS = 16  # number of threads that read files; an object store responds slowly
_PROVENANCE = pa.schema(
    [(name, pa.string()) for name in ("model", "source", "protocol", "partition_digest", "scoring")]
    + [("month", pa.date32()), ("partition_version", pa.int32())]
)
NO_PROVENANCE = _PROVENANCE.empty_table()


@dataclass(frozen=True)
class ScoredCell:
    """A scored cell to land, with its losses and scoring record."""

    cell: Cell
    record: CellRecord | None  # scoring time and cost; None if an old version scored
    losses: pa.Table  # valid rows of this cell


_FAULTS = (MalformedInput, SchemaMismatch, StorageError)  # errors of one cell's files


def read_scored(
    store: Store, cells: Sequence[Cell], landed: LandedCells
) -> Iterator[tuple[ScoredCell, ...] | TidemarkError]:
    """Read cells that have not landed; yield them in groups, one group per transaction.

    If a file of a cell cannot be read or is damaged, or its rows are invalid, yield the error in
    place of the cell.

    Raises:
        StorageError: the store does not answer; all earlier cells were yielded.
    """
    group: list[ScoredCell] = []
    num_rows = 0
    with ThreadPoolExecutor(_NUM_READERS) as pool:
        records = pool.map(lambda cell: _read_record(store, cell), cells)
        for cell, record in zip(cells, records, strict=True):
            scored = _read_scored(store, cell, record, landed)
            if isinstance(scored, ScoredCell):
                group.append(scored)
                num_rows += scored.losses.num_rows
            is_full = num_rows >= MAX_ROWS or len(group) >= MAX_CELLS
            # Yield the cells before a faulty one first, so that they land even if the reader stops.
            if group and (is_full or isinstance(scored, TidemarkError)):
                yield tuple(group)
                group = []
                num_rows = 0
            if isinstance(scored, TidemarkError):
                if isinstance(scored, StorageError) and not isinstance(scored, DamagedFile):
                    # If the store is away, no other cell can be read either: raises an error.
                    store.list(f"{cell.path.rpartition('/')[0]}/*")
                yield scored
    if group:
        yield tuple(group)


def _read_scored(
    store: Store, cell: Cell, record: CellRecord | TidemarkError | None, landed: LandedCells
) -> ScoredCell | TidemarkError | None:
    """Return a cell with its losses, or the error of its files, or None if it has landed."""
    if isinstance(record, TidemarkError):
        return record
    if landed.has(cell, record):
        return None
    try:
        return ScoredCell(cell, record, read_losses(store, cell))
    except _FAULTS as error:
        return error


def _read_record(store: Store, cell: Cell) -> CellRecord | TidemarkError | None:
    try:
        return read_cell_record(store, cell)
    except _FAULTS as error:
        return error


def read_losses(store: Store, cell: Cell) -> pa.Table:
    """Read and validate the losses of a cell.

    Raises:
        DamagedFile: the content of the file is damaged.
        SchemaMismatch: a row belongs to another cell or violates schema LOSSES.
    """
    remedy = f"{REMEDY} and score again"
    where = f"losses of {cell}"
    table = read_valid(store, cell.path, LOSSES, remedy, where)
    row = find_foreign_row(table, cell)
    if row:
        raise SchemaMismatch(
            f"{where}: a row is of another cell: {show(row)}; {store.url(cell.path)} is not "
            f"what was written: {remedy}"
        )
    return table


def find_foreign_row(table: pa.Table, cell: Cell) -> dict[str, object] | None:
    """Return the key of the first row that belongs to another cell, or None."""
    key = cell_key(cell)
    for name, value in key.items():
        same = pc.equal(table[name], pa.scalar(value, table[name].type))
        same = pc.is_null(table[name]) if value is None else pc.fill_null(same, False)
        if not pc.all(same).as_py():
            [row] = table.filter(pc.invert(same)).select(list(key))[:1].to_pylist()
            return dict(row)
    return None


def cell_key(cell: Cell) -> dict[str, object]:
    """Return the values of the columns that are equal in all rows of a cell."""
    names = {"model": cell.model, "revision": cell.revision, "protocol": cell.protocol}
    return names | partition_key(cell.partition)


def provenance_of(group: Sequence[ScoredCell]) -> pa.Table:
    """Return a table with the digests of each cell's text and scoring code."""
    rows = [vars(each.cell) | cell_key(each.cell) for each in group]
    return pa.Table.from_pylist(rows, schema=_PROVENANCE)


def records_of(group: Sequence[ScoredCell]) -> dict[str, list[dict[str, object]]]:
    """Convert the scoring records of cells to rows; return the rows by table name."""
    costs = []
    milestones = []
    byte_classes = []
    tokenizers = {}  # by model revision: equal in all cells
    for each in group:
        record = each.record
        if record is None:
            continue
        key = cell_key(each.cell)
        fields = record.model_dump(exclude={"tokenizer", "milestones", "byte_classes"})
        fields["versions"] = json.dumps(record.versions, sort_keys=True)
        fields["scored_at"] = naive_utc(record.scored_at)
        costs.append(key | fields)
        milestones += [key | one.model_dump() for one in record.milestones]
        byte_classes += [key | one.model_dump() for one in record.byte_classes]
        if record.tokenizer:
            tokenizers[each.cell.revision] = key | record.tokenizer.model_dump()
    return {
        "cell_costs": costs,
        "cell_milestones": milestones,
        "byte_class_losses": byte_classes,
        "tokenizers": list(tokenizers.values()),
    }
