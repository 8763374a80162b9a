"""A confined process ends with tidemark, and when it takes too much."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from core.environment import confined_environment
from extras.own_code import process
from extras.own_code.process import WatchedProcess, remove_folder
from tests.forks import ROOT
from tests.loopback import wait_for

CONFINE = f"""
import ctypes, os, sys, threading, time
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from extras.own_code.guard import confine
confine([Path(sys.prefix), Path(sys.base_prefix)], Path.cwd())
def ready():
    Path("pid").write_text(str(os.getpid()))
"""
SLEEP = "ready(); time.sleep(600)"
SPIN = """
ready()
while True: pass
"""
# A thread goes on after the first one has ended, so that the process itself is a zombie.
STAY = """
def stay():
    while "State:\tZ" not in Path("/proc/self/status").read_text():
        time.sleep(0.01)
    ready()
    time.sleep(600)
threading.Thread(target=stay).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[os.uname().machine], 0)
"""
# Processes that a scorer starts are its children; this script is the scorer.
SCORER = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from core.environment import confined_environment
from extras.own_code.process import WatchedProcess
home = Path(sys.argv[1])
code = sys.argv[2]
watched = WatchedProcess([sys.executable, "-c", code], confined_environment(home), home)
time.sleep(600)
"""


def start(code: str, home: Path) -> WatchedProcess:
    return WatchedProcess([sys.executable, "-c", CONFINE + code], confined_environment(home), home)


def text_of(path: Path) -> str:
    return path.read_text() if path.is_file() else ""


@pytest.mark.usefixtures("confinement")
@pytest.mark.parametrize("code", [SLEEP, SPIN, STAY], ids=["sleeps", "spins", "stays"])
def test_it_ends_with_a_scorer_that_is_killed(code: str, tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", SCORER, tmp_path, CONFINE + code]) as scorer:
        pid = wait_for(lambda: text_of(tmp_path / "pid"))
        assert is_alive(pid)
        scorer.send_signal(signal.SIGKILL)
    wait_for(lambda: not is_alive(pid))


def is_alive(pid: str) -> bool:
    """Return True if a thread of the process runs; zombies wait for whoever has adopted them."""
    states = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            status = (task / "status").read_text()
            states.append(status.partition("State:\t")[2][0])
    return any(state not in "ZX" for state in states)


@pytest.mark.usefixtures("confinement")
def test_it_is_ended_when_it_starts_too_many_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_MOST_THREADS", 20)
    many = "for _ in range(40): threading.Thread(target=time.sleep, args=(600,)).start()"
    watched = start(many, tmp_path)
    assert watched.process.wait(600) == -signal.SIGKILL
    assert re.fullmatch(r"it had \d+ threads, more than 20", watched.excess)


@pytest.mark.usefixtures("confinement")
def test_it_is_ended_when_it_writes_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = process._taken(os.getpid())[1]
    (tmp_path / "probe").write_bytes(bytes(2**20))
    if process._taken(os.getpid())[1] - before < 2**20:
        pytest.skip(f"{tmp_path} is not on a disk, so nothing that is written there counts")
    monkeypatch.setattr(process, "_MOST_WRITTEN", 2**22)
    removed = """
file = open("file", "wb")
os.unlink("file")
os.posix_fallocate(file.fileno(), 0, 2**23)
file.write(bytes(2**23))
file.flush()
time.sleep(600)
"""
    watched = start(removed, tmp_path)
    assert watched.process.wait(600) == -signal.SIGKILL
    assert re.fullmatch(r"it wrote [\d,]+ bytes, more than 4,194,304", watched.excess)


@pytest.mark.usefixtures("confinement")
def test_it_has_no_files_open_but_its_pipes(tmp_path: Path) -> None:
    listed = "Path('open').write_text(' '.join(sorted(os.listdir('/proc/self/fd'))))"
    with (tmp_path / "secret").open("w") as secret:
        os.set_inheritable(secret.fileno(), True)
        watched = start(listed, tmp_path)
        assert watched.process.wait(600) == 0
    assert text_of(tmp_path / "open") == "0 1 2 3"  # 3 is the folder being listed


def test_a_folder_is_removed_that_nobody_may_list(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "hidden" / "file").mkdir(parents=True)
    (home / "hidden").chmod(0o300)
    kept = tmp_path / "kept"
    kept.mkdir(mode=0o500)
    (home / "link").symlink_to(kept)
    remove_folder(home)
    assert not home.exists()
    assert kept.stat().st_mode & 0o777 == 0o500


@pytest.mark.slow
def test_a_folder_is_removed_that_is_deep(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    deep = "import os\nfor _ in range(1200): os.mkdir('d'); os.chdir('d')"
    subprocess.run([sys.executable, "-c", deep], cwd=home, check=True)
    remove_folder(home)
    assert not home.exists()
