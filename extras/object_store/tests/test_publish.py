from pathlib import Path

from core.settings import Settings
from warehouse.database.schema import SNAPSHOT
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query


def test_a_snapshot_goes_to_an_object_store(tmp_path: Path) -> None:
    remote = Settings(home="memory://tidemark-publish", work_dir=tmp_path / "work")
    with open_warehouse(remote) as warehouse:
        warehouse.upsert_sources([{"name": "news"}])
    assert publish(remote) == f"memory://tidemark-publish/{SNAPSHOT}"
    assert query(remote, "select source from sources").to_pylist() == [{"source": "news"}]
