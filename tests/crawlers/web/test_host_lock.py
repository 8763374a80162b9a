import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import filelock
import psutil
import pytest

from crawlers.web import host_lock
from crawlers.web.host_lock import is_holder_stopped, take_lock
from tests.loopback import wait_for

HOLDER = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "host.lock"


@pytest.fixture
def holder(file: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock until it gets a line."""
    command = [sys.executable, "-c", HOLDER, str(file)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def stop(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGSTOP)
    wait_for(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)


def test_a_working_holder_keeps_its_lock(
    file: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_lock, "STOPPED_S", 0.0)
    monkeypatch.setattr(host_lock, "LOOK_S", 0.01)
    assert not is_holder_stopped(file)
    with pytest.raises(filelock.Timeout):
        take_lock(filelock.FileLock(file), 0.2)
    assert holder.communicate("\n") == ("", None)
    assert holder.returncode == 0


def test_others_go_on_without_a_stopped_holder(
    file: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_lock, "STOPPED_S", 0.0)
    monkeypatch.setattr(host_lock, "LOOK_S", 0.01)
    stop(holder)
    assert is_holder_stopped(file)
    lock = filelock.FileLock(file)
    take_lock(lock, 600)
    assert not is_holder_stopped(file)
    # The holder goes on; its release frees the old file, and not the new one.
    holder.send_signal(signal.SIGCONT)
    assert holder.communicate("\n") == ("", None)
    assert holder.returncode == 0
    with pytest.raises(filelock.Timeout):
        filelock.FileLock(file).acquire(timeout=0)
    lock.release()


def test_a_lock_that_nobody_holds_has_no_stopped_holder(file: Path) -> None:
    assert not is_holder_stopped(file)
    file.touch()
    assert not is_holder_stopped(file)
