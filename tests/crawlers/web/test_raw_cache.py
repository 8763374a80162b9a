import datetime as dt
import multiprocessing
import os
import resource
import signal
import time
from pathlib import Path

import pytest
import zstandard

from core.errors import StorageError
from crawlers.web.raw_cache import Fetched, RawCache

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


@pytest.mark.parametrize("data", [b"", b"[]\nx", b"{}\nx", b'{"url": 1, "retrieved_at": 5}\n'])
def test_a_file_of_another_shape_is_absent(tmp_path: Path, data: bytes) -> None:
    cache = RawCache(tmp_path)
    cache.save("GET a", PAGE)
    entries(tmp_path)[0].write_bytes(zstandard.compress(data))
    assert cache.load("GET a") is None


def test_an_entry_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    cache = RawCache(tmp_path)
    cache.save("GET a", PAGE)
    [path] = entries(tmp_path)
    path.unlink()
    path.mkdir()
    with pytest.raises(StorageError, match=f"cannot read {path}"):
        cache.load("GET a")


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


def _write_for_ever(folder: Path) -> None:
    cache = RawCache(folder)
    for number in range(10**9):
        body = bytes([number % 256]) * 200_000
        cache.save("GET a", Fetched("u", {}, body, MOMENT))


def test_a_killed_writer_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    for round_number in range(3):
        for path in entries(tmp_path):
            path.unlink()
        writer = context.Process(target=_write_for_ever, args=(tmp_path,))
        writer.start()
        while not entries(tmp_path):
            time.sleep(0.002)
        time.sleep(0.01 + 0.017 * round_number)
        os.kill(int(writer.pid or 0), signal.SIGKILL)
        writer.join()
        page = RawCache(tmp_path).load("GET a")
        assert page is not None
        assert len(page.body) == 200_000
        assert len(set(page.body)) == 1
