"""Landing: losses and dimensions go into the writer's database, each in one transaction.

A cell (model, source, month, protocol) lands exactly once: landing what is landed already changes
nothing, so a killed run is simply run again. Where several processes write one lake, those take
turns that write the same cells, partitions or names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from core.cell_record import read_cell_record
from core.cells import Cell
from core.corpus import Partition, Seal, read_documents
from core.errors import MalformedInput, SchemaMismatch, StorageError, WarehouseError
from core.schemas import DOCUMENTS, DUPLICATES, MEDIA, validate
from core.settings import Settings
from core.storage import Store
from warehouse.dimensions import (
    DOCUMENT_COLUMNS,
    as_table,
    canary_table,
)
from warehouse.incoming import Incoming
from warehouse.landed_already import DUPLICATES_FILE, LandedAlready, find_landed
from warehouse.own_cells import NO_PROVENANCE, OwnCell, provenance_of, read_own, records_of
from warehouse.statements import Statements
from warehouse.turns import NAMES, WAREHOUSE, Turns, partition_turn
from warehouse.writer import commit, connected, locked, turns_of


@dataclass(frozen=True)
class Landed:
    """What landing changed; both counts are 0 where everything was landed already."""

    num_cells: int
    num_rows: int


@contextlib.contextmanager
def open_warehouse(settings: Settings) -> Iterator[Warehouse]:
    """Yield the warehouse for writing; waits while another process has it, if it is no lake.

    Raises:
        WarehouseError: another process keeps it for hours, the file is damaged, or the lake cannot
            be reached.
    """
    with contextlib.ExitStack() as stack:
        if settings.warehouse is None:
            stack.enter_context(locked(settings))
        turns = stack.enter_context(turns_of(settings))
        connection = stack.enter_context(connected(settings))
        yield Warehouse(connection, Store(settings.home), turns)


class Warehouse:
    """The writer's database, open; made by ``open_warehouse``."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, store: Store, turns: Turns) -> None:
        self._connection = connection
        self._store = store
        self._turns = turns
        self._statements = Statements(connection)
        self._incoming = Incoming(self._statements)

    def find_landed(self, model: str) -> LandedAlready:
        """Find out what is landed of a model, and of all partitions."""
        return find_landed(self._statements, model)

    def land_cells(self, cells: Sequence[Cell]) -> Landed:
        """Land losses of our own cells, in place of what was landed under their keys.

        The record beside a cell's losses lands with them; cells of older versions have none. Small
        cells share a transaction. Those before one that cannot land have landed.

        Args:
            cells: of one model, each once.

        Raises:
            SchemaMismatch: a row is not of LOSSES, or not of its cell.
            StorageError: a cell's file is missing or damaged.
            MalformedInput: a cell's record is damaged.
        """
        if not cells:
            return Landed(0, 0)
        landed = self.find_landed(cells[0].model)
        landings = [self._land_own(group) for group in read_own(self._store, cells, landed)]
        return Landed(
            sum(each.num_cells for each in landings), sum(each.num_rows for each in landings)
        )

    def land_cell(self, cell: Cell, losses: pa.Table | None = None) -> Landed:
        """Land the losses of one cell; as ``land_cells``.

        Args:
            cell: what was scored.
            losses: its rows, schema LOSSES; None reads ``cell.path`` from the data root.
        """
        if losses is None:
            return self.land_cells([cell])
        record = read_cell_record(self._store, cell)
        if self.find_landed(cell.model).has(cell, record):
            return Landed(0, 0)
        return self._land_own((OwnCell(cell, record, losses),))

    def _land_own(self, group: tuple[OwnCell, ...]) -> Landed:
        """Land some cells in one transaction; one by one where one of them is not sound."""
        try:
            for each in group:
                each.check()
            where = group[0].where + (f" and {len(group) - 1} more" if len(group) > 1 else "")
            self._incoming.stage([pa.concat_tables([each.losses for each in group])], where)
        except SchemaMismatch:
            if len(group) == 1:
                raise
            landings = [self._land_own((each,)) for each in group]
            return Landed(sum(x.num_cells for x in landings), sum(x.num_rows for x in landings))
        with self._turn_for_incoming():
            others = self._not_landed_meanwhile(group)
            if len(others) == len(group):
                self._statements.run("find_touched")
                return commit(self._connection, f"land {where}", lambda: self._insert_own(group))
        return self._land_own(others) if others else Landed(0, 0)

    def _not_landed_meanwhile(self, group: tuple[OwnCell, ...]) -> tuple[OwnCell, ...]:
        """Leave those out that another writer of the lake was faster with."""
        if not self._turns.are_needed:
            return group
        landed = self.find_landed(group[0].cell.model)
        return tuple(each for each in group if not landed.has(each.cell, each.record))

    def _insert_own(self, group: tuple[OwnCell, ...]) -> Landed:
        self._empty_records()
        landed = self._insert(provenance_of(group))
        for name, table in records_of(group).items():
            with self._statements.given("record_to_land", table):
                self._statements.run(f"insert_{name}")
        return landed

    def land_file(self, path: Path, replace: bool = False) -> Landed:
        """Land foreign losses: a Parquet file of schema LOSSES, of any number of cells.

        Rows are added to cells that are landed already; rows that are landed just so are passed
        over. All land in one transaction.

        Args:
            path: read where it is, in passes, so it may be larger than memory.
            replace: where a chunk is landed with other losses, the file's take their place; where
                a cell is landed for another revision of the model, the file's rows replace it.

        Raises:
            MalformedInput: not a Parquet file.
            SchemaMismatch: names the first row that is not of LOSSES, or comes twice.
            CellConflict: names the first row that disagrees with what is landed.
        """
        try:
            with self._incoming.read_file(path):
                return self._land_foreign(str(path), replace)
        except (pa.ArrowInvalid, OSError) as error:
            raise MalformedInput(
                f"{path} cannot be read as Parquet ({error}); nothing of it was landed"
            ) from error

    def land_losses(self, table: pa.Table, where: str, replace: bool = False) -> Landed:
        """Land foreign losses from a table; as ``land_file``."""
        self._incoming.stage([table], where)
        return self._land_foreign(where, replace)

    def _land_foreign(self, where: str, replace: bool) -> Landed:
        def land() -> Landed:
            if replace:
                self._empty_records()
            return self._insert(NO_PROVENANCE)

        with self._turn_for_incoming():
            num_rows = self._incoming.merge(where, replace)
            landed = commit(self._connection, f"land {where}", land)
        return Landed(landed.num_cells, num_rows)

    def land_documents(self, seal: Seal) -> bool:
        """Land a sealed partition's documents (without content), in place of its former ones.

        Returns:
            Whether anything changed.

        Raises:
            StorageError: a part is missing or damaged.
        """
        key = _partition_key(seal.partition)
        run = self._statements.run
        if run("find_partition", key) == [(seal.digest,)]:
            return False
        table = self._read_documents(seal)

        def land() -> None:
            run("delete_documents", key)
            run("insert_documents")
            run("delete_partition", key)
            size = {"num_documents": seal.num_documents, "num_bytes": seal.num_bytes}
            of_seal = {"partition_digest": seal.digest, "partition_version": seal.version}
            run("insert_partition", {**key, **of_seal, **size})
            # Clusters may be others now, and standard errors and replicates follow them.
            self._insert_sums(NO_PROVENANCE)

        with (
            self._turn_for_documents(key),
            self._statements.given("documents_to_land", table),
        ):
            if run("find_partition", key) == [(seal.digest,)]:  # another writer was faster
                return False
            self._incoming.read_partition(key)
            commit(self._connection, f"land the documents of {seal.partition}", land)
        return True

    def land_duplicates(self, seal: Seal) -> bool:
        """Land what was found beside a partition of its documents that duplicate earlier ones.

        Returns:
            Whether anything changed.

        Raises:
            SchemaMismatch: ``duplicate_of.parquet`` is not of DUPLICATES.
            StorageError: it is damaged.
        """
        path, key = f"{seal.folder}/{DUPLICATES_FILE}", _partition_key(seal.partition)
        if seal.partition.month is None:
            return False
        table = DUPLICATES.empty_table()
        if self._store.exists(path):
            table = validate(self._read_table(path), DUPLICATES, where=path)
        naive = pc.cast(table["found_at"], pa.timestamp("us"))  # in UTC, as the tables have it
        table = table.set_column(table.schema.get_field_index("found_at"), "found_at", naive)
        run = self._statements.run

        def land() -> None:
            run("delete_duplicates", key)
            run("insert_duplicates")

        with self._statements.given("duplicates_to_land", table):
            if run("find_duplicates", key) == [(len(table), 0)]:
                return False
            with self._turns.take([WAREHOUSE]):
                commit(self._connection, f"land the duplicates of {seal.partition}", land)
        return True

    def _read_table(self, path: str) -> pa.Table:
        try:
            with self._store.open(path) as file:
                return pq.read_table(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise StorageError(
                f"{self._store.url(path)} is damaged ({error}); delete it"
            ) from error

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
        return {
            str(model): str(revision)
            for model, revision in self._statements.run("find_landed_models")
        }

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
            self._turns.take(["canary_runs"], [WAREHOUSE]),
            self._statements.given("rows_to_land", table),
        ):
            commit(
                self._connection,
                "record a run of the canary",
                lambda: self._statements.run("insert_canary_runs"),
            )

    def _upsert(self, dimension: str, rows: Sequence[Mapping[str, object]]) -> None:
        if not rows:
            return
        table = as_table(rows, dimension)
        with (
            self._turns.take([NAMES], [WAREHOUSE]),
            self._statements.given("rows_to_land", table),
        ):
            commit(
                self._connection,
                f"land {dimension}",
                lambda: self._statements.run(f"upsert_{dimension}"),
            )

    @contextlib.contextmanager
    def _turn_for_incoming(self) -> Iterator[None]:
        """Keep those out who would write the cells that are incoming, or what these need."""
        if not self._turns.are_needed:
            yield
            return
        with self._turns.take(*self._incoming.turns()):
            yield

    @contextlib.contextmanager
    def _turn_for_documents(self, key: Mapping[str, object]) -> Iterator[None]:
        """Keep those out who would write a partition, or cells of it."""
        if not self._turns.are_needed:
            yield
            return
        self._incoming.read_partition(key)
        is_replaced = self._statements.run("find_partition", key) or self._incoming.count()[1]
        alone = WAREHOUSE if is_replaced else partition_turn(key["source"], key["month"])
        with self._turns.take([alone], [WAREHOUSE]):
            yield

    def _insert(self, provenance: pa.Table) -> Landed:
        """Put what is incoming in place of the touched cells."""
        run = self._statements.run
        num_rows, num_cells = self._incoming.count()
        run("empty_chunk_losses")
        [(num_inserted,)] = run("insert_losses")
        if num_inserted != num_rows:
            raise WarehouseError(
                f"{num_inserted} rows were read where {num_rows} had been counted: another process "
                "is writing the file; nothing was landed. Land it again when that has ended"
            )
        self._insert_sums(provenance)
        run("drop_stray_tokenizers")
        for dimension in ("models", "sources", "protocols"):
            run(f"name_{dimension}")
        return Landed(num_cells, num_rows)

    def _insert_sums(self, provenance: pa.Table) -> None:
        """Record the touched cells anew, with sums and replicates of what is incoming."""
        run = self._statements.run
        run("group_clusters")
        run("empty_landed_cells")
        with self._statements.given("provenance", provenance):
            run("insert_cells")
        run("empty_cell_replicates")
        run("seed_clusters")
        run("insert_replicates")

    def sum_anew(self, key: Mapping[str, object]) -> None:
        """Sum the landed cells of one partition anew, some of whose rows are gone.

        Args:
            key: source, and month (a date or None) of the partition.
        """
        self._incoming.read_partition(key)
        self._insert_sums(NO_PROVENANCE)

    def _empty_records(self) -> None:
        """Forget what scoring the touched cells took: their losses are about to be others."""
        self._statements.run("empty_cell_costs")
        self._statements.run("empty_cell_milestones")


def _partition_key(partition: Partition) -> dict[str, object]:
    month = partition.month
    return {"source": partition.source, "month": month.first_day if month else None}
