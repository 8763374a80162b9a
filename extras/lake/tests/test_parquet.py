import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from core.errors import StorageError, UsageError
from core.settings import Settings
from core.storage.store import Store
from extras.lake import parquet
from extras.lake.parquet import Publication, read_publication
from extras.lake.tests.copies import copy_snapshot

Publish = Callable[..., None]
NAMES = ["main.mean_loss", "main.models", "papers.table_1"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "copy"


def latest(place: Path) -> Publication:
    found = read_publication(Store(str(place)))
    assert found is not None
    return found


def rows_of(place: Path, name: str) -> list[tuple[Any, ...]]:
    file = place / latest(place).tables[name].path
    return duckdb.sql(f"from read_parquet('{file}')").fetchall()


def assert_equal(settings: Settings, place: Path) -> None:
    with duckdb.connect(f"{settings.home}/warehouse.duckdb", read_only=True) as snapshot:
        for name in NAMES:
            assert rows_of(place, name) == snapshot.execute(f"from {name}").fetchall(), name


@pytest.mark.smoke
def test_tables_and_public_views_are_copied(
    settings: Settings, publish_numbers: Publish, place: Path
) -> None:
    publish_numbers(0)
    assert copy_snapshot(settings, f"parquet:{place}")
    assert sorted(latest(place).tables) == NAMES
    assert latest(place).tables["main.models"].num_rows == 5000
    assert_equal(settings, place)


def test_a_second_copy_changes_nothing(
    settings: Settings, publish_numbers: Publish, place: Path
) -> None:
    publish_numbers(0)
    copy_snapshot(settings, f"parquet:{place}")
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    assert not copy_snapshot(settings, f"parquet:{place}")
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


def test_the_former_copy_stays_for_its_readers_and_the_one_before_goes(
    settings: Settings, publish_numbers: Publish, place: Path
) -> None:
    folders = []
    for first in (0, 1, 2):
        publish_numbers(first)
        copy_snapshot(settings, f"parquet:{place}")
        folders.append(place / latest(place).tables["main.models"].path)
    assert [file.exists() for file in folders] == [False, True, True]
    assert_equal(settings, place)


def test_a_killed_copy_is_continued_and_readers_keep_the_former(
    settings: Settings, publish_numbers: Publish, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_numbers(0)
    copy_snapshot(settings, f"parquet:{place}")
    former = latest(place)
    publish_numbers(1)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(parquet.progress, "report", killed)  # after the first file
        with pytest.raises(KeyboardInterrupt):
            copy_snapshot(settings, f"parquet:{place}")
    assert latest(place) == former
    assert rows_of(place, "main.models")[0][0] == "m0"
    [written] = {*place.glob("*/*/mean_loss.parquet")} - {place / former.tables[NAMES[0]].path}
    before = written.stat().st_mtime_ns
    assert copy_snapshot(settings, f"parquet:{place}")
    assert written.stat().st_mtime_ns == before
    assert_equal(settings, place)


def test_a_folder_of_something_else_is_refused(
    settings: Settings, publish_numbers: Publish, place: Path
) -> None:
    publish_numbers(0)
    place.mkdir()
    (place / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"has files, but no publication\.json"):
        copy_snapshot(settings, f"parquet:{place}")
    assert os.listdir(place) == ["thesis.txt"]  # noqa: PTH208


def test_the_copy_of_another_data_root_is_refused(
    settings: Settings, publish_numbers: Publish, place: Path
) -> None:
    publish_numbers(0)
    copy_snapshot(settings, f"parquet:{place}")
    other = Path(settings.home).with_name("other")
    Path(settings.home).rename(other)
    with pytest.raises(UsageError, match="is a copy of the data root .*home, not of .*other"):
        copy_snapshot(Settings(home=str(other)), f"parquet:{place}")


def test_a_failing_view_leaves_the_former_copy(
    settings: Settings, publish_numbers: Publish, place: Path
) -> None:
    publish_numbers(0)
    copy_snapshot(settings, f"parquet:{place}")
    former = latest(place)
    publish_numbers(1)
    with duckdb.connect(f"{settings.home}/warehouse.duckdb") as snapshot:
        snapshot.execute("create view wrong as select error('no') from models")
    with pytest.raises(Exception, match="wrong"):
        copy_snapshot(settings, f"parquet:{place}")
    assert latest(place) == former
    assert rows_of(place, "main.models")[0][0] == "m0"


def test_files_that_another_publication_deletes_are_missed(
    settings: Settings, publish_numbers: Publish, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish_numbers(0)

    def delete(*_: object) -> None:
        for file in place.glob("*/main/mean_loss.parquet"):
            file.unlink()

    monkeypatch.setattr(parquet.progress, "report", delete)
    with pytest.raises(StorageError, match="deleted by another publication"):
        copy_snapshot(settings, f"parquet:{place}")
    assert latest(place).snapshot is None


@pytest.mark.parametrize("target", ["parquet:", "iceberg:/somewhere", "/somewhere"])
def test_an_unknown_kind_is_refused(settings: Settings, target: str) -> None:
    with pytest.raises(UsageError, match=r"expected one of: ducklake:…, parquet:…"):
        copy_snapshot(settings, target)


def test_without_a_snapshot_nothing_is_written(settings: Settings, place: Path) -> None:
    with pytest.raises(UsageError, match="nothing is published"):
        copy_snapshot(settings, f"parquet:{place}")
    assert not place.exists()
