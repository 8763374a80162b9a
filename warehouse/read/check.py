"""Integrity checks of a warehouse's database, alone or together with the data root.

Publishing skips the checks in ``checks/deep/``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from core import progress
from core.cells.losses import Cell
from core.cells.record import read_cell_record
from core.corpus.partition import Partition, Seal, partition_of
from core.errors import MalformedInput, NewerVersion, StorageError, TidemarkError
from core.schemas.tables import LOSSES
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.faults import ADVICE_ON_NEWER, QUICK_ROWS, fault_in, read_all
from warehouse.database.materialised import list_materialised
from warehouse.database.objects import digest_catalogue
from warehouse.database.repair import (
    SKIPPED,
    advise_on_snapshot,
    advise_on_writer,
    find_writer_fault,
)
from warehouse.database.schema import (
    SCHEMA_VERSION,
    WRITER,
    find_schema,
    list_views,
    qualify,
    read_sql,
    read_version,
    read_view_code,
)
from warehouse.database.statements import Statements, explain_database_errors, show
from warehouse.land.cells import find_foreign_row
from warehouse.land.landed import partition_at, partition_key
from warehouse.read.check_corpus import WITHOUT_MANIFEST, check_forgotten, check_partitions
from warehouse.read.check_files import check_files
from warehouse.read.findings import PUBLISH_AGAIN, Finding, describe, finding_of, run_checks
from warehouse.read.query import connect_to_read
from warehouse.read.scored import run_file, scored_cells

QUICK = "checks"
DEEP = "checks/deep"
_CAN_BE_READ = "database_can_be_read"
_IS_CURRENT = "schema_is_current"
# If one of these checks fails, no other check can run.
NOT_A_WAREHOUSE = (_CAN_BE_READ, _IS_CURRENT)
_UNREADABLE = "The database cannot be read: it is damaged, half-written, or none of tidemark."
_OTHER_VERSION = "The database is of another version of tidemark."


def check_database(
    path: Path, is_deep: bool = False, settings: Settings | None = None
) -> Iterator[Finding]:
    """Check a database file, without comparing it with the data root.

    Args:
        path: the database.
        is_deep: also run the checks that read every chunk, and read all rows of all tables.
        settings: settings of the data root, if the file is the published snapshot; for advice.
    """
    max_rows = None if is_deep else QUICK_ROWS
    try:
        with connect_to_read(path) as connection:
            version = _former_version(connection)
            if version:
                yield from version
                return
            read_all(connection, max_rows)
            yield from run_checks(connection, QUICK)
            yield from _check_views(connection, is_deep)
            if is_deep:
                yield from run_checks(connection, DEEP)
    except (duckdb.Error, NewerVersion) as error:
        yield _unreadable(path, error, settings)


def _unreadable(path: Path, error: Exception, settings: Settings | None) -> Finding:
    """Return the finding, with a remedy, for a database that raised an error when read."""
    row: dict[str, object] = {"file": str(path), "error": str(error)}
    if isinstance(error, NewerVersion):
        return Finding(_IS_CURRENT, _OTHER_VERSION, f"{ADVICE_ON_NEWER}.", (row,), 1)
    fault = fault_in(error, path)
    remedy = PUBLISH_AGAIN
    if fault and settings:
        remedy = f"{advise_on_snapshot(settings, fault)}."
    return Finding(_CAN_BE_READ, _UNREADABLE, remedy, (row,), 1)


def check_writer(settings: Settings, is_deep: bool = False) -> Iterator[Finding]:
    """Check that this machine's database to write can be read; one in use is not read."""
    path = settings.scratch / WRITER
    fault = find_writer_fault(settings, None if is_deep else QUICK_ROWS)
    if fault and fault.kind not in SKIPPED:
        row: dict[str, object] = {"file": str(path), "fault": fault.reason}
        meaning = "The database that landing writes cannot be read."
        remedy = f"{advise_on_writer(settings, fault)}."
        yield Finding("writer_can_be_read", meaning, remedy, (row,), 1)


def _former_version(connection: duckdb.DuckDBPyConnection) -> list[Finding]:
    """Return a finding if the schema version is not the present one, else an empty list."""
    schema = find_schema(connection, "schema_version")
    relation = f"{schema or 'internal'}.schema_version"
    [(version,)] = connection.table(relation).max("version").fetchall()
    if version == SCHEMA_VERSION:
        return []
    row = {"schema_version": version, "expected": SCHEMA_VERSION}
    return [Finding(_IS_CURRENT, _OTHER_VERSION, PUBLISH_AGAIN, (row,), 1)]


