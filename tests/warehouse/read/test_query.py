import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest

from core.errors import UsageError
from core.settings import Settings
from warehouse.database.schema import SNAPSHOT
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import opened, query, query_batches, run_statement

ROWS = ({"document_id": "d0"}, {"document_id": "d1", "model": "other"})


@pytest.fixture(scope="module")
def published(losses: Any, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    settings = Settings(home=str(tmp_path_factory.mktemp("published")))
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(losses(*ROWS), "rows")
    publish(settings)
    return settings


def test_nothing_published_says_what_to_run(settings: Settings) -> None:
    with pytest.raises(UsageError, match="nothing is published at .*run `tidemark demo`"):
        query(settings, "select 1")


def test_parameters_are_bound(published: Settings) -> None:
    by_position = query(
        published, "select document_id from chunk_losses where model = ?", ["other"]
    )
    by_name = query(published, "from chunk_losses select model where model = $m", {"m": "other"})
    assert by_position.to_pylist() == [{"document_id": "d1"}]
    assert by_name.to_pylist() == [{"model": "other"}]
    injected = query(published, "from chunk_losses where model = ?", ["' or true --"])
    assert injected.num_rows == 0


def test_batches_stream(published: Settings) -> None:
    with query_batches(published, "select * from range(300000)") as reader:
        assert sum(batch.num_rows for batch in reader) == 300_000


@pytest.mark.long
def test_readers_of_one_process_do_not_meet(
    published: Settings, settings: Settings, land: Any
) -> None:
    path = Path(settings.home) / SNAPSHOT
    path.parent.mkdir()
    shutil.copyfile(Path(published.home) / SNAPSHOT, path)
    count = "select count(*) from chunk_losses"
    with opened(path, memory_limit="200MB") as slow:
        assert query(settings, count).to_pylist() == [{"count_star()": 2}]
        land({"document_id": "d2", "model": "third"})
        publish(settings)
        assert query(settings, count).to_pylist() == [{"count_star()": 3}]
        assert slow.sql(count).fetchall() == [(2,)]


# `published` is a variable of Python's.
REFUSED = [
    "delete from models", "drop view monthly_loss", "create table mine as select 1",
    "copy models to 'FOLDER/out.csv'", "copy models from '/etc/passwd'",
    "export database 'FOLDER/out'", "attach 'FOLDER/other.duckdb' as other", "install httpfs",
    "load httpfs", "from read_csv('/etc/passwd')", "from read_text('/etc/passwd')",
    "from '/etc/passwd'", "from glob('/*')", "set enable_external_access = true",
    "reset lock_configuration", "select 1; delete from models", "from published",
    "select getenv('HOME')", "selec 1", "",
]  # fmt: skip


@pytest.mark.long
def test_anything_but_reading_is_refused(
    published: Settings, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    def list_files() -> list[Path]:
        return [file for folder in (tmp_path, Path(published.home)) for file in folder.rglob("*")]

    before = sorted(list_files())
    with opened(Path(published.home) / SNAPSHOT) as connection:
        for sql in REFUSED:
            with subtests.test(sql):
                with pytest.raises(UsageError):
                    run_statement(connection, sql.replace("FOLDER", str(tmp_path))).read_all()
                assert sorted(list_files()) == before


def test_a_snapshot_of_a_former_version_is_read(settings: Settings) -> None:
    snapshot = Path(settings.home) / SNAPSHOT
    snapshot.parent.mkdir()
    with duckdb.connect(str(snapshot)) as made:  # it has no schema for former names
        made.execute("create table models as select 'm' as model")
    assert query(settings, "from models").to_pylist() == [{"model": "m"}]


def test_what_a_snapshot_of_other_views_lacks_names_the_version_that_published_it(
    published: Settings, settings: Settings
) -> None:
    snapshot = Path(settings.home) / SNAPSHOT
    snapshot.parent.mkdir()
    shutil.copyfile(Path(published.home) / SNAPSHOT, snapshot)
    with pytest.raises(UsageError, match="no_such_column") as unexplained:
        query(settings, "select no_such_column from models")
    assert "tidemark publish" not in str(unexplained.value)
    with duckdb.connect(str(snapshot)) as database:
        database.execute("update internal.schema_version set definitions = '', tidemark = '0.0.9'")
    for statement in ("select no_such_column from models", "from no_such_view"):
        with pytest.raises(UsageError, match=r"by tidemark 0\.0\.9, .*: run `tidemark publish`"):
            query(settings, statement)
    with pytest.raises(UsageError) as syntax:
        query(settings, "select from where")
    assert "0.0.9" not in str(syntax.value)
