from collections.abc import Iterator
from pathlib import Path

import boto3
import duckdb
import pytest
import s3fs

from core.settings import Settings
from tests.object_store import KEYS, object_store


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"))


@pytest.fixture
def publish_numbers(settings: Settings) -> object:
    """Publish a small snapshot: tables, a view in two schemas, and what is not copied."""

    def publish(first: int, with_extra: bool = False) -> None:
        home = Path(settings.home)
        home.mkdir(exist_ok=True)
        new = home / "new.duckdb"
        with duckdb.connect(str(new), config={"storage_compatibility_version": "v1.5.0"}) as made:
            made.execute("create schema papers; create schema internal; create schema old")
            made.execute(
                f"create table models as select 'm' || n as model, n::double / 3 as loss, "
                f"[n, n + 1] as list, date '2024-01-01' + n::int as day "
                f"from range({first}, {first} + 5000) as r (n)"
            )
            made.execute("create table internal.cells as select 1 as hidden")
            made.execute("create view mean_loss as select avg(loss) as mean from models")
            made.execute("create view papers.table_1 as from mean_loss")
            made.execute("create view old.gone as from models")
            if with_extra:
                made.execute("create table extra as select 1 as n")
        new.replace(home / "warehouse.duckdb")

    return publish


@pytest.fixture(scope="session")
def object_store_port() -> Iterator[int]:
    with object_store() as port:
        yield port


@pytest.fixture
def bucket(
    object_store_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{object_store_port}")
    boto3.client("s3").create_bucket(Bucket="tidemark")
    s3fs.S3FileSystem.clear_instance_cache()  # they have read the environment
    yield f"s3://tidemark/{tmp_path.name}"
    s3fs.S3FileSystem.clear_instance_cache()
