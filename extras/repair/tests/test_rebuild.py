import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from core.cells.losses import Cell
from core.corpus.partition import Partition, find_version, tables_of
from core.corpus.sealing import seal_partition
from core.month import Month
from core.schemas.tables import LOSSES
from core.settings import Settings
from core.storage.store import Store
from extras.repair.rebuild import plan_rebuild, rebuild
from instruments.losses import score_and_land
from tests.losses import loss_row
from warehouse.database.schema import list_tables, qualify
from warehouse.database.writer import writer_path
from warehouse.land.losses import open_warehouse

pytestmark = pytest.mark.long
MONTHS = ("2024-01", "2024-02")
MODELS = ["control:gzip", "control:zstd"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two months, scored and landed with two compressors; each test has a copy."""
    settings = Settings(home=str(tmp_path_factory.mktemp("made") / "home"), device="cpu")
    store = Store(settings.home)
    for month in MONTHS:
        partition = Partition("news", Month(month))
        rows = (
            {
                "native_id": f"{month} {number}",
                "date_kind": "created",
                "licence": "CC0-1.0",
                "text": f"Document {number} of {month}. " * (1 + number % 3),
            }
            for number in range(5)
        )
        seal_partition(store, partition, tables_of(rows, partition))
    score_and_land(settings, MODELS, None, None, ["default"])
    return Path(settings.home)


@pytest.fixture
def scored(settings: Settings, made: Path) -> Settings:
    shutil.copytree(made, settings.home)
    return settings


def rows_of(settings: Settings) -> dict[str, list[Any]]:
    with duckdb.connect(str(writer_path(settings)), read_only=True) as database:
        return {
            table: sorted(database.execute(f"from {qualify(table)}").fetchall(), key=repr)
            for table in list_tables()
        }


@pytest.mark.smoke
def test_the_same_rows_come_back_with_those_of_other_peoples_files(scored: Settings) -> None:
    row = loss_row("theirs", "news", dt.date(2024, 1, 1), "d0")
    with open_warehouse(scored) as warehouse:
        warehouse.land_losses(pa.Table.from_pylist([row], schema=LOSSES), "rows")
    expected = rows_of(scored)
    plan = plan_rebuild(scored)
    assert len(plan.cells.losses) == len(MODELS) * len(MONTHS)
    assert plan.num_losses > 0
    rebuilt = rebuild(scored, plan)
    assert rebuilt.is_replaced
    assert rebuilt.problems == ()
    assert rows_of(scored) == expected
    writer_path(scored).unlink()  # lost: the cells alone
    assert rebuild(scored, plan_rebuild(scored)).num_cells == len(MODELS) * len(MONTHS)
    found = rows_of(scored)
    for table in ("chunk_losses", "landed_cells"):
        assert found[table] == [each for each in expected[table] if "theirs" not in each], table


def test_what_cannot_be_landed_is_named_and_the_old_database_stays(scored: Settings) -> None:
    store = Store(scored.home)
    damaged, *_ = store.list("losses/model=control%3Agzip/source=*/month=*/*.parquet")
    Path(store.url(damaged)).write_bytes(b"PAR1 no more")
    before = writer_path(scored).read_bytes()
    rebuilt = rebuild(scored, plan_rebuild(scored))
    assert not rebuilt.is_replaced
    [problem] = rebuilt.problems
    assert damaged in problem
    assert writer_path(scored).read_bytes() == before
    rebuilt = rebuild(scored, plan_rebuild(scored), may_lack=True)
    assert rebuilt.is_replaced
    assert rebuilt.num_cells == 3


def test_cells_of_text_that_is_gone_are_named(scored: Settings, store: Store) -> None:
    plan = plan_rebuild(scored)
    cell: Cell = plan.cells.losses[0]
    seal = find_version(store, cell.partition, cell.partition_digest)
    assert seal is not None
    store.delete(cell.partition.path)
    problems = plan_rebuild(scored).cells.problems
    assert len(problems) == len(MODELS)
    assert "is not sealed here" in problems[0]
