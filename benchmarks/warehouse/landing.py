"""Benchmark of the warehouse: landing against a bare insert, and views against polars.

Landing also checks every row, refuses duplicates and conflicts, stores sums and standard errors per
cell, and draws 200 bootstrap replicates of the sums. The replicates take most of the time, so
landing is also measured without replicates.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb

from benchmarks.measure import Contender, Report, measure, run_alone
from benchmarks.warehouse.estimates import measure_estimates
from benchmarks.warehouse.generated_losses import MEAN_CHUNKS, NUM_MODELS, NUM_MONTHS, NUM_SOURCES
from benchmarks.warehouse.views import measure_views
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.schema import read_sql
from warehouse.database.statements import Statements
from warehouse.database.writer import STORAGE_VERSION, connected, locked, writer_path
from warehouse.land.losses import Warehouse, open_warehouse

_BARE = "bare insert"


def run(rounds: int, rows: int) -> Sequence[Report]:
    """Time landing about ``rows`` generated rows, reading views, and the estimates."""
    with TemporaryDirectory(prefix="tidemark-bench-") as folder:
        path, tenth = Path(folder) / "losses.parquet", Path(folder) / "tenth.parquet"
        num_rows, num_rows_of_tenth = generate(path, rows), generate(tenth, rows // 10)
        landing = measure_landing(path, num_rows, rounds)
        views = measure_views({num_rows: path, num_rows_of_tenth: tenth}, rounds)
    return landing, views, measure_estimates(rounds)


def generate(path: Path, rows: int) -> int:
    """Write a file of generated losses in a separate process; return the number of rows."""
    return int(run_alone("benchmarks.warehouse.generated_losses", path, rows))


def measure_landing(path: Path, num_rows: int, rounds: int) -> Report:
    """Time the landing of a file, with and without replicates, and a bare insert."""
    amounts = {"rows": float(num_rows)}
    sizes: list[int] = []
    with TemporaryDirectory(prefix="tidemark-bench-") as folder:
        empty = Path(folder)
        create(empty)

        def copied(home: Path) -> Path:
            return Path(shutil.copytree(empty, home, dirs_exist_ok=True))

        contenders = [
            Contender(_BARE, lambda home: insert_bare(home, path), amounts),
            Contender(
                "land_file", lambda home: sizes.append(land(copied(home), path)), amounts, _BARE
            ),
            Contender(
                "land_file without replicates",
                lambda home: land_without_replicates(copied(home), path),
                amounts,
                _BARE,
            ),
            Contender("create an empty warehouse", create, {}),
        ]
        timings = measure(contenders, rounds)
    conditions = (
        f"{num_rows:,} rows of schema LOSSES in one Parquet file "
        f"({path.stat().st_size / 1e6:.0f} MB): {NUM_MODELS} models x {NUM_SOURCES} sources x "
        f"{NUM_MONTHS} months, documents of {MEAN_CHUNKS} chunks (1 to 7). Each run: a copy of "
        "an empty warehouse, opened, filled and closed; it ends with "
        f"{sizes[-1] / num_rows:.1f} bytes a row, with views and replicates. The bare insert is "
        f"`insert into chunk_losses … from read_parquet` (DuckDB {duckdb.__version__}), without "
        "checks, cells or replicates."
    )
    return Report("warehouse: landing", conditions, timings)


def create(home: Path) -> None:
    """Create a warehouse with all its tables and views, without rows."""
    with open_warehouse(Settings(home=str(home))):
        pass


def insert_bare(home: Path, path: Path) -> int:
    """Insert a file into a new database with table ``chunk_losses``; return the number of rows."""
    config: dict[str, str | bool | int | float | list[str]] = {
        "storage_compatibility_version": STORAGE_VERSION
    }
    with duckdb.connect(str(home / "bare.duckdb"), config=config) as connection:
        connection.execute(read_sql("tables", "chunk_losses"))
        insert = "insert into chunk_losses by name select * from read_parquet(?)"
        [(num_rows,)] = connection.execute(insert, [str(path)]).fetchall()
    return int(num_rows)


def land(home: Path, path: Path) -> int:
    """Land a file as ``tidemark land losses`` does; return the size of the database in bytes."""
    settings = Settings(home=str(home))
    with open_warehouse(settings) as warehouse:
        warehouse.land_file(path)
    return writer_path(settings).stat().st_size


def land_without_replicates(home: Path, path: Path) -> int:
    """Land a file without bootstrap replicates; return the number of rows."""
    settings = Settings(home=str(home))
    with locked(settings), connected(settings) as connection:
        warehouse = Warehouse(connection, Store(settings.home))
        warehouse._statements = _WithoutReplicates(connection)
        return warehouse.land_file(path).num_rows


class _WithoutReplicates(Statements):
    """The SQL statements of landing, without those that compute bootstrap replicates."""

    def run(
        self, statement: str, parameters: Mapping[str, object] | None = None
    ) -> list[tuple[Any, ...]]:
        left_out = {"seed_clusters", "insert_replicates"}
        return [] if statement in left_out else super().run(statement, parameters)
