"""Landing: losses and dimensions go into the writer's database, each in one transaction.

A cell (model, source, month, protocol) lands exactly once: landing what is landed already changes
nothing, so a killed run is simply run again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from core.cell_record import CellRecord, read_cell_record
from core.cells import Cell
from core.corpus import Partition, Seal, read_documents
from core.errors import CellConflict, MalformedInput, SchemaMismatch, StorageError
from core.schemas import DOCUMENTS, LOSSES, MEDIA, validate
from core.settings import Settings
from core.storage import Store
from warehouse.dimensions import (
    DOCUMENT_COLUMNS,
    as_table,
    canary_table,
    naive_utc,
    record_tables,
)
from warehouse.schema import read_sql
from warehouse.writer import connected, explain_database_errors, locked, transaction

_BATCH_ROWS = 245_760  # two of DuckDB's row groups: partial ones are compressed twice


@dataclass(frozen=True)
class Landed:
    """What landing changed; both counts are 0 where everything was landed already."""

    num_cells: int
    num_rows: int


@contextlib.contextmanager
def open_warehouse(settings: Settings) -> Iterator[Warehouse]:
    """Yield the warehouse for writing; waits while another process has it.

    Raises:
        WarehouseError: another process keeps it for hours, or the file is damaged.
    """
    with locked(settings), connected(settings) as connection:
        yield Warehouse(connection, Store(settings.home))


class Warehouse:
    """The writer's database, open; made by ``open_warehouse``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, store: Store) -> None:
        self._connection = connection
        self._store = store

    def land_cell(self, cell: Cell, losses: pa.Table | None = None) -> Landed:
        """Land the losses of one of our own cells, in place of what was landed under its key.

        The record beside them lands with them; cells of older versions have none.

        Args:
            cell: what was scored.
            losses: its rows, schema LOSSES; None reads ``cell.path`` from the data root.

        Raises:
            SchemaMismatch: a row is not of LOSSES, or not of this cell; nothing has changed.
            StorageError: the cell's file is missing or damaged.
            MalformedInput: the cell's record is damaged.
        """
        record = read_cell_record(self._store, cell)
        provenance = {"partition_digest": cell.partition_digest, "scoring": cell.scoring}
        key = {
            "model": cell.model,
            "revision": cell.revision,
            "protocol": cell.protocol,
            **_partition_key(cell.partition),
        }
        scored_at = {"scored_at": naive_utc(record.scored_at) if record else None}
        if self._run("find_cell", {**key, **provenance, **scored_at}):
            return Landed(0, 0)
        where = f"losses of {cell}"
        if losses is None:
            losses = self._read_losses(cell)
        self._stage([losses], where)
        if row := self._first("find_stranger", key):
            raise SchemaMismatch(f"{where}: a row is of another cell: {_show(row)}")
        self._run("stage_touched")
        with transaction(self._connection, f"land {where}"):
            self._empty_records()
            num_cells = self._insert(**provenance)
            if record is not None:
                self._insert_record(key, record)
        return Landed(num_cells, losses.num_rows)

    def _read_losses(self, cell: Cell) -> pa.Table:
        try:
            with self._store.open(cell.path) as file:
                return pq.read_table(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise StorageError(
                f"{self._store.url(cell.path)} is damaged ({error}); delete it and score again"
            ) from error

    def land_file(self, path: Path, replace: bool = False) -> Landed:
        """Land foreign losses: a Parquet file of schema LOSSES, of any number of cells.

        Rows are added to cells that are landed already; rows that are landed just so are passed
        over.

        Args:
            path: read in batches, so it may be larger than memory.
            replace: where a chunk is landed with other losses, the file's take their place; where
                a cell is landed for another revision of the model, the file's rows replace it.

        Raises:
            MalformedInput: not a Parquet file.
            SchemaMismatch: names the first row that is not of LOSSES, or comes twice.
            CellConflict: names the first row that disagrees with what is landed.
        """
        try:
            with path.open("rb") as stream, pq.ParquetFile(stream) as file:
                batches = (
                    pa.Table.from_batches([batch])
                    for batch in file.iter_batches(batch_size=_BATCH_ROWS)
                )
                return self.land_losses(batches, str(path), replace)
        except (pa.ArrowInvalid, OSError) as error:
            raise MalformedInput(
                f"{path} cannot be read as Parquet ({error}); nothing of it was landed"
            ) from error

    def land_losses(self, tables: Iterable[pa.Table], where: str, replace: bool = False) -> Landed:
        """Land foreign losses from tables, all in one transaction; as ``land_file``."""
        num_rows = self._stage(tables, where)
        [(num_touched,)] = self._run("stage_touched")
        if num_touched:
            num_rows = self._merge(where, replace)
        with transaction(self._connection, f"land {where}"):
            if replace:
                self._empty_records()
            num_cells = self._insert(partition_digest=None, scoring=None)
        return Landed(num_cells, num_rows)

    def land_documents(self, seal: Seal) -> bool:
        """Land a sealed partition's documents (without content), in place of its former ones.

        Returns:
            Whether anything changed.

        Raises:
            StorageError: a part is missing or damaged.
        """
        key = _partition_key(seal.partition)
        if self._run("find_partition", key) == [(seal.digest,)]:
            return False
        table = self._read_documents(seal)
        self._run("create_incoming")
        self._run("stage_partition", key)
        self._run("stage_touched")
        with (
            transaction(self._connection, f"land the documents of {seal.partition}"),
            self._given("documents_to_land", table),
        ):
            self._run("delete_documents", key)
            self._run("insert_documents")
            self._run("delete_partition", key)
            size = {"num_documents": seal.num_documents, "num_bytes": seal.num_bytes}
            self._run("insert_partition", {**key, "partition_digest": seal.digest, **size})
            # Clusters may be others now, and replicates follow them.
            self._run("empty_cell_replicates")
            self._run("insert_replicates")
        return True

    def _read_documents(self, seal: Seal) -> pa.Table:
        """Read what the warehouse keeps of documents; images and recordings have 0 characters."""
        schema = DOCUMENTS if seal.is_text else MEDIA
        columns = pa.schema(
            [schema.field(name) for name in DOCUMENT_COLUMNS if name in schema.names]
        )
        batches = read_documents(self._store, seal, columns=columns.names)
        table = pa.Table.from_batches(list(batches), schema=columns)
        if seal.is_text:
            return table
        return table.append_column("num_chars", pa.repeat(pa.scalar(0), table.num_rows))

    def upsert_models(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert or replace models; keys as the columns of table ``models`` (``name`` = model).

        A Month becomes its first day; keys that the table does not have are passed over.
        """
        self._upsert("models", rows)

    def landed_models(self) -> dict[str, str]:
        """Return the revision of every model of which something has landed."""
        return {str(model): str(revision) for model, revision in self._run("find_landed_models")}

    def upsert_sources(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert or replace sources; keys as the columns of table ``sources``."""
        self._upsert("sources", rows)

    def upsert_protocols(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert or replace protocols; keys as the columns of table ``protocols``."""
        self._upsert("protocols", rows)

    def add_canary_run(self, row: Mapping[str, object]) -> None:
        """Record a run of the canary; nothing changes where it is recorded already.

        Args:
            row: the columns of table ``canary_runs``; ``run_at`` with its time zone, ``versions``
                as a mapping or its JSON.

        Raises:
            SchemaMismatch: a column is missing or of another type.
        """
        table = canary_table(row)
        with (
            transaction(self._connection, "record a run of the canary"),
            self._given("rows_to_land", table),
        ):
            self._run("insert_canary_runs")

    def _upsert(self, dimension: str, rows: Sequence[Mapping[str, object]]) -> None:
        if not rows:
            return
        table = as_table(rows, dimension)
        with (
            transaction(self._connection, f"land {dimension}"),
            self._given("rows_to_land", table),
        ):
            self._run(f"upsert_{dimension}")

    def _stage(self, tables: Iterable[pa.Table], where: str) -> int:
        """Fill ``incoming``, check what can be checked by itself, and return the number of rows."""
        self._run("create_incoming")
        num_rows = 0
        for table in tables:
            name = f"{where} (rows from {num_rows})" if num_rows else where
            with self._given("losses_to_land", validate(table, LOSSES, name)):
                self._run("stage_losses")
            num_rows += table.num_rows
        if not num_rows:
            raise SchemaMismatch(f"{where}: has no rows, so there is nothing to land")
        if row := self._first("find_duplicate"):
            raise SchemaMismatch(f"{where}: a chunk comes more than once: {_show(row)}")
        if row := self._first("find_mixed_revisions"):
            raise SchemaMismatch(f"{where}: a cell has two revisions of its model: {_show(row)}")
        return num_rows

    def _merge(self, where: str, replace: bool) -> int:
        """Stage what the touched cells shall hold; return how many rows of that are new."""
        self._run("drop_landed_rows")
        if not replace and (row := self._first("find_conflict")):
            raise CellConflict(
                f"{where}: disagrees with what is landed: {_show(row)}; nothing of it was landed. "
                "Use --replace to put the file's losses in their place"
            )
        num_rows = self._count()
        self._run("stage_touched")
        self._run("merge_landed_rows")
        return num_rows

    def _insert(self, partition_digest: str | None, scoring: str | None) -> int:
        """Put what is staged in place of its touched cells; return the number of cells."""
        provenance = {"partition_digest": partition_digest, "scoring": scoring}
        for table in ("chunk_losses", "landed_cells", "cell_replicates"):
            self._run(f"empty_{table}")
        self._run("insert_losses")
        [(num_cells,)] = self._run("insert_cells", provenance)
        self._run("insert_replicates")
        self._run("drop_stray_tokenizers")
        for dimension in ("models", "sources", "protocols"):
            self._run(f"name_{dimension}")
        return int(num_cells)

    def _empty_records(self) -> None:
        """Forget what scoring the touched cells took: their losses are about to be others."""
        self._run("empty_cell_costs")
        self._run("empty_cell_milestones")

    def _insert_record(self, key: Mapping[str, object], record: CellRecord) -> None:
        for name, table in record_tables(key, record).items():
            with self._given("record_to_land", table):
                self._run(f"insert_{name}")

    def _count(self) -> int:
        [(count,)] = self._run("count_incoming")
        return int(count)

    def _run(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> list[tuple[Any, ...]]:
        """Run ``landing/<statement>.sql`` with bound parameters and return its rows."""
        with explain_database_errors(f"run {statement}"):
            text = read_sql("landing", statement)
            return self._connection.execute(text, parameters or None).fetchall()

    def _first(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> dict[str, object] | None:
        """Return the only row of a statement by column name, or None."""
        rows = self._run(statement, parameters)
        names = [column[0] for column in self._connection.description or []]
        return dict(zip(names, rows[0], strict=True)) if rows else None

    @contextlib.contextmanager
    def _given(self, name: str, table: pa.Table) -> Iterator[None]:
        """Let SQL read an Arrow table under a name."""
        self._connection.register(name, table)
        try:
            yield
        finally:
            self._connection.unregister(name)


def _partition_key(partition: Partition) -> dict[str, object]:
    month = partition.month
    return {"source": partition.source, "month": month.first_day if month else None}


def _show(row: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in row.items())
