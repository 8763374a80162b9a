import datetime as dt
import json
import os
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from core.errors import StorageError
from crawlers.web.raw_cache import Fetched, RawCache
from tests.forks import forking
from tests.loopback import wait_for

MOMENT = dt.datetime(2024, 5, 1, 12, 30, 15, 123456, tzinfo=dt.UTC)
PAGE = Fetched("http://h/p", {"content-type": "text/plain", "x": "é"}, b"\x00\n{}\nbody", MOMENT)


def entries(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.zst"))


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    cache = RawCache(tmp_path / "cache")
    assert cache.load("GET a") is None
    cache.save("GET a", PAGE)
    assert RawCache(tmp_path / "cache").load("GET a") == PAGE
    assert cache.load("GET b") is None


def test_no_damage_passes_for_an_answer(tmp_path: Path) -> None:
    cache = RawCache(tmp_path)
    cache.save("GET a", PAGE)
    [path] = entries(tmp_path)
    whole = path.read_bytes()
    for position in range(len(whole)):
        flipped = bytearray(whole)
        flipped[position] ^= 0x10
        path.write_bytes(flipped)
        assert cache.load("GET a") in (None, PAGE)
        path.write_bytes(whole[:position])
        assert cache.load("GET a") is None


HEAD = {"url": "u", "headers": {}, "retrieved_at": MOMENT.isoformat()}


@pytest.mark.parametrize(
    "data",
    [b"", b"[]\nx", b"[1]\nx", b"{}\nx", b"null\n", b'"x"\n', b"7\n", b"\xff\n", b"[" * 10**6]
    + [
        json.dumps({**HEAD, name: value}).encode() + b"\nx"
        for name in HEAD
        for value in (None, 1, [], {"a": 1}, {"a": []}, ["a"], "0001-01-01T00:00:00+14:00")
        if not (name == "url" and isinstance(value, str))
    ],
)  # fmt: skip
def test_a_file_of_another_shape_is_absent(tmp_path: Path, data: bytes) -> None:
    cache = RawCache(tmp_path)
    cache.save("GET a", PAGE)
    entries(tmp_path)[0].write_bytes(zstandard.compress(data))
    assert cache.load("GET a") is None


def _make_folder(path: Path) -> None:
    path.mkdir()
    (path / "file").touch()


def _make_file_of_folder(path: Path) -> None:
    path.parent.rmdir()
    path.parent.touch()


def _claim_size(path: Path) -> None:  # of 2**60 bytes: a frame's header of 8 bytes for its size
    path.write_bytes(b"\x28\xb5\x2f\xfd\xe0" + (2**60).to_bytes(8, "little") + b"\1\0\0")


IN_PLACE: dict[str, Callable[[Path], object]] = {
    "folder": _make_folder,
    "file of folder": _make_file_of_folder,
    "pipe": os.mkfifo,
    "link to itself": lambda path: path.symlink_to(path),
    "link to a folder": lambda path: path.symlink_to(path.parent),
    "size": _claim_size,
}


@pytest.mark.parametrize("kind", IN_PLACE)
def test_what_is_no_entry_is_absent_and_replaced(tmp_path: Path, kind: str) -> None:
    cache = RawCache(tmp_path)
    for _ in range(2):
        cache.save("GET a", PAGE)
        [path] = entries(tmp_path)
        path.unlink()
        IN_PLACE[kind](path)
        assert cache.load("GET a") is None
        cache.save("GET a", PAGE)
        assert cache.load("GET a") == PAGE
        path.unlink()
        IN_PLACE[kind](path)
        if path.parent.is_dir():
            assert cache.forget({"another"}) == 1
            assert entries(tmp_path) == []


def test_an_entry_without_permission_is_absent(tmp_path: Path, monkeypatch: Any) -> None:
    cache = RawCache(tmp_path)
    cache.save("GET a", PAGE)

    def refuse(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)  # as root, a mode would refuse nothing
    assert cache.load("GET a") is None


def test_a_failed_write_leaves_nothing_half_written(tmp_path: Path) -> None:
    cache = RawCache(tmp_path)
    cache.save("GET a", PAGE)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StorageError, match="cannot write"):
            cache.save("GET a", Fetched("u", {}, os.urandom(100_000), MOMENT))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert cache.load("GET a") == PAGE
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == entries(tmp_path)


_WRITES_FOR_EVER = """
import datetime as dt
from pathlib import Path
from crawlers.web.raw_cache import Fetched, RawCache
from tests.forks import serve

def write(folder):
    cache = RawCache(Path(folder))
    for number in range(10**9):
        body = bytes([number % 256]) * 200_000
        cache.save("GET a", Fetched("u", {}, body, dt.datetime(2024, 1, 1, tzinfo=dt.UTC)))

serve(write)
"""


def test_a_killed_writer_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    with forking(_WRITES_FOR_EVER, {}) as forks:
        for round_number in range(3):
            for path in entries(tmp_path):
                path.unlink()
            writer = forks.start(str(tmp_path))
            wait_for(lambda: entries(tmp_path), pause_s=0.002)
            time.sleep(0.01 + 0.017 * round_number)
            os.kill(writer, signal.SIGKILL)
            assert forks.wait() == -signal.SIGKILL
            page = RawCache(tmp_path).load("GET a")
            assert page is not None
            assert len(page.body) == 200_000
            assert len(set(page.body)) == 1


def test_files_of_killed_writers_are_swept_after_a_day(tmp_path: Path) -> None:
    RawCache(tmp_path).save("GET a", Fetched("u", {}, b"old", MOMENT))
    [entry] = entries(tmp_path)
    left, new = entry.with_name(".tmp-killed"), entry.with_name(".tmp-at-work")
    for path in (left, new):
        path.write_bytes(b"half")
    os.utime(left, (0, 0))
    RawCache(tmp_path).save("GET a", Fetched("u", {}, b"new", MOMENT))
    assert not left.exists()
    assert new.exists()
    assert [path.name for path in entry.parent.glob("*.zst")] == [entry.name]
