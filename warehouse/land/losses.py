"""Landing of losses, documents, models, sources and protocols in the warehouse.

A cell (model, source, month, protocol) lands exactly once, so a killed run can be repeated.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from core.cells.canary import CanaryRecord
from core.cells.losses import Cell
from core.corpus import simulated
from core.corpus.partition import Seal, read_documents
from core.errors import MalformedInput, SchemaMismatch, TidemarkError, WarehouseError
from core.schemas.tables import DOCUMENTS, LOSSES, MEDIA
from core.schemas.validation import validate
from core.settings import Settings
from core.storage.regular import require_regular
from core.storage.store import Store
from warehouse.database.statements import Statements
from warehouse.database.writer import connected, locked, transaction
from warehouse.land.cells import (
    DIMENSIONS,
    DOCUMENT_COLUMNS,
    NO_PROVENANCE,
    RECORD_TABLES,
    ScoredCell,
    as_table,
    provenance_of,
    read_scored,
    records_of,
)
from warehouse.land.incoming import Incoming
from warehouse.land.landed import LandedCells, find_landed, naive_utc, partition_key


@dataclass(frozen=True)
class Landed:
    """The numbers of new or changed cells and rows; both numbers are 0 if nothing was new."""

    num_cells: int
    num_rows: int
    faults: tuple[TidemarkError, ...] = ()  # an error for each cell that could not land


@contextlib.contextmanager
def open_warehouse(settings: Settings) -> Iterator[Warehouse]:
    """Yield the warehouse for writing; wait for the lock of its file.

    Raises:
        WarehouseError: the lock is held for six hours; the file is damaged.
    """
    with locked(settings), connected(settings) as connection:
        yield Warehouse(connection, Store(settings.home))


class Warehouse:
    """The warehouse, open for writing; ``open_warehouse`` creates instances."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, store: Store) -> None:
        self._connection = connection
        self._store = store
        self._statements = Statements(connection)
        self._incoming = Incoming(self._statements)

    def find_landed(self, model: str) -> LandedCells:
        """Return the landed cells of a model, and all landed partitions."""
        return find_landed(self._statements, model)

    def land_cells(self, cells: Sequence[Cell]) -> Landed:
        """Land the losses of cells that tidemark scored; replace landed rows of the same cells.

        A cell's scoring record, if any, lands together with the losses. Several small cells land in
        one transaction. A cell with a file that cannot be read, or an invalid row, is left out: its
        error is in ``faults``. ``cells`` are distinct cells of one model.

        Raises:
            StorageError: the store does not answer; all earlier cells have landed.
        """
        if not cells:
            return Landed(0, 0)
        results: list[Landed] = []
        faults: list[TidemarkError] = []
        for group in read_scored(self._store, cells, self.find_landed(cells[0].model)):
            for result in self._land_scored(group) if isinstance(group, tuple) else [group]:
                if isinstance(result, Landed):
                    results.append(result)
                else:
                    faults.append(result)
        num_rows = sum(each.num_rows for each in results)
        return Landed(sum(each.num_cells for each in results), num_rows, tuple(faults))

    def _land_scored(self, group: tuple[ScoredCell, ...]) -> Iterator[Landed | TidemarkError]:
        """Land cells in one transaction; if any cell is invalid, land them one by one."""
        where = f"losses of {group[0].cell}"
        if len(group) > 1:
            where += f" and {len(group) - 1} more"
        try:
            self._incoming.stage([pa.concat_tables([each.losses for each in group])], where)
        except SchemaMismatch as error:
            if len(group) == 1:
                yield error
                return
            for each in group:
                yield from self._land_scored((each,))
            return
        self._statements.run("find_touched")
        with transaction(self._connection, f"land {where}"):
            self._empty_records()
            landed = self._insert(provenance_of(group))
            self._insert_records(group)
        yield landed

    def _insert_records(self, group: tuple[ScoredCell, ...]) -> None:
        """Write the costs and further facts of scoring into the tables of ``RECORD_TABLES``."""
        for name, rows in records_of(group).items():
            table = pa.Table.from_pylist(rows, schema=self._statements.columns(name))
            with self._statements.given(record_to_land=table):
                self._statements.upsert(name, "record_to_land", RECORD_TABLES[name])

    def land_file(self, path: Path, replace: bool = False) -> Landed:
        """Land imported losses from a Parquet file of schema LOSSES, with any number of cells.

        New rows are added to landed cells. A row that equals the landed row with the same key is
        skipped. All rows land in one transaction. The file may be larger than memory. ``replace``
        overwrites landed losses that differ, and landed cells of other model revisions.

        Raises:
            MalformedInput: the file is not a Parquet file, or is a pipe or a device.
            SchemaMismatch: a row violates schema LOSSES or is duplicate; the message names it.
            CellConflict: a row differs from the landed row with the same key; the message names it.
        """
        require_regular(path)
        try:
            with self._incoming.read_file(path):
                return self._land_imported(str(path), replace)
        # Of a damaged schema, names may not be UTF-8, and types may be unknown.
        except (pa.ArrowException, OSError, ValueError, LookupError) as error:
            raise MalformedInput(
                f"{path} cannot be read as Parquet ({error}); nothing of it was landed"
            ) from error

    def land_losses(self, table: pa.Table, where: str, replace: bool = False) -> Landed:
        """Land imported losses from a table; ``where`` names it in messages. See ``land_file``."""
        self._incoming.stage([validate(table, LOSSES, where)], where)
        return self._land_imported(where, replace)

    def _land_imported(self, where: str, replace: bool) -> Landed:
        """Land the incoming losses, which tidemark has not scored; see ``land_file``."""
        self._incoming.refuse_twin(where)
        num_rows = self._incoming.merge(where, replace)
        with transaction(self._connection, f"land {where}"):
            if replace:
                self._empty_records()
            num_cells = self._insert(NO_PROVENANCE).num_cells
        return Landed(num_cells, num_rows)

    def land_documents(self, seal: Seal) -> bool:
        """Replace a partition's landed documents with its sealed documents, without their texts.

        Returns:
            True if anything changed.

        Raises:
            StorageError: a file of the partition is missing or damaged.
        """
        key = partition_key(seal.partition)
        if self._statements.run("find_partition", key) == [(seal.digest, seal.regime)]:
            return False
        version = {
            "partition_digest": seal.digest,
            "partition_version": seal.version,
            "num_documents": seal.num_documents,
            "num_bytes": seal.num_bytes,
            "regime": seal.regime,
        }
        columns = self._statements.columns("landed_partitions")
        partition = pa.Table.from_pylist([key | version], schema=columns)
        table = self._read_documents(seal)
        self._incoming.read_partition(key)
        with (
            self._statements.given(documents_to_land=table, partition_to_land=partition),
            transaction(self._connection, f"land the documents of {seal.partition}"),
        ):
            self._statements.run("date_documents")
            self._statements.replace("documents", key, "dated_documents")
            self._statements.replace("landed_partitions", key, "partition_to_land")
            # Recompute standard errors and replicates: the clusters of documents may have changed.
            self._insert_sums(NO_PROVENANCE)
        return True

    def _read_documents(self, seal: Seal) -> pa.Table:
        """Read DOCUMENT_COLUMNS of a partition; ``num_chars`` of images and recordings is 0."""
        schema = DOCUMENTS if seal.is_text else MEDIA
        columns = pa.schema(
            [schema.field(name) for name in DOCUMENT_COLUMNS if name in schema.names]
        )
        batches = read_documents(self._store, seal, columns=columns.names)
        table = _without_zone(pa.Table.from_batches(list(batches), schema=columns), "event_time")
        if seal.is_text:
            return table
        return table.append_column("num_chars", pa.repeat(pa.scalar(0), table.num_rows))

    def upsert_models(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert or replace rows of table ``models``; key ``name`` denotes column ``model``.

        A Month becomes its first day; keys without a column are ignored.
        """
        self._upsert("models", rows)

    def landed_models(self) -> dict[str, str | None]:
        """Return the revision of every model that the warehouse names; None if unknown."""
        return dict(self._statements.run("find_landed_models"))

    def upsert_sources(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert or replace rows of table ``sources``; key ``name`` denotes column ``source``.

        The licence of a source with simulated documents is the simulator's.
        """
        licence = {"licence": simulated.LICENCE}
        simulated_sources = {name for (name,) in self._statements.run("list_sources_of", licence)}
        stated = [{**row, **(licence if row["name"] in simulated_sources else {})} for row in rows]
        self._upsert("sources", stated)

    def upsert_protocols(self, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert or replace rows of table ``protocols``."""
        self._upsert("protocols", rows)

    def add_canary_runs(self, records: Sequence[CanaryRecord]) -> None:
        """Insert runs of the canary (a check of loss drift) that have not landed."""
        rows = []
        for record in records:
            versions = json.dumps(record.versions, sort_keys=True)
            rows.append({**dict(record), "run_at": naive_utc(record.run_at), "versions": versions})
        table = pa.Table.from_pylist(rows, schema=self._statements.columns("canary_runs"))
        with self._statements.given(rows_to_land=table):
            self._statements.upsert("canary_runs", "rows_to_land", ("run_at", "device", "dtype"))

    def _upsert(self, dimension: str, rows: Sequence[Mapping[str, object]]) -> None:
        """Insert or replace rows of table ``models``, ``sources`` or ``protocols`` by key."""
        if rows:
            table = as_table(rows, dimension, self._statements.columns(dimension))
            key = [DIMENSIONS[dimension]]
            with self._statements.given(rows_to_land=table):
                self._statements.upsert(dimension, "rows_to_land", key)

    def _insert(self, provenance: pa.Table) -> Landed:
        """Replace the landed rows of the staged cells, and the sums over them."""
        run = self._statements.run
        num_rows, num_cells = self._incoming.count()
        self._statements.delete_touched("chunk_losses")
        num_inserted = self._statements.insert("chunk_losses", "incoming")
        if num_inserted != num_rows:
            raise WarehouseError(
                f"{num_inserted} rows were read where {num_rows} had been counted: another process "
                "is writing the file; nothing was landed. Land it again when that has ended"
            )
        self._insert_sums(provenance)
        run("drop_stray_tokenizers")
        for dimension in DIMENSIONS:
            self._statements.add_names(dimension, "landed_cells")
        return Landed(num_cells, num_rows)

    def _insert_sums(self, provenance: pa.Table) -> None:
        """Recompute sums, sums by kind and bootstrap replicates of the incoming cells."""
        run = self._statements.run
        run("group_clusters")
        for table in ("landed_cells", "cell_kinds", "cell_replicates"):
            self._statements.delete_touched(table)
        with self._statements.given(provenance=provenance):
            run("insert_cells")
        run("insert_cell_kinds")
        run("seed_clusters")
        run("insert_replicates")

    def sum_again(self, key: Mapping[str, object]) -> None:
        """Recompute the sums of a partition's cells after some of their rows were deleted."""
        self._incoming.read_partition(key)
        self._insert_sums(NO_PROVENANCE)

    def _empty_records(self) -> None:
        for table in ("cell_costs", "cell_milestones", "byte_class_losses"):
            self._statements.delete_touched(table)


def _without_zone(table: pa.Table, name: str) -> pa.Table:
    """Return the table with the time zone removed from a column of UTC times."""
    naive = pc.cast(table[name], pa.timestamp("us"))
    return table.set_column(table.schema.get_field_index(name), name, naive)
