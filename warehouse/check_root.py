"""Whether a database agrees with the data root: every file is read, nothing is changed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from core import progress
from core.cell_record import read_cell_record
from core.cells import Cell
from core.corpus import MANIFEST, Partition, Seal, partition_of, read_manifest
from core.errors import MalformedInput, StorageError, TidemarkError
from core.forgetting import find_documents
from core.partition_check import find_damage
from core.schemas import LOSSES
from core.storage import Store
from core.tombstones import list_tombstones
from warehouse.check import (
    NOT_A_WAREHOUSE,
    Finding,
    check_database,
    describe,
    finding_of,
)
from warehouse.database_errors import explain_database_errors
from warehouse.landed import own_cells, partition_at, read_rows
from warehouse.reader import connect_to_read
from warehouse.schema import read_sql

Key = tuple[str, str, dt.date | None, str]
Rows = list[dict[str, object]]

_COLUMNS = [
    "document_id", "chunk_index", "nll_nats", "num_tokens", "num_chars", "num_bytes", "reason",
]  # fmt: skip
_OF_FILES = pa.schema([("number", pa.int64()), *(LOSSES.field(name) for name in _COLUMNS)])
_SCORED = pa.schema(
    [
        ("number", pa.int64()),
        *((name, pa.string()) for name in ("model", "source", "protocol")),
        ("month", pa.date32()),
    ]
)
_CRAWL_AGAIN = (
    "Crawl or import the partition again with --replace, or bring its files back from a backup; "
    "then run `tidemark score`."
)
_SCORE_AGAIN = "Delete the file and the .json beside it, then run `tidemark score` again."
_SCORE = "Run `tidemark score` with this model: what is scored already only lands."


@dataclass
class _Root:
    """What is in the data root, and what has landed of it."""

    store: Store
    connection: duckdb.DuckDBPyConnection
    cells: list[Cell]
    seals: dict[Partition, list[Seal]] = field(default_factory=dict)

    def digests(self, partition: Partition) -> list[str]:
        """Of the versions of a partition, the newest last."""
        seals = sorted(self.seals.get(partition, []), key=lambda seal: seal.version)
        return [seal.digest for seal in seals]


def check_home(database: Path, store: Store, is_deep: bool = False) -> Iterator[Finding]:
    """Check a database file, and (deep) whether it agrees with the data root.

    Yields:
        What is wrong; as ``check_database`` and ``check_root``.
    """
    is_usable = True
    for finding in check_database(database, is_deep):
        is_usable &= finding.check not in NOT_A_WAREHOUSE
        yield finding
    if is_deep and is_usable:
        with explain_database_errors(f"check {database}"), connect_to_read(database) as connection:
            yield from check_root(connection, store)


def check_root(connection: duckdb.DuckDBPyConnection, store: Store) -> Iterator[Finding]:
    """Compare what has landed with partitions, losses and records of the data root.

    Yields:
        What is wrong.

    Raises:
        StorageError: the data root cannot be listed.
    """
    root = _Root(store, connection, own_cells(connection))
    yield from _check_partitions(root)
    yield from _check_forgotten(root)
    yield from _check_documents(root)
    yield from _check_texts(root)
    yield from _check_records(root)
    yield from _check_losses(root)
    yield from _check_strays(root)


def _check_partitions(root: _Root) -> Iterator[Finding]:
    rows: Rows = []
    folders = ("corpus/source=*/month=*", "corpus/source=*/month=*/version=*")
    paths = [path for folder in folders for path in root.store.list(f"{folder}/{MANIFEST}")]
    for number, path in enumerate(paths, start=1):
        try:
            seal = read_manifest(root.store, partition_of(path), path)
            root.seals.setdefault(seal.partition, []).append(seal)
            damage = find_damage(root.store, seal)
            rows += [{"file": file, "problem": problem} for file, problem in damage]
        except TidemarkError as error:
            rows.append({"file": path, "problem": str(error)})
        progress.report("check partitions", number, len(paths))
    meaning = "Sealed partitions whose files are not what was sealed."
    yield from finding_of("partitions_are_sound", meaning, _CRAWL_AGAIN, rows)


def _check_forgotten(root: _Root) -> Iterator[Finding]:
    rows: Rows = []
    if tombstones := list_tombstones(root.store):
        for document in find_documents(root.store, tombstones):
            folder = document.seal.folder
            rows.append({"document_id": document.document_id, "partition": folder})
    meaning = "Documents that were taken down, and are still there, or there again."
    remedy = "Run `tidemark corpus forget --again`."
    yield from finding_of("forgotten_documents_are_gone", meaning, remedy, rows)


def _check_documents(root: _Root) -> Iterator[Finding]:
    rows: Rows = []
    for row in read_rows(root.connection, "list_partitions"):
        partition, digest = partition_at(row["source"], row["month"]), row["partition_digest"]
        if digest not in (digests := root.digests(partition)):
            found = digests[-1] if digests else None
            rows.append({"partition": str(partition), "digest": digest, "digest_of_seal": found})
    meaning = "Landed documents of versions of partitions that are gone."
    remedy = "Run `tidemark score`: it lands the documents of what it scores. " + _CRAWL_AGAIN
    yield from finding_of("documents_match_seals", meaning, remedy, rows)


def _check_texts(root: _Root) -> Iterator[Finding]:
    rows: Rows = []
    for cell in root.cells:
        if cell.partition_digest not in (digests := root.digests(cell.partition)):
            found = digests[-1] if digests else None
            row = {"digest_scored": cell.partition_digest, "digest_of_seal": found}
            rows.append({"cell": cell.name, **row})
    meaning = "Cells that were scored on text that is gone."
    remedy = "Run `tidemark score` with these models: it scores the text that is sealed now."
    yield from finding_of("cells_have_texts", meaning, remedy, rows)


def _check_records(root: _Root) -> Iterator[Finding]:
    rows: Rows = []
    for cell in root.cells:
        try:
            read_cell_record(root.store, cell)
        except (MalformedInput, StorageError) as error:
            rows.append({"file": cell.record_path, "problem": str(error)})
    meaning = "Records of cells that are damaged."
    yield from finding_of("records_can_be_read", meaning, _SCORE_AGAIN, rows)


def _check_losses(root: _Root) -> Iterator[Finding]:
    """Compare every file with what has landed of it, all in one pass over both."""
    damaged: dict[int, str] = {}
    reader = pa.RecordBatchReader.from_batches(_OF_FILES, _losses_of_files(root, damaged))
    text = read_sql("checks/root", "losses_match_files")
    root.connection.register("scored_cells", _scored_cells(root.cells))
    root.connection.register("losses_of_files", reader)
    try:
        relation = root.connection.execute(text)
        names = [column[0] for column in relation.description or []]
        found: Rows = [dict(zip(names, row, strict=True)) for row in relation.fetchall()]
    finally:
        root.connection.unregister("losses_of_files")
        root.connection.unregister("scored_cells")
    rows: Rows = [
        {"file": root.cells[number].path, "problem": problem} for number, problem in damaged.items()
    ]
    meaning = "Losses of landed cells that are missing from the data root, or damaged."
    yield from finding_of("losses_can_be_read", meaning, _SCORE_AGAIN, rows)
    yield from finding_of("losses_match_files", *describe(text), found)


def _scored_cells(cells: list[Cell]) -> pa.Table:
    rows = [
        {
            "number": number,
            "model": cell.model,
            "source": cell.partition.source,
            "protocol": cell.protocol,
            "month": cell.partition.month.first_day if cell.partition.month else None,
        }
        for number, cell in enumerate(cells)
    ]
    return pa.Table.from_pylist(rows, schema=_SCORED)


def _losses_of_files(root: _Root, damaged: dict[int, str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all losses files, each with its cell's number; note what is damaged."""
    for number, cell in enumerate(root.cells):
        try:
            with root.store.open(cell.path) as file:
                table = pq.read_table(file, columns=_COLUMNS)
            numbers = pa.repeat(pa.scalar(number, pa.int64()), table.num_rows)
            table = table.add_column(0, "number", numbers).cast(_OF_FILES)
        except (pa.ArrowException, KeyError, OSError, ValueError, StorageError) as error:
            damaged[number] = str(error)
            continue
        yield from table.to_batches()
        progress.report("check losses", number + 1, len(root.cells))


