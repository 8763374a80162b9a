"""A writer that hangs with the lock: the next one names it, gives up, and may end it."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import WarehouseError
from core.settings import Settings
from core.storage.temporary import this_host
from warehouse.database import holder as holders
from warehouse.database.writer import connected, locked, take_over, writer_path

ROOT = Path(__file__).resolve().parents[3]
WRITE = """
import sys, time
from core.settings import Settings
from warehouse.database.writer import connected, locked, transaction

settings = Settings(home=sys.argv[1])
with locked(settings), connected(settings) as connection, transaction(connection, "a landing"):
    connection.execute("create table half (n integer)")
    print("locked", flush=True)
    while True:
        sum(range(10_000))
"""


@pytest.fixture
def writer(settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """A process that writes for ever."""
    with connected(settings):
        pass  # a copy of an empty database, which the process would take ten seconds to make
    environment = {"PATH": os.defpath, "PYTHONPATH": str(ROOT), "PREFECT__FLOW_RUN_ID": "a1b2"}
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE, settings.home],
        env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout
    assert any(line == "locked\n" for line in process.stdout)  # after DuckDB's bar of progress
    yield process
    process.kill()
    process.communicate()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holders, "HUNG_S", 0.5)
    monkeypatch.setattr(holders, "LOOK_S", 0.2)


def lock(settings: Settings, **how: Any) -> None:
    with locked(settings, **how):
        pass


def test_a_stopped_writer_is_named_and_ended_by_a_take_over(
    settings: Settings,
    writer: subprocess.Popen[str],
    impatient: None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    host = this_host().split()[0]
    who = rf"process {writer.pid} of machine {host} \(flow run a1b2\) since 20.* UTC"
    writer.send_signal(signal.SIGSTOP)
    with pytest.raises(WarehouseError, match=rf"{who}, which is stopped .*`tidemark take-over`"):
        lock(settings)
    assert f"that is landing losses: process {writer.pid}" in caplog.text
    assert writer.poll() is None, "landing ends nobody"
    assert not take_over(settings), "this folder was the writer before"
    assert not psutil.pid_exists(writer.pid)
    with locked(settings), connected(settings) as connection:
        tables = connection.sql("select count(*) from duckdb_tables() where table_name = 'half'")
        assert tables.fetchall() == [(0,)], "what was not committed is gone"
    assert not holders.path_of(writer_path(settings)).exists()


@pytest.mark.slow
def test_a_writer_that_works_is_waited_for_and_not_ended(
    settings: Settings,
    writer: subprocess.Popen[str],
    impatient: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(holders, "HUNG_S", 120.0)  # a busy machine gives it some time by then
    monkeypatch.setattr("warehouse.database.writer.WAIT_S", 1)
    for ends_hung in (False, True):
        with pytest.raises(WarehouseError, match=rf"for 0 hours \(process {writer.pid} "):
            lock(settings, ends_hung=ends_hung)
    assert writer.poll() is None


@pytest.mark.parametrize(
    "change", [{"host": "elsewhere 1 2"}, {"started": 1}, {"pid": 2**22}], ids=str
)
def test_a_process_elsewhere_or_gone_is_never_ended(
    settings: Settings, change: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = writer_path(settings)
    path.parent.mkdir(parents=True)
    with holders.named(path):
        mine = holders.read_holder(path)
    assert mine and mine.process()
    other = mine.model_copy(update=change)
    killed: list[int] = []
    monkeypatch.setattr("psutil.Process.kill", lambda self: killed.append(self.pid))
    assert other.process() is None and not holders.is_stopped(other)
    holders.end(other)
    watch = holders.Watch()
    for _ in range(3):
        watch.look(other)
    assert (killed, watch.idle_s) == ([], 0.0)


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff", b"[" * 10**5])
def test_a_damaged_name_is_no_holder(settings: Settings, data: bytes) -> None:
    path = writer_path(settings)
    path.parent.mkdir(parents=True)
    holders.path_of(path).write_bytes(data)
    assert holders.read_holder(path) is None
    lock(settings)


def test_a_full_disk_leaves_no_half_written_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fill(path: Path, *_: object, **__: object) -> int:
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_text", fill)
    with holders.named(tmp_path / "writer.duckdb"):
        pass
    assert list(tmp_path.iterdir()) == []
