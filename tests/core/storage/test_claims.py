import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from core.errors import StorageError
from core.storage import claims
from core.storage.claims import (
    DEAD_AFTER_S,
    Claims,
    Holder,
    count_present,
    hold_alone,
    list_claimed,
    present,
    sweep,
)
from core.storage.store import Store
from core.storage.temporary import this_host
from tests.loopback import wait_for

ROOT = Path(__file__).resolve().parents[3]
NAMES = [f"losses/model=m/cell-{number}" for number in range(12)]


@pytest.fixture
def any_store(tmp_path: Path) -> Callable[[], Store]:
    return lambda: Store(str(tmp_path / "root"))


def claimed_by(store: Store, name: str, **facts: Any) -> str:
    facts = {"host": "elsewhere", "pid": 1, "started": 1, **facts}
    path = f"claims/{claims._key(name)}.{facts['host']}.json"
    store.write_bytes(path, Holder(name=name, **facts).model_dump_json().encode())
    return path


def files(store: Store) -> list[str]:
    return store.list("claims/*")


def claims_of(store: Store) -> list[str]:
    """Return the claims, without half-written ones: a beat may be under way."""
    return [path for path in files(store) if "/.tmp-" not in path]


@pytest.mark.long
def test_who_has_it_keeps_the_others_out(any_store: Callable[[], Store]) -> None:
    first, second = Claims(any_store()), Claims(any_store())
    with first.hold(["a", "b"]) as held:
        assert held == ["a", "b"]
        assert len(files(any_store())) == 2
        with second.hold(["b", "c"]) as others:
            assert others == ["c"]
    assert files(any_store()) == []
    with pytest.raises(ZeroDivisionError), second.hold(["b"]) as held:
        assert held == ["b"]
        raise ZeroDivisionError
    assert files(any_store()) == []


def test_a_damaged_claim_keeps_nobody_else_out(store: Store) -> None:
    store.write_bytes("claims/abc.1.json", b"{")
    with Claims(store).hold(["a"]):
        assert list_claimed(store) == ["a"]
    assert sweep(store) == 0


@pytest.mark.long
def test_a_claim_is_renewed(any_store: Callable[[], Store]) -> None:
    store = any_store()
    with Claims(store, beat_s=0.05).hold(["a"]):
        [path] = claims_of(store)

        def has_beaten() -> bool:
            holder = claims._read(store, path)
            return holder is not None and holder.beat >= 3

        wait_for(has_beaten)


def test_who_waits_goes_on_when_it_is_free_or_done(any_store: Callable[[], Store]) -> None:
    store = any_store()
    path = claimed_by(store, "a")
    waiting = Claims(store, beat_s=0.05, dead_after_s=3600)
    waiting.wait("a", is_done=lambda: True)
    threading.Timer(0.4, lambda: store.delete(path)).start()
    waiting.wait("a", is_done=lambda: False)
    assert not store.exists(path)


def test_a_machine_without_a_beat_is_dead(any_store: Callable[[], Store]) -> None:
    store = any_store()
    path = claimed_by(store, "a")
    late = Claims(store, beat_s=0.05, dead_after_s=0.5)
    began = time.monotonic()  # before it looks for the first time
    with late.hold(["a"]) as held:
        assert held == []
    late.wait("a", is_done=lambda: False)
    assert time.monotonic() - began > 0.4
    with late.hold(["a"]) as held:
        assert held == ["a"]
        assert path not in files(store)
    assert files(store) == []


def test_a_machine_with_a_beat_is_alive(any_store: Callable[[], Store]) -> None:
    store = any_store()
    late = Claims(store, beat_s=0.05, dead_after_s=0.5)
    for beat in range(12):
        claimed_by(store, "a", beat=beat)
        with late.hold(["a"]) as held:
            assert held == []
        time.sleep(0.1)


def test_processes_with_a_recent_beat_are_counted(store: Store) -> None:
    with present(store, "root/a"), present(store, "root/a"), present(store, "root/b"):
        assert count_present(store) == {"root/a": 2, "root/b": 1}
    assert count_present(store) == {}


@pytest.mark.parametrize(
    ("seconds_before", "counted"), [(0, 1), (DEAD_AFTER_S, 1), (DEAD_AFTER_S + 1, 0)]
)
def test_a_process_whose_beat_is_old_beside_the_newest_claim_is_not_counted(
    store: Store, seconds_before: float, counted: int
) -> None:
    newest = 1_700_000_000
    process = claimed_by(store, "work/root/a/1")
    for path, modified_at in ((process, newest - seconds_before), (claimed_by(store, "x"), newest)):
        os.utime(Path(store.root, path), (modified_at, modified_at))
    assert count_present(store)["root/a"] == counted


