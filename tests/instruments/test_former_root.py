"""A data root and its snapshot as commit 6fc29d71 wrote them: ``former/root_6fc29d71.tar.xz``.

Folder ``snapshot`` of the archive holds the snapshot, as DuckDB exported it: a file of SQL, and a
Parquet file for each table. The other files are those of the data root.
"""

import shutil
import tarfile
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest

from core.cells.files import find_cells
from core.settings import Settings
from core.storage.store import Store
from instruments.landing import land_losses
from models.catalogue import find_model
from warehouse.database.schema import SNAPSHOT
from warehouse.database.statements import OFFLINE
from warehouse.database.writer import STORAGE_VERSION, writer_path
from warehouse.read.publish import publish
from warehouse.read.query import query

pytestmark = pytest.mark.long

ARCHIVE = Path(__file__).parents[1] / "warehouse/database/former/root_6fc29d71.tar.xz"
# What a query of the former snapshot returns, and of the next one.
TABLES = (
    "chunk_losses", "documents", "monthly_loss", "coverage", "forecast_answers",
    "forecast_questions", "internal.landed_cells", "internal.cell_replicates",
    "internal.published_rates", "internal.benchmark_scores",
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The former data root; each test has a copy."""
    home = tmp_path_factory.mktemp("made") / "home"
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(home, filter="data")
    exported = home / "snapshot"
    config = {**OFFLINE, "storage_compatibility_version": STORAGE_VERSION}
    with duckdb.connect(str(home / SNAPSHOT), config=config) as connection:
        connection.execute((exported / "schema.sql").read_text(encoding="utf-8"))
        for file in sorted(exported.glob("*.parquet")):
            table = file.stem.removeprefix("internal_")
            schema = "main" if table == file.stem else "internal"
            connection.read_parquet(str(file)).insert_into(f"{schema}.{table}")
    shutil.rmtree(exported)
    return home


@pytest.fixture
def former(settings: Settings, made: Path) -> Settings:
    shutil.copytree(made, settings.home)
    return settings


def read(settings: Settings) -> dict[str, pa.Table]:
    return {name: query(settings, f"from {name} order by all") for name in TABLES}


def land_all(settings: Settings) -> int:
    cells = find_cells(Store(settings.home)).losses
    landed = [
        land_losses(
            find_model(name, settings),
            tuple(cell for cell in cells if cell.model == name),
            settings,
        )
        for name in ("control:gzip", "control:xz")
    ]
    return sum(map(len, landed))


@pytest.mark.slow
@pytest.mark.parametrize("is_lost", [False, True], ids=["database", "snapshot"])
def test_a_former_data_root_goes_on(former: Settings, is_lost: bool) -> None:
    """With the writer's database, and made again from the snapshot."""
    before = read(former)
    assert all(table.num_rows for table in before.values())
    if not is_lost:
        writer_path(former).parent.mkdir()
        shutil.copyfile(Path(former.home) / SNAPSHOT, writer_path(former))
    assert land_all(former) == 0  # each cell has landed
    publish(former)
    after = read(former)
    for name, table in before.items():
        assert after[name].select(table.column_names).equals(table), name


def test_former_cells_land_anew(former: Settings) -> None:
    before = read(former)["chunk_losses"]
    (Path(former.home) / SNAPSHOT).unlink()
    assert land_all(former) == len(find_cells(Store(former.home)).losses) == 6
    publish(former)
    assert query(former, "from chunk_losses order by all").equals(before)