def _check_views(connection: duckdb.DuckDBPyConnection, is_deep: bool) -> Iterator[Finding]:
    """Check that DuckDB can bind every view, without reading rows."""
    is_as_made = read_version(connection).catalogue == digest_catalogue(connection)
    views = _leaf_views()
    if is_as_made and not is_deep:
        views = list_materialised()  # the digest does not cover the tables that they read
    rows: list[dict[str, object]] = []
    for view in views:
        try:  # a lazy query, as connection.table() of DuckDB 1.5 accepts no views
            connection.sql(f"from {qualify(view)}")
        except duckdb.Error as error:
            rows.append({"view": f"{view}.sql cannot be read: {error}"})
    meaning = "Views that cannot be read: a table that they read is not as it should be."
    yield from finding_of("views_can_be_read", meaning, PUBLISH_AGAIN, rows)


def _leaf_views() -> tuple[str, ...]:
    """Return the views that no other view reads. Binding these views binds all views.

    Table macros (named ``<view>_at``) are left out: view ``<view>`` reads the macro.
    """
    views = list_views()
    read = {name for file in views.values() for name in read_view_code(file).reads}
    return tuple(name for name in views if name not in read and not name.endswith("_at"))


_KEY_COLUMNS = ("model", "source", "month", "protocol")
Key = tuple[str, str, dt.date | None, str]  # values of these columns
Rows = list[dict[str, object]]

_COLUMNS = [
    "document_id", "chunk_index", "nll_nats", "num_tokens", "num_chars", "num_bytes", "reason",
]  # fmt: skip
_OF_FILES = pa.schema([("number", pa.int64()), *(LOSSES.field(name) for name in _COLUMNS)])
_SCORED = pa.schema(
    [
        *((name, pa.string()) for name in ("model", "source", "protocol")),
        ("month", pa.date32()),
        ("number", pa.int64()),  # index in the list of cells
    ]
)
_SCORE_AGAIN = (
    "Bring the file and the .json beside it back from a backup; or move both out of the data root, "
    "then run `tidemark score` again."
)
_SCORE = "Run `tidemark score` with this model: what is scored already only lands."


@dataclass
class _Root:
    """A data root to check: landed cells that tidemark scored, and all sealed versions."""

    store: Store
    connection: duckdb.DuckDBPyConnection
    cells: list[Cell]
    seals: dict[Partition, list[Seal]] = field(default_factory=dict)

    def digests(self, partition: Partition) -> list[str]:
        seals = sorted(self.seals.get(partition, []), key=lambda seal: seal.version)
        return [seal.digest for seal in seals]

    def newest_digest(self, partition: Partition) -> str | None:
        return next(reversed(self.digests(partition)), None)


def check_home(
    database: Path, store: Store, is_deep: bool = False, settings: Settings | None = None
) -> Iterator[Finding]:
    """Check a database file; if ``is_deep``, also compare it with the data root.

    ``settings`` are those of ``check_database``.
    """
    is_usable = True
    for finding in check_database(database, is_deep, settings):
        is_usable &= finding.check not in NOT_A_WAREHOUSE
        yield finding
    if is_deep and is_usable:
        with explain_database_errors(f"check {database}"), connect_to_read(database) as connection:
            yield from check_root(connection, store)


def check_root(connection: duckdb.DuckDBPyConnection, store: Store) -> Iterator[Finding]:
    """Compare landed rows with partitions, losses and records; read the other instruments' files.

    Raises:
        StorageError: the data root cannot be listed.
    """
    root = _Root(store, connection, scored_cells(connection))
    yield from check_partitions(store, root.seals)
    yield from check_forgotten(store)
    for check in (_check_documents, _check_texts, _check_records, _check_losses, _check_strays):
        yield from check(root)
    yield from check_files(store)


def check_corpus(store: Store) -> Iterator[Finding]:
    """Check the files of sealed partitions, and that removed documents are gone.

    Raises:
        StorageError: the data root cannot be listed.
    """
    yield from check_partitions(store, {})
    yield from check_forgotten(store)


def _check_documents(root: _Root) -> Iterator[Finding]:
    """Compare the landed documents with the versions that are sealed now."""
    unsealed: Rows = []
    changed: Rows = []
    for row in run_file(root.connection, "list_partitions"):
        partition = partition_at(row["source"], row["month"])
        digest = row["partition_digest"]
        newest = root.newest_digest(partition)
        if newest is None:
            unsealed.append({"folder": partition.path, "digest": digest})
        elif digest not in root.digests(partition):
            changed.append(
                {"partition": str(partition), "digest": digest, "digest_of_seal": newest}
            )
    meaning = "Partitions whose documents have landed, and of which no version is sealed now."
    yield from finding_of("landed_partitions_are_there", meaning, WITHOUT_MANIFEST, unsealed)
    meaning = "Landed documents of versions of partitions that are gone."
    remedy = "Run `tidemark score`: it lands the documents of what it scores."
    yield from finding_of("documents_match_seals", meaning, remedy, changed)


def _check_texts(root: _Root) -> Iterator[Finding]:
    """Find cells whose text is no longer sealed."""
    rows: Rows = []
    for cell in root.cells:
        digest = cell.partition_digest
        newest = root.newest_digest(cell.partition)
        if digest not in root.digests(cell.partition):
            rows.append({"cell": cell.name, "digest_scored": digest, "digest_of_seal": newest})
    meaning = "Cells that were scored on text that is gone."
    remedy = (
        "Bring the text back from a backup; or run `tidemark score` with these models: it scores "
        "the text that is sealed now. If digest_of_seal is None, seal a text first: crawl or "
        "import the month again."
    )
    yield from finding_of("cells_have_texts", meaning, remedy, rows)