def test_time_in_which_nobody_looked_does_not_count(
    any_store: Callable[[], Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A waiter looks once a second: of an hour without looks, two seconds count."""
    now = [1000.0]
    monkeypatch.setattr("core.storage.claims.time.monotonic", lambda: now[0])
    store = any_store()
    claimed_by(store, "a")
    late = Claims(store, dead_after_s=8.0)
    for seconds_that_count in (0, 2, 4, 6, 8):
        with late.hold(["a"]) as held:
            assert held == ["a"] * (seconds_that_count == 8)
        now[0] += 3600


def test_who_wants_a_name_alone_waits_for_its_release_or_until_told_to_end(store: Store) -> None:
    path = claimed_by(store, "a")
    looks: list[int] = []

    def release_at_the_second_look() -> None:
        looks.append(1)
        if len(looks) == 2:
            store.delete(path)

    with hold_alone(store, "a", release_at_the_second_look):
        assert list_claimed(store) == ["a"]
        assert not store.exists(path)

        def end() -> None:
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError), hold_alone(store, "a", end):
            pytest.fail("it is held")


def test_who_waited_for_a_dead_machine_leaves_no_claim_of_it(store: Store) -> None:
    """So a further wait of the same length is saved: any process may claim at once."""
    claimed_by(store, "a")
    Claims(store, beat_s=0.05, dead_after_s=0.2).wait("a", is_done=lambda: False)
    assert files(store) == []
    with Claims(store).hold(["a"]) as held:
        assert held == ["a"]


def test_a_claim_that_is_being_renewed_is_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some object stores fail a read if the file is replaced meanwhile."""
    path, num_read, read = claimed_by(store, "a"), [0], store.read_bytes

    def interrupted(path: str) -> bytes:
        num_read[0] += 1
        if num_read[0] % 10 < 5:
            raise StorageError("it was replaced")
        return read(path)

    monkeypatch.setattr(store, "read_bytes", interrupted)
    holder = claims._read(store, path)
    assert holder is not None and holder.name == "a"
    num_read[0] = 9
    with pytest.raises(StorageError, match="it was replaced"):
        claims._read(store, path)
    assert num_read[0] == 14
    store.delete(path)
    assert claims._read(store, path) is None
    assert Claims(store)._is_dead(path), "it was released"


@pytest.mark.parametrize(
    ("facts", "is_dead"),
    [
        ({"host": this_host(), "pid": os.getpid(), "started": 1}, True),  # a reused process id
        ({"host": this_host(), "pid": 2**22 + 1, "started": 1}, True),  # no system has such an id
        ({"host": "elsewhere", "pid": 2**22 + 1, "started": 1}, False),
        ({"host": this_host(), "pid": 2**22 + 1, "started": None}, False),
    ],
)
def test_a_process_of_this_host_is_known_to_be_gone_at_once(
    any_store: Callable[[], Store], facts: dict[str, Any], is_dead: bool
) -> None:
    store = any_store()
    claimed_by(store, "a", **facts)
    assert sweep(store) == is_dead
    claimed_by(store, "a", **facts)
    with Claims(store).hold(["a"]) as held:
        assert held == ["a"] * is_dead


def test_a_file_that_is_no_claim_is_named(any_store: Callable[[], Store]) -> None:
    store = any_store()
    store.write_bytes(f"claims/{claims._key('a')}.x.json", b"{}")
    with pytest.raises(StorageError, match="is no claim"), Claims(store).hold(["a"]):
        pytest.fail("who knows whose it is")


_WORKS = """
import os, sys, time
from pathlib import Path
from core.storage.claims import Claims
from core.storage.store import Store

root, number = Path(sys.argv[1]), sys.argv[2]
claims, store = Claims(Store(str(root))), Store(str(root))
todo = sys.argv[3:]
while todo:
    with claims.hold(todo[:3]) as held:
        for name in held:
            if store.exists(name):
                continue
            inside = root / "inside" / name.replace("/", "_")
            inside.touch(exist_ok=False)  # two at once fail here
            time.sleep(0.01)
            with (root / "log").open("a") as log:
                log.write(f"{name}\\n")
            inside.unlink()
            if number == "killed" and name.endswith("7"):
                os.kill(os.getpid(), 9)
            store.write_bytes(name, number.encode())
    todo = [*todo[3:], *(name for name in todo[:3] if not store.exists(name))]
"""


def work(root: Path, number: str, *names: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _WORKS, str(root), number, *names]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True)


def test_many_processes_do_everything_once(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    killed = work(tmp_path, "killed", *NAMES[6:9])
    killed.communicate(timeout=600)
    assert killed.returncode == -signal.SIGKILL
    assert len(list((tmp_path / "claims").glob("*.json"))) == 3
    workers = [work(tmp_path, str(number), *NAMES) for number in range(5)]
    for worker in workers:
        _, errors = worker.communicate(timeout=600)
        assert worker.returncode == 0, errors
    done = sorted((tmp_path / "log").read_text().split())
    assert done == sorted([*NAMES, NAMES[7]])  # the one that the kill interrupted
    assert list((tmp_path / "claims").iterdir()) == []


_SLEEPS = """
import logging, os, signal, sys
from core.storage.claims import Claims
from core.storage.store import Store

class Sleepy(Store):
    num_written = 0

    def write_bytes(self, path, data):
        super().write_bytes(path, data)
        Sleepy.num_written += 1
        if Sleepy.num_written == 3:
            print("held", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)

logging.basicConfig()
with Claims(Sleepy(sys.argv[1]), beat_s=0.05).hold(["a"]):
    sys.stdin.readline()
"""


@contextmanager
def suspended(root: Path) -> Iterator[subprocess.Popen[str]]:
    """A holder that stops itself between two beats; within one it would write once more."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [sys.executable, "-c", _SLEEPS, str(root)],
        cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "held\n"
        wait_for(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
        yield process
    finally:
        process.kill()
        process.communicate()


def test_who_was_suspended_notices_that_its_claim_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(str(tmp_path))
    with suspended(tmp_path) as sleeper, caplog.at_level(logging.WARNING):
        late = Claims(store, beat_s=0.05, dead_after_s=0.5)
        late.wait("a", is_done=lambda: False)
        with late.hold(["a"]) as held:
            assert held == ["a"]
            sleeper.send_signal(signal.SIGCONT)
            assert sleeper.stderr is not None
            assert any("the claim is lost" in line for line in sleeper.stderr)
            assert len(claims_of(store)) == 1
            sleeper.communicate("\n", timeout=600)
            assert sleeper.returncode == 0
            assert len(claims_of(store)) == 1
    assert f"no beat of process {sleeper.pid}" in caplog.text
