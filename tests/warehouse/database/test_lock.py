"""Two writers with own scratch folders would publish snapshots without each other's cells."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from cli.doctor import _writer as finding
from core.errors import StorageError, WarehouseError
from core.settings import Settings
from warehouse.database.statements import Statements
from warehouse.database.writer import connected, take_over, writer_path
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[3]
Land = Callable[[Settings, str], None]


@pytest.fixture
def land_at(losses: Any) -> Land:
    def land_at(settings: Settings, document: str) -> None:
        with open_warehouse(settings) as warehouse:
            warehouse.land_losses(losses({"document_id": document}), "rows")

    return land_at


@pytest.fixture
def machine(tmp_path: Path) -> Callable[[str], Settings]:
    return lambda name: Settings(home=str(tmp_path / "home"), work_dir=tmp_path / name)


def documents(settings: Settings) -> list[str]:
    found = query(settings, "select document_id from chunk_losses order by all")
    return list(found["document_id"].to_pylist())


def landed(settings: Settings) -> list[str]:
    """Return what the writer's database has."""
    with connected(settings) as connection:
        rows = connection.sql("select document_id from chunk_losses order by all").fetchall()
    return [document_id for (document_id,) in rows]


def test_a_second_machine_is_refused_and_the_doctor_sees_it(machine: Any, land_at: Land) -> None:
    here, there = machine("here"), machine("there")
    assert finding(there).is_well
    land_at(here, "d0")
    for attempt in (lambda: land_at(there, "d1"), lambda: publish(there)):
        with pytest.raises(WarehouseError, match=f"written from {here.scratch}.*take-over"):
            attempt()
    land_at(here, "d1")
    publish(here)
    assert documents(there) == ["d0", "d1"]  # reading is for everybody
    assert finding(here).is_well
    elsewhere = finding(there)  # a GPU host that does not land is fine
    assert elsewhere.is_well
    assert f"written from {here.scratch}" in elsewhere.detail
    assert "take-over" in elsewhere.detail


def test_taking_over_begins_with_what_is_published(machine: Any, land_at: Land) -> None:
    here, there = machine("here"), machine("there")
    land_at(here, "d0")
    publish(here)
    land_at(Settings(home=str(there.scratch / "other"), work_dir=there.scratch), "stray")
    assert take_over(there)
    assert not take_over(there)
    land_at(there, "d1")
    assert landed(there) == ["d0", "d1"]
    with pytest.raises(WarehouseError, match=f"written from {there.scratch}"):
        land_at(here, "d2")


def test_a_scratch_folder_serves_one_data_root(tmp_path: Path, land_at: Land) -> None:
    one, other = (Settings(home=str(tmp_path / name), work_dir=tmp_path / "w") for name in "ab")
    land_at(one, "d0")
    with pytest.raises(WarehouseError, match=f"is that of {one.home}.*TIDEMARK_WORK_DIR"):
        land_at(other, "d1")


def test_roots_from_before_are_taken_on(machine: Any, land_at: Land) -> None:
    here = machine("here")
    land_at(here, "d0")
    (Path(here.home) / "writer.json").unlink()
    (here.scratch / "writer.json").unlink()
    land_at(here, "d1")
    assert landed(here) == ["d0", "d1"]


def test_a_lost_database_comes_back_from_the_snapshot(settings: Settings, land_at: Land) -> None:
    land_at(settings, "d0")
    publish(settings)
    shutil.rmtree(settings.scratch)
    land_at(settings, "d1")
    assert landed(settings) == ["d0", "d1"]
    shutil.rmtree(settings.scratch)
    (Path(settings.home) / "warehouse.duckdb").write_bytes(b"damaged")
    with pytest.raises(WarehouseError, match=r"cannot be made from .*warehouse.duckdb .*bring"):
        land_at(settings, "d2")
    assert not writer_path(settings).exists()


_LANDING = """
import sys, datetime as dt
from pathlib import Path
import pyarrow as pa
from core.schemas.tables import LOSSES
from core.settings import Settings
from warehouse.land.losses import open_warehouse
settings = Settings(home=sys.argv[1], work_dir=Path(sys.argv[2]))
row = dict(model="m", revision="r", source="s", month=dt.date(2024, 1, 1), chunk_index=0,
    protocol="default", nll_nats=1.0, num_tokens=1, num_chars=1, num_bytes=1, reason=None)
for number in range(3):
    table = pa.Table.from_pylist([{**row, "document_id": f"{sys.argv[3]}-{number}"}], schema=LOSSES)
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(table, "rows")
"""


@pytest.mark.slow
def test_processes_that_share_a_scratch_folder_take_turns(machine: Any) -> None:
    shared = machine("shared")
    command = [sys.executable, "-c", _LANDING, shared.home, str(shared.scratch)]
    landing = [subprocess.Popen([*command, name], cwd=ROOT) for name in ("a", "b")]
    assert [process.wait() for process in landing] == [0, 0]
    publish(shared)
    assert documents(shared) == [f"{name}-{number}" for name in "ab" for number in range(3)]


def test_a_lock_that_cannot_be_made_is_explained(machine: Callable[[str], Settings]) -> None:
    """A folder in the lock's place stands for a data root without write permission."""
    settings = machine("a")
    Path(f"{writer_path(settings)}.lock").mkdir(parents=True)
    with pytest.raises(StorageError, match="cannot write .*writer"):
        open_warehouse(settings).__enter__()


def test_a_connection_that_fails_hides_no_other_error(losses: Any) -> None:
    with (
        duckdb.connect() as connection,
        pytest.raises(ZeroDivisionError),
        Statements(connection).given(rows=losses({})),
    ):
        connection.close()
        raise ZeroDivisionError