def _check_records(root: _Root) -> Iterator[Finding]:
    """Read the scoring record of each landed cell again; report damaged ones."""
    rows: Rows = []
    for cell in root.cells:
        try:
            read_cell_record(root.store, cell)
        except (MalformedInput, StorageError) as error:
            rows.append({"file": cell.record_path, "problem": str(error)})
    meaning = "Records of cells that are damaged."
    yield from finding_of("records_can_be_read", meaning, _SCORE_AGAIN, rows)


def _check_losses(root: _Root) -> Iterator[Finding]:
    """Read all files of losses again, and compare them with the landed losses."""
    damaged: dict[int, str] = {}
    reader = pa.RecordBatchReader.from_batches(_OF_FILES, _losses_of_files(root, damaged))
    scored = [
        {"model": cell.model, "protocol": cell.protocol, "number": number}
        | partition_key(cell.partition)
        for number, cell in enumerate(root.cells)
    ]
    given = {"scored_cells": pa.Table.from_pylist(scored, _SCORED), "losses_of_files": reader}
    check = "losses_match_files"
    with Statements(root.connection).given(**given):
        found: Rows = run_file(root.connection, check, folder="checks/root")
    rows: Rows = [
        {"file": root.cells[number].path, "problem": problem} for number, problem in damaged.items()
    ]
    meaning = "Losses of landed cells that are missing from the data root, or damaged."
    yield from finding_of("losses_can_be_read", meaning, _SCORE_AGAIN, rows)
    yield from finding_of(check, *describe(read_sql("checks/root", check)), found)


def _losses_of_files(root: _Root, damaged: dict[int, str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all losses files with the cell's number; add errors to ``damaged``."""
    for number, cell in enumerate(root.cells):
        try:
            with root.store.open(cell.path) as file:
                # Landing reads all columns, so damage in any of them matters.
                table = pq.read_table(file, page_checksum_verification=True)
            table.select(LOSSES.names).validate(full=True)
            foreign = find_foreign_row(table, cell)
            if foreign:
                damaged[number] = f"a row is of another cell: {show(foreign)}"
                continue
            table = table.select(_COLUMNS)
            numbers = pa.repeat(pa.scalar(number, pa.int64()), table.num_rows)
            table = table.add_column(0, "number", numbers).cast(_OF_FILES)
        except (pa.ArrowException, KeyError, OSError, ValueError, StorageError) as error:
            damaged[number] = str(error)
            continue
        yield from table.to_batches()
        progress.report("check losses", number + 1, len(root.cells))


def _check_strays(root: _Root) -> Iterator[Finding]:
    """Find files of losses that have not landed, or are damaged."""
    rows: Rows = []
    digests: dict[Key, str | None] = {_key(cell): cell.partition_digest for cell in root.cells}
    foreign = run_file(root.connection, "list_imported_cells")
    digests |= dict.fromkeys(_key_of_row(row) for row in foreign)
    own = {cell.path for cell in root.cells}
    for path in root.store.list("losses/model=*/source=*/month=*/*.parquet"):
        if path in own:
            continue
        try:
            if not _is_superseded(root, path, digests):
                rows.append({"file": path, "problem": "has not landed"})
        except (pa.ArrowException, KeyError, OSError, TidemarkError) as error:
            rows.append({"file": path, "problem": str(error)})
    meaning = "Files of losses that have not landed, or are damaged."
    yield from finding_of(
        "losses_have_landed", meaning, f"{_SCORE} If damaged: {_SCORE_AGAIN}", rows
    )


def _key(cell: Cell) -> Key:
    return _key_of_row(vars(cell) | partition_key(cell.partition))


def _key_of_row(row: Mapping[str, Any]) -> Key:
    return row["model"], row["source"], row["month"], row["protocol"]


def _is_superseded(root: _Root, path: str, digests: dict[Key, str | None]) -> bool:
    """Return True if other losses of the file's cell have landed, or the text has changed."""
    with root.store.open(path) as file:
        batch = next(pq.ParquetFile(file).iter_batches(1, columns=list(_KEY_COLUMNS)), None)
    if batch is None:
        raise StorageError("has no rows")
    [row] = batch.to_pylist()
    key = _key_of_row(row)
    if key not in digests:
        return False
    # ``partition_of`` expects source and month after one folder, so leave out ``losses/``.
    landed = digests[key]
    sealed = root.digests(partition_of(path.partition("/")[2]))
    # Imported losses have landed (None), or no text is sealed, or the landed text is.
    if landed is None or not sealed or landed in sealed:
        return True
    # The landed text is gone, so a file of the newest text should have landed instead.
    return f"-{sealed[-1][:12]}-" not in path