def _check_strays(root: _Root) -> Iterator[Finding]:
    """Find files of losses that have not landed, and are not of a former text or model."""
    rows: Rows = []
    digests: dict[Key, str | None] = {_key(cell): cell.partition_digest for cell in root.cells}
    foreign = read_rows(root.connection, "list_foreign_cells")
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
    yield from finding_of("losses_have_landed", meaning, f"{_SCORE} If damaged: delete it.", rows)


def _key(cell: Cell) -> Key:
    month = cell.partition.month.first_day if cell.partition.month else None
    return cell.model, cell.partition.source, month, cell.protocol


def _key_of_row(row: dict[str, Any]) -> Key:
    return row["model"], row["source"], row["month"], row["protocol"]


def _is_superseded(root: _Root, path: str, digests: dict[Key, str | None]) -> bool:
    """Whether other losses have landed for a file's cell, and it is not the one of today's text."""
    with root.store.open(path) as file:
        batch = next(pq.ParquetFile(file).iter_batches(1, columns=list(_SCORED.names[1:])), None)
    if batch is None:
        raise StorageError("has no rows")
    [row] = batch.to_pylist()
    key = _key_of_row(row)
    if key not in digests:
        return False
    folder = path.partition("/")[
        2
    ]  # without losses/, source and month stand where partitions have them
    landed, sealed = digests[key], root.digests(partition_of(folder))
    if landed is None or not sealed or landed in sealed:
        return True
    return f"-{sealed[-1][:12]}-" not in path
