from pathlib import Path
from typing import Any

import duckdb
import pytest

from core.errors import CheckFailed
from core.settings import Settings
from warehouse.database.schema import SNAPSHOT
from warehouse.database.writer import writer_path
from warehouse.read.publish import publish
from warehouse.read.query import query
from warehouse.read.shrinking import require_no_shrinking


def write(path: Path, months: range, num_models: int = 1, schema: str = "internal") -> None:
    """Write a database with a loss a model and month of 2024."""
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    with duckdb.connect(str(path)) as database:
        database.execute("create schema if not exists internal")
        for table in ("main.chunk_losses", f"{schema}.landed_cells"):
            database.execute(
                f"create table {table} as select 'm' || model as model, "
                "make_date(2024, month, 1) as month "
                f"from range({num_models}) as m (model), "
                f"range({months.start}, {months.stop}) as r (month)"
            )


def compare(settings: Settings, new: Path) -> None:
    with duckdb.connect(str(new), read_only=True) as connection:
        require_no_shrinking(settings, connection)


@pytest.fixture
def published(settings: Settings) -> Path:
    return Path(settings.home) / SNAPSHOT


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "new.duckdb"


@pytest.mark.parametrize("schema", ["internal", "main"])
def test_more_than_half_missing_is_refused_and_named(
    settings: Settings, published: Path, new: Path, schema: str
) -> None:
    write(published, range(1, 5), num_models=3, schema=schema)
    write(new, range(1, 1))
    with pytest.raises(CheckFailed) as caught:
        compare(settings, new)
    assert "12 of 12 losses; 3 of 3 models (m0, m1, m2); 4 of 4 months (2024-01, 2024-02" in str(
        caught.value
    )
    assert "tidemark rebuild" in str(caught.value)
    assert "tidemark publish --shrink" in str(caught.value)


def test_half_may_be_missing(settings: Settings, published: Path, new: Path) -> None:
    write(published, range(1, 5))
    write(new, range(1, 3))
    compare(settings, new)
    write(new, range(1, 2))
    with pytest.raises(CheckFailed, match="lack 3 of 4 losses; 3 of 4 months"):
        compare(settings, new)


def test_months_count_and_not_only_their_number(
    settings: Settings, published: Path, new: Path
) -> None:
    write(published, range(1, 3))
    write(new, range(3, 9))
    with pytest.raises(CheckFailed, match=r"lack 2 of 2 months \(2024-01, 2024-02\)"):
        compare(settings, new)


def test_models_are_counted(settings: Settings, published: Path, new: Path) -> None:
    write(published, range(1, 2), num_models=9)
    write(new, range(1, 9), num_models=2)
    with pytest.raises(CheckFailed, match=r"lack 7 of 9 models \(m2, m3, m4, m5, m6, …\)"):
        compare(settings, new)


def test_without_a_snapshot_or_with_a_damaged_one_nothing_is_compared(
    settings: Settings, published: Path, new: Path
) -> None:
    write(new, range(1, 1))
    compare(settings, new)
    write(published, range(1, 5))
    published.write_bytes(published.read_bytes()[:5000])
    compare(settings, new)


@pytest.mark.long
def test_a_lost_warehouse_is_not_published_over_the_snapshot(
    settings: Settings, land: Any, published: Path
) -> None:
    land({"document_id": "d0"})
    publish(settings)
    with duckdb.connect(str(writer_path(settings))) as writer:
        writer.execute("delete from chunk_losses")
    with pytest.raises(CheckFailed, match="lack 1 of 1 losses"):
        publish(settings)
    assert query(settings, "from chunk_losses").num_rows == 1
