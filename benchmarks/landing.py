"""Landing foreign losses, against a bare insert of the same file.

What landing does beyond the insert: it checks every row, refuses duplicates and conflicts, records
the cells, and draws the 200 bootstrap replicates of their sums. The replicates are most of it, so
landing is measured without them too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Contender, Report, measure
from core.corpus import document_id
from core.month import Month
from core.schemas import LOSSES
from core.settings import Settings
from core.storage import Store
from warehouse.land import Warehouse, open_warehouse
from warehouse.schema import read_sql
from warehouse.writer import STORAGE_VERSION, connected, locked

NUM_MODELS, NUM_SOURCES, NUM_MONTHS = 4, 5, 20
MEAN_CHUNKS = 4  # a document has 1 to 7, in turn
_FIRST = Month("2023-01")
_BARE = "bare insert"


def run(rounds: int, rows: int) -> Report:
    """Land a generated file of about ``rows`` rows in fresh databases, ``rounds`` times."""
    with TemporaryDirectory(prefix="tidemark-bench-") as folder:
        path = Path(folder) / "losses.parquet"
        num_documents, num_rows = write_losses(path, rows)
        amounts = {"rows": num_rows}
        contenders = [
            Contender(_BARE, lambda home: insert_bare(home, path), amounts),
            Contender("land_file", lambda home: land(home, path), amounts, _BARE),
            Contender(
                "land_file without replicates",
                lambda home: land_without_replicates(home, path),
                amounts,
                _BARE,
            ),
        ]
        timings = measure(contenders, rounds)
        size_mb = path.stat().st_size / 1e6
    conditions = (
        f"{num_rows:,} rows of schema LOSSES in one Parquet file ({size_mb:.0f} MB): "
        f"{NUM_MODELS} models x {NUM_SOURCES} sources x {NUM_MONTHS} months x "
        f"{num_documents:,} documents x {MEAN_CHUNKS} chunks (1 to 7). Each run: a fresh database "
        "file, opened, filled and closed. "
        f"The bare insert is `insert into chunk_losses … from read_parquet` (DuckDB "
        f"{duckdb.__version__}), without checks, cells or replicates."
    )
    return Report("landing", conditions, timings)


def write_losses(path: Path, rows: int) -> tuple[int, int]:
    """Write about so many rows of schema LOSSES, ordered by cell, document and chunk.

    Returns:
        Documents of a partition, and rows.
    """
    cells = NUM_MODELS * NUM_SOURCES * NUM_MONTHS
    num_documents = max(1, rows // (cells * MEAN_CHUNKS))
    partitions = list(_partitions(num_documents))
    rng = np.random.default_rng(0)
    num_rows = 0
    with pq.ParquetWriter(path, LOSSES) as writer:
        for number in range(NUM_MODELS):
            model = f"generated-{number}"
            table = pa.concat_tables(_cell(partition, model, rng) for partition in partitions)
            writer.write_table(table)
            num_rows += table.num_rows
    return num_documents, num_rows


def _partitions(num_documents: int) -> Iterator[dict[str, Any]]:
    """Yield the columns that all models share, one partition at a time."""
    chunks = 1 + np.arange(num_documents) % (2 * MEAN_CHUNKS - 1)
    owner = np.repeat(np.arange(num_documents), chunks)
    chunk_index = np.arange(len(owner)) - np.repeat(np.cumsum(chunks) - chunks, chunks)
    for number in range(NUM_SOURCES):
        source = f"source-{number}"
        for offset in range(NUM_MONTHS):
            month = _FIRST + offset
            ids = [document_id(source, f"{month}/{n}", None) for n in range(num_documents)]
            yield {
                "source": source,
                "month": month.first_day,
                "document_id": pa.array(ids).take(pa.array(owner)),
                "chunk_index": pa.array(chunk_index, pa.int32()),
            }


def _cell(partition: Mapping[str, Any], model: str, rng: np.random.Generator) -> pa.Table:
    """Add one model's losses: about 0.7 nats a byte, chunks of 500 to 2,047 tokens."""
    num_rows = len(partition["chunk_index"])
    tokens = rng.integers(500, 2048, num_rows)
    num_bytes = tokens * 4 + rng.integers(0, 1000, num_rows)
    same = {"model": model, "revision": "r1", "protocol": "default", "reason": None}
    columns = {
        **{name: pa.repeat(value, num_rows) for name, value in same.items()},
        **{name: pa.repeat(partition[name], num_rows) for name in ("source", "month")},
        "document_id": partition["document_id"],
        "chunk_index": partition["chunk_index"],
        "nll_nats": num_bytes * rng.normal(0.7, 0.05, num_rows),
        "num_tokens": tokens,
        "num_chars": num_bytes,
        "num_bytes": num_bytes,
    }
    return pa.table([pa.array(columns[f.name]).cast(f.type) for f in LOSSES], schema=LOSSES)


def insert_bare(home: Path, path: Path) -> int:
    """Insert a file into a fresh database of the same schema; return the number of rows."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "storage_compatibility_version": STORAGE_VERSION
    }
    with duckdb.connect(str(home / "bare.duckdb"), config=config) as connection:
        connection.execute(read_sql("tables", "chunk_losses"))
        insert = "insert into chunk_losses by name select * from read_parquet(?)"
        [(num_rows,)] = connection.execute(insert, [str(path)]).fetchall()
    return int(num_rows)


def land(home: Path, path: Path) -> int:
    """Land a file as ``tidemark land`` does; return the number of rows."""
    with open_warehouse(Settings(home=str(home))) as warehouse:
        return warehouse.land_file(path).num_rows


def land_without_replicates(home: Path, path: Path) -> int:
    """Land a file with all but the bootstrap; return the number of rows."""
    settings = Settings(home=str(home))
    with locked(settings), connected(settings) as connection:
        return _WithoutReplicates(connection, Store(settings.home)).land_file(path).num_rows


class _WithoutReplicates(Warehouse):
    """Leaves the replicates out, to tell what they cost."""

    def _run(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> list[tuple[Any, ...]]:
        return [] if statement == "insert_replicates" else super()._run(statement, parameters)
