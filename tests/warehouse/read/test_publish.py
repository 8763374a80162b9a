import random
import shutil
import signal
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from core.errors import CheckFailed
from core.settings import Settings
from tests.forks import forking
from warehouse.database.schema import SNAPSHOT, list_views, qualify
from warehouse.database.writer import connected
from warehouse.read.publish import check_snapshot, publish
from warehouse.read.query import opened, query, run_statement

pytestmark = pytest.mark.long

WORKER = """
from pathlib import Path
from core.settings import Settings
from tests.forks import serve
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
def work(job):
    settings = Settings(home=job["home"])
    for file in job["files"]:
        with open_warehouse(settings) as warehouse:
            warehouse.land_file(Path(file))
        publish(settings)
serve(work)
"""
ENVIRONMENT = {"PATH": "/usr/bin:/bin"}


@pytest.fixture
def folder(losses: Any, tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(6):
        rows = ({"document_id": f"d{i}", "model": f"m{number}"} for i in range(300))
        pq.write_table(losses(*rows), folder / f"{number}.parquet")
    return folder


def test_a_snapshot_takes_the_place_of_the_former(land: Any, settings: Settings) -> None:
    land({"document_id": "d0"})
    snapshot = publish(settings)
    assert snapshot == f"{settings.home}/{SNAPSHOT}"
    reader = duckdb.connect(snapshot, read_only=True)
    land({"document_id": "d1"})
    publish(settings)
    assert reader.execute("select count(*) from chunk_losses").fetchall() == [(1,)]
    reader.close()
    assert query(settings, "from chunk_losses").num_rows == 2
    assert {path.name for path in Path(settings.home).iterdir()} == {
        SNAPSHOT, "work", "writer.json",
    }  # fmt: skip


def test_an_empty_warehouse_can_be_published(empty: Settings) -> None:
    snapshot = Path(empty.home) / SNAPSHOT
    # The paper's values, why instruments cannot be compared, and how much figures need.
    have_rows = {"scylla_published", "instrument_correlation", "minima"}
    with opened(snapshot) as connection:
        for view in list_views():
            if not view.endswith("_at") and view not in have_rows:
                rows = run_statement(connection, f"from {qualify(view)}").read_all()
                assert rows.num_rows == 0, view


UNSOUND = {
    "delete from chunk_losses where document_id = 'd1'": "cells_match_losses.*org/model",
    "delete from internal.landed_cells": "cells_have_replicates.*num_replicates=200",
    "delete from internal.cell_replicates": "cells_have_replicates.*num_replicates=None",
    "alter table models rename column cutoff to other": r"\.sql cannot be read.*cutoff",
}


def test_an_unsound_snapshot_is_not_published(
    land: Any, settings: Settings, tmp_path: Path, subtests: pytest.Subtests
) -> None:
    land({"document_id": "d0"}, {"document_id": "d1"})
    snapshot = publish(settings)
    for damage, message in UNSOUND.items():
        copy = shutil.copy(snapshot, tmp_path / "copy.duckdb")
        with duckdb.connect(str(copy)) as connection:
            connection.execute(damage)
        with subtests.test(damage), pytest.raises(CheckFailed, match=message):
            check_snapshot(copy)


def test_a_failed_check_leaves_the_former_snapshot(land: Any, settings: Settings) -> None:
    land({"document_id": "d0"})
    publish(settings)
    with connected(settings) as connection:
        connection.execute("delete from internal.landed_cells")
    with pytest.raises(CheckFailed):
        publish(settings)
    assert query(settings, "from internal.landed_cells").num_rows == 1
    assert not list(Path(settings.home).glob(".tmp*"))


_VIEWS = "select schema_name, view_name from duckdb_views() where database_name = 'elsewhere'"


def test_views_resolve_under_any_file_name_and_alias(empty: Settings, tmp_path: Path) -> None:
    copy = tmp_path / "some other name.db"
    shutil.copy(Path(empty.home) / SNAPSHOT, copy)
    with duckdb.connect() as connection:
        connection.execute(f"attach '{copy}' as elsewhere (read_only)")
        views = connection.execute(f"{_VIEWS} and not internal").fetchall()
        assert {schema for schema, _ in views} >= {"main", "internal", "old"}
        for schema, view in views:
            connection.execute(f"from elsewhere.{schema}.{view} limit 0")
        # DuckDB resolves what a table macro reads in the caller's database.
        connection.execute("use elsewhere")
        assert connection.execute("from train_test_gap_at(date '2024-01-01')").fetchall() == []


def test_a_snapshot_that_is_swapped_while_it_is_opened_is_opened_again(
    empty: Settings, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(settings.home) / SNAPSHOT
    newer = path.with_name("newer.duckdb")
    path.parent.mkdir()
    for copy in (path, newer):
        shutil.copy(Path(empty.home) / SNAPSHOT, copy)
    with duckdb.connect(str(newer)) as connection:
        connection.execute("insert into models (model) values ('m')")
    connect, opened = duckdb.connect, []

    def swap_meanwhile(*args: Any, **kwargs: Any) -> duckdb.DuckDBPyConnection:
        opened.append(connect(*args, **kwargs))
        if len(opened) == 1:
            newer.rename(path)
        return opened[-1]

    monkeypatch.setattr(duckdb, "connect", swap_meanwhile)
    assert query(settings, "select model from models").to_pylist() == [{"model": "m"}]
    assert len(opened) == 2
    with pytest.raises(duckdb.Error, match="closed"):
        opened[0].execute("select 1")


@pytest.mark.slow
def test_readers_never_err_while_a_writer_publishes(folder: Path, settings: Settings) -> None:
    publish(settings)
    seen: list[int] = []
    failures: list[BaseException] = []
    done = threading.Event()

    def poll() -> None:
        try:
            while not done.is_set():
                seen.append(query(settings, "from internal.landed_cells").num_rows)
                assert query(settings, "from monthly_loss").num_rows >= seen[-1]
        except BaseException as error:  # noqa: BLE001 - a thread's errors are the test's
            failures.append(error)

    files = [str(file) for file in sorted(folder.glob("*.parquet"))[:2]]
    with forking(WORKER, ENVIRONMENT) as forks:
        reader = threading.Thread(target=poll, daemon=True)
        reader.start()
        assert forks.run({"home": settings.home, "files": files}) == 0
        done.set()
        reader.join()
    assert not failures
    assert seen == sorted(seen)
    assert query(settings, "from internal.landed_cells").num_rows == len(files)


@pytest.mark.slow
def test_kill_at_any_moment_leaves_both_files_sound(
    folder: Path, tmp_path: Path, dump: Any
) -> None:
    undisturbed = Settings(home=str(tmp_path / "undisturbed"))
    files = [str(file) for file in sorted(folder.glob("*.parquet"))]
    settings = Settings(home=str(tmp_path / "killed"))
    for each in (undisturbed, settings):
        publish(each)
    moments = random.Random(7)
    with forking(WORKER, ENVIRONMENT) as forks:
        started = time.monotonic()
        assert forks.run({"home": undisturbed.home, "files": files[:2]}) == 0
        usual_s = time.monotonic() - started
        assert forks.run({"home": undisturbed.home, "files": files[2:]}) == 0
        # A run lands in its first tenth, and publishes most of its time: four kills strike each.
        starts = [number * 0.025 for number in range(4)] + [
            0.1 + number * 0.2 for number in range(4)
        ]
        killed = 0
        for number, start in enumerate(starts):
            share = start + moments.random() * (0.025 if start < 0.1 else 0.2)
            again = max(0, number - 1)  # work left by the former run
            job = {"home": settings.home, "files": [files[number % 6], files[again % 6]]}
            killed += forks.run(job, kill_after=share * usual_s) == -signal.SIGKILL
            check_snapshot(Path(settings.home) / SNAPSHOT)
        assert killed > len(starts) // 2, f"only {killed} kills came before the end"
        assert forks.run({"home": settings.home, "files": files}) == 0
    assert not list(Path(settings.home).glob(".tmp-*")), "a half-written snapshot stays for ever"
    assert dump(settings) == dump(undisturbed)
    for view in ("monthly_loss", "coverage"):
        ours, theirs = (query(s, f"from {view}").to_pylist() for s in (settings, undisturbed))
        assert sorted(map(repr, ours)) == sorted(map(repr, theirs))
