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
