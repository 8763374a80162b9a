import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from core.errors import DiskFull, StorageError
from extras.scylla.journal import Journal, Kept, entry_key

ROOT = Path(__file__).resolve().parents[2]
TEXT = 'Line one\nLine "two" \u2212 \ud800 end'  # with half a pair, which no encoding has


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "new" / "cell.jsonl"


def kept(number: int, text: str = TEXT) -> Kept:
    return Kept(entry_key("m", "r", "g", "prompt", number), text, "stop", 7)


def test_what_is_kept_is_found_by_the_next_run(path: Path) -> None:
    generations = [kept(1), replace(kept(2), finish="length", num_tokens=None), kept(3, "")]
    with Journal(path) as journal:
        for generation in generations:
            journal.keep(generation)
        assert [journal.find(each.key) for each in generations] == generations
    with Journal(path) as journal:
        assert [journal.find(each.key) for each in generations] == generations
        assert journal.find(kept(4).key) is None
        assert len(journal) == 3


def test_errors_are_asked_again_and_nothing_is_kept_twice(path: Path) -> None:
    with Journal(path) as journal:
        journal.keep(replace(kept(1), finish="error"))
        assert journal.find(kept(1).key) is None
        journal.keep(kept(1))
        journal.keep(kept(1, "another"))
        assert journal.find(kept(1).key) == kept(1)
    assert len(path.read_bytes().splitlines()) == 1


def test_all_that_decides_a_text_is_in_the_key() -> None:
    asked = ("m", "r", "g", "p", 1)
    others = [("n", *asked[1:]), ("m", "s", "g", "p", 1), ("m", "r", "h", "p", 1)]
    others += [("m", "r", "g", "q", 1), ("m", "r", "g", "p", 2), ("mr", "", "g", "p", 1)]
    keys = {entry_key(*each) for each in [asked, *others]}
    assert len(keys) == 7


@pytest.mark.parametrize("cut", [1, 20, 60])
def test_a_torn_last_line_is_dropped_and_said(
    path: Path, caplog: pytest.LogCaptureFixture, cut: int
) -> None:
    with Journal(path) as journal:
        journal.keep(kept(1))
        whole = path.read_bytes()
        journal.keep(kept(2))
    path.write_bytes(path.read_bytes()[:-cut])
    with caplog.at_level(logging.WARNING), Journal(path) as journal:
        assert journal.find(kept(1).key) == kept(1) and journal.find(kept(2).key) is None
        assert path.read_bytes() == whole
        journal.keep(kept(2))
    assert str(path) in caplog.text and "last line" in caplog.text
    with Journal(path) as journal:
        assert journal.find(kept(2).key) == kept(2)


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[: len(line) // 2],
        lambda line: line.replace(b"Line", b"Lime"),
        lambda line: line.replace(b'"num_tokens": 7', b'"num_tokens": 8'),
        lambda line: b"",
        lambda line: b"\x00" * len(line),
        lambda line: b"[1]",
        lambda line: json.dumps({"key": "k"}).encode(),
    ],
)
@pytest.mark.parametrize("number", [2, 3])
def test_a_damaged_line_is_named(path: Path, damage: object, number: int) -> None:
    with Journal(path) as journal:
        for each in range(3):
            journal.keep(kept(each))
    lines = path.read_bytes().split(b"\n")
    lines[number - 1] = damage(lines[number - 1])  # type: ignore[operator]
    path.write_bytes(b"\n".join(lines))
    before = path.read_bytes()
    with pytest.raises(StorageError, match=rf"cell\.jsonl, line {number}, is damaged"):
        Journal(path).__enter__()
    assert path.read_bytes() == before
    path.unlink()
    with Journal(path):  # the lock was released
        pass


def test_another_process_is_kept_out(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("extras.scylla.journal._LOCK_WAIT_S", 0.2)
    with Journal(path), pytest.raises(StorageError, match="open in another process"):
        Journal(path).__enter__()
    with Journal(path):
        pass


def test_threads_share_a_journal(path: Path) -> None:
    with Journal(path) as journal, ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda number: journal.keep(kept(number)), range(80)))
    with Journal(path) as journal:
        assert len(journal) == 80


def test_a_full_disk_leaves_no_half_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write

    def full(file: int, line: bytes) -> int:
        if len(line) > 40:
            return write(file, line[:40])
        raise OSError(28, "No space left on device")

    with Journal(path) as journal:
        journal.keep(kept(1))
        whole = path.read_bytes()
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", full)
            with pytest.raises(DiskFull):
                journal.keep(kept(2))
        assert path.read_bytes() == whole and journal.find(kept(2).key) is None
        journal.keep(kept(2))
    with Journal(path) as journal:
        assert len(journal) == 2


# Each number is said once it is kept; the parent kills at any moment.
WRITER = """
import itertools, sys
from pathlib import Path
from extras.scylla.journal import Journal, Kept, entry_key

with Journal(Path(sys.argv[1])) as journal:
    for number in itertools.count(len(journal)):
        key = entry_key("m", "r", "g", "prompt", number)
        journal.keep(Kept(key, f"{number} " * 3000, "stop"))
        print(number, flush=True)
"""


def test_a_kill_loses_nothing_that_was_kept(path: Path) -> None:
    rng = random.Random(3)
    said = -1
    for _ in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            env={"PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            text=True,
        ) as writer:
            assert writer.stdout
            for _ in range(rng.randrange(2, 5)):
                said = int(writer.stdout.readline())
            time.sleep(rng.uniform(0, 0.05))
            os.kill(writer.pid, signal.SIGKILL)
            said = max([said, *map(int, writer.stdout.read().split())])
        with Journal(path) as journal:
            # One more may have been written, and not been said.
            assert said + 1 <= len(journal) <= said + 2
            for number in range(said + 1):
                found = journal.find(kept(number).key)
                assert found and found.text == f"{number} " * 3000
    assert said > 5
