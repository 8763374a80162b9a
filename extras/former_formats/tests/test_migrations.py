"""Former databases open with all rows: ``former/version_<version>_<commit>.duckdb.gz``."""

import gzip
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from core.errors import WarehouseError
from core.settings import Settings
from tests.tiers import few
from warehouse.database import comments, objects
from warehouse.database.schema import SCHEMA_VERSION, find_schema, qualify
from warehouse.database.writer import connected, writer_path
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

pytestmark = pytest.mark.long

FORMER = sorted((Path(__file__).parent / "former").glob("*.duckdb.gz"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"))


@pytest.fixture(scope="module", params=few(FORMER, 1), ids=[path.stem for path in FORMER])
def file(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


@pytest.fixture
def former(file: Path, settings: Settings) -> Settings:
    return unpacked(file, settings)


@pytest.fixture(scope="module")
def migrated(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A former database that was opened once: to make all views takes ten seconds."""
    settings = unpacked(file, Settings(home=str(tmp_path_factory.mktemp("migrated"))))
    with open_warehouse(settings):
        pass
    return settings


def unpacked(file: Path, settings: Settings) -> Settings:
    path = writer_path(settings)
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.decompress(file.read_bytes()))
    return settings


def read(settings: Settings, table: str, clause: str = "") -> pa.Table:
    with duckdb.connect(str(writer_path(settings)), read_only=True) as connection:
        schema = find_schema(connection, table)
        return connection.sql(f"from {schema}.{table} {clause}").to_arrow_table()


def test_the_fixtures_are_of_every_version() -> None:
    versions = {int(path.name.split("_")[1]) for path in FORMER}
    assert versions == set(range(1, SCHEMA_VERSION + 1)), "that of 4 is of before models.role"


def test_a_migrated_warehouse_is_as_if_landed_today(
    former: Settings, migrated: Settings, tmp_path: Path
) -> None:
    losses, documents = (read(former, name) for name in ("chunk_losses", "documents"))
    assert losses.num_rows > 100
    assert documents.num_rows == 12
    partitions = read(former, "landed_partitions")
    today = Settings(home=str(tmp_path / "today"))
    with open_warehouse(today):
        pass
    with connected(today) as connection:
        versions = pa.repeat(pa.scalar(1), partitions.num_rows)
        if "partition_version" not in partitions.column_names:
            partitions = partitions.append_column("partition_version", versions)
        for name, table in (("documents", documents), ("landed_partitions", partitions)):
            connection.register("rows", table)
            connection.execute(f"insert into {qualify(name)} by name select * from rows")
            connection.unregister("rows")
    with open_warehouse(today) as warehouse:
        warehouse.land_losses(losses, "rows")
    tables = "chunk_losses documents landed_cells cell_kinds cell_replicates landed_partitions"
    for table in tables.split():
        ours, theirs = (read(each, table, "order by all") for each in (migrated, today))
        assert ours.num_rows > 0
        assert ours.equals(theirs), table


def test_a_migrated_warehouse_publishes_every_view(migrated: Settings) -> None:
    publish(migrated)  # which binds every view
    [version] = query(migrated, "from internal.schema_version").to_pylist()
    assert version["version"] == SCHEMA_VERSION
    [model] = query(migrated, "from models where model = 'org/model'").to_pylist()
    assert (model["cutoff"] is None, model["role"]) == (False, None)
    [gap] = query(migrated, "from train_test_gap where scope = 'source'").to_pylist()
    assert gap["model"] == "org/model"
    broken = query(migrated, "from monthly_loss where bits_per_byte is null").to_pylist()
    assert [str(row["month"]) for row in broken] == ["2024-03-01"]


def test_a_migration_that_fails_changes_nothing(
    former: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without views: to make them takes ten seconds, and all is one transaction."""
    for module in (objects, comments):
        monkeypatch.setattr(module, "list_views", dict)
    monkeypatch.setattr(objects, "list_aliases", tuple)
    before = {
        name: read(former, name, "order by all").to_pylist()
        for name in ("chunk_losses", "landed_cells", "schema_version")
    }

    def fail(_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(objects, "refresh_reference", fail)
        with pytest.raises(KeyboardInterrupt), open_warehouse(former):
            pass
    for name, rows in before.items():
        assert read(former, name, "order by all").to_pylist() == rows
    with open_warehouse(former):  # and the next attempt succeeds
        pass
    assert read(former, "landed_cells").num_rows == len(before["landed_cells"])
    assert read(former, "schema_version")["version"].to_pylist() == [SCHEMA_VERSION]


@pytest.mark.smoke
def test_without_the_extra_a_former_database_stays_as_it_is(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = writer_path(unpacked(FORMER[0], settings))
    before = path.read_bytes()
    monkeypatch.setattr(objects, "import_parts", lambda part: ())
    with pytest.raises(WarehouseError, match="put the extra back"), open_warehouse(settings):
        pass
    assert path.read_bytes() == before


@pytest.mark.slow
def test_cells_of_version_2_get_the_version_of_their_text(settings: Settings) -> None:
    path = writer_path(settings)
    path.parent.mkdir(parents=True)
    [former] = [file for file in FORMER if file.name.startswith("version_2_")]
    path.write_bytes(gzip.decompress(former.read_bytes()))
    with duckdb.connect(str(path)) as connection:  # its own, of a text and of a former one
        connection.execute(
            """update landed_cells set scoring = 's', partition_digest = coalesce(
                   (select p.partition_digest from landed_partitions as p
                    where p.source = landed_cells.source and p.month = landed_cells.month), 'gone')
               where model = 'control:zstd'"""
        )
    with open_warehouse(settings):
        pass
    rows = [row for row in read(settings, "landed_cells").to_pylist() if row["scoring"] == "s"]
    rows.sort(key=lambda row: str(row["month"] or "undated"))
    assert len(rows) > 1
    assert [row["partition_version"] for row in rows] == [1] + [None] * (len(rows) - 1)
    assert [row["partition_digest"] == "gone" for row in rows] == [False] + [True] * (len(rows) - 1)
    assert read(settings, "landed_partitions")["partition_version"].to_pylist() == [1]
