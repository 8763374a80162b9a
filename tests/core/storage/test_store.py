import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import DiskFull, StorageError
from core.storage.store import (
    Store,
    explain_disk_errors,
    name_of_part,
    path_part,
    writing_file,
)
from tests.forks import ROOT, run_process

HELLO_SHA256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "root"))


def test_what_is_written_is_read(store: Store) -> None:
    assert not store.exists("a/b.txt")
    with pytest.raises(StorageError, match=r"cannot read .*/a/b\.txt"):
        store.read_bytes("a/b.txt")
    assert store.write_bytes("a/b.txt", b"hello") == HELLO_SHA256
    assert store.exists("a/b.txt")
    assert store.read_bytes("a/b.txt") == b"hello"
    with store.open("a/b.txt") as file:
        file.seek(1)
        assert file.read(3) == b"ell"


def test_a_block_that_fails_writes_nothing(store: Store) -> None:
    store.write_bytes("a", b"old")
    with pytest.raises(KeyError), store.writing("a") as staged:
        staged.path.write_bytes(b"half of the new")
        raise KeyError("x")
    assert store.read_bytes("a") == b"old"
    assert store.list("*") == ["a"]
    assert not staged.path.exists()


def test_a_stamp_stays_with_the_content_and_changes_with_it(store: Store) -> None:
    store.write_bytes("a/one", b"1")
    store.write_bytes("a/two", b"2")
    before = store.list_stamped("a/*")
    assert (list(before), before["a/one"].num_bytes) == (["a/one", "a/two"], 1)
    assert abs(before["a/one"].modified_at - time.time()) < 3600
    store.write_bytes("a/two", b"22")
    after = store.list_stamped("a/*")
    assert after["a/one"] == before["a/one"]
    assert after["a/two"] != before["a/two"]


def test_listing_matches_and_sorts(store: Store) -> None:
    for name in ("s=b/m=2", "s=a/m=2", "s=a/m=1", "t=a/m=1"):
        store.write_bytes(f"{name}/manifest.json", b"")
    found = ["s=a/m=1", "s=a/m=2", "s=b/m=2"]
    assert store.list("s=*/m=*/manifest.json") == [f"{each}/manifest.json" for each in found]
    assert store.list("nothing=*/x") == []


@pytest.mark.parametrize("path", ["claims/a.pid:[1].json", "claims/?*.json"])
def test_deleting_takes_a_name_literally(store: Store, path: str) -> None:
    store.write_bytes(path, b"")
    store.write_bytes("claims/a.pid:1.json", b"")
    store.delete(path)
    assert store.list("claims/*") == ["claims/a.pid:1.json"]


def test_deleting_takes_folders_and_forgives_absence(store: Store) -> None:
    store.write_bytes("a/b/c", b"1")
    store.write_bytes("a/d", b"2")
    store.delete("a/b")
    store.delete("a/b")
    assert store.list("a/*") == ["a/d"]


def test_a_folder_that_another_process_writes_to_meanwhile_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, rmdir = Store(str(tmp_path)), os.rmdir
    store.write_bytes("a/b", b"1")

    def rmdir_late(*arguments: Any, **options: Any) -> None:
        store.write_bytes("a/c", b"2")
        rmdir(*arguments, **options)

    monkeypatch.setattr(os, "rmdir", rmdir_late)
    store.delete("a")
    assert store.list("a/*") == ["a/c"]


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../b"])
def test_no_path_leaves_the_root(store: Store, path: str) -> None:
    for action in (store.exists, store.list, store.read_bytes, store.delete):
        with pytest.raises(StorageError, match="leaves the data root"):
            action(path)
    with pytest.raises(StorageError, match="leaves the data root"):
        store.write_bytes(path, b"")


def test_the_root_is_no_pattern_and_others_may_read_files(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "a[b]*c?"))
    store.write_bytes("x/y", b"1")
    assert store.list("*/y") == ["x/y"]
    assert (tmp_path / "a[b]*c?/x/y").stat().st_mode & 0o777 == 0o644


def test_an_address_without_an_extra_that_opens_it_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("core.storage.store.import_parts", lambda part: ())
    with pytest.raises(StorageError, match="s3://bucket/x cannot be opened.*extra object_store"):
        Store("s3://bucket/x")


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_explained(tmp_path: Path, number: int) -> None:
    with (
        pytest.raises(DiskFull, match=r"no space left .*\d+ MiB free .*TIDEMARK_HOME"),
        explain_disk_errors(str(tmp_path / "not" / "there")),
    ):
        raise OSError(number, os.strerror(number))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_leaves_the_old_file(small_disk: Path) -> None:
    store = Store(str(small_disk))
    store.write_bytes("a/b", b"old")
    with pytest.raises(DiskFull, match="no space left while writing"):
        store.write_bytes("a/b", bytes(2 * 2**20))
    assert store.read_bytes("a/b") == b"old"
    assert store.list("a/*") == ["a/b"]
    store.write_bytes("a/b", bytes(2**19))  # the space is free again


@pytest.mark.long
@given(st.text(min_size=1).filter(lambda name: name not in {".", ".."}))
def test_any_name_is_one_path_component_and_comes_back(name: str) -> None:
    part = path_part(name)
    assert "/" not in part
    assert not set(part) & set("*?[]\\\0 ")
    assert part.isascii()
    assert name_of_part(part) == name


@pytest.mark.parametrize("name", ["", ".", "..", "a\ud800"])
def test_some_names_cannot_be_folders(name: str) -> None:
    with pytest.raises(StorageError, match="cannot name a folder"):
        path_part(name)


# Begins to write three files, and ends without cleaning up.
KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from core.storage.store import Store, writing_file
from reports.exports.files import exporting
folder = Path(sys.argv[1])
begun = [
    Store(str(folder / "home")).writing("killed.txt"),
    exporting(folder / "home" / "figures", "figures"),
    writing_file(folder / "codec" / "out.bin"),
]
for writing in begun:
    writing.__enter__()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def of_killed_writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders in which a process was killed while it wrote. Copy them."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "codec").mkdir()
    done = run_process(sys.executable, "-c", KILLED_WRITER, folder, cwd=ROOT)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return folder


def test_files_of_killed_writers_are_swept_by_the_next_and_no_others(
    of_killed_writer: Path, tmp_path: Path
) -> None:
    shutil.copytree(of_killed_writer / "home", tmp_path, dirs_exist_ok=True)
    store = Store(str(tmp_path))
    names = {".tmp-old.txt-1": 2, ".tmp-young.txt-1": 0.5, "old.txt": 2}
    for name, days in names.items():  # of another machine, or an earlier version
        (tmp_path / name).write_text("text")
        os.utime(tmp_path / name, (time.time() - days * 86_400,) * 2)
    assert len(list(tmp_path.glob(".tmp-*"))) == 4
    with store.writing("slow.txt") as slow:
        os.utime(slow.path, (0, 0))  # its writer has paused for long
        store.write_bytes("new.txt", b"new")
        left = {path.name for path in tmp_path.iterdir()} - {slow.path.name}
        slow.path.write_bytes(b"slow")
    assert left == {*names, "new.txt"} - {".tmp-old.txt-1"}
    assert store.read_bytes("slow.txt") == b"slow"


def test_a_store_lists_a_folder_once_however_many_files_it_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else to write a folder of n files takes n² steps: a site has thousands in one folder."""
    listed: list[str] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: (listed.append(str(path)), scandir(path))[1])
    store = Store(str(tmp_path))
    for number in range(20):
        store.write_bytes(f"figures/{number}.csv", b"1")
    store.write_bytes("pages/1.html", b"1")
    assert listed == [str(tmp_path / "figures"), str(tmp_path / "pages")]


def test_a_file_of_a_killed_codec_is_swept(of_killed_writer: Path, tmp_path: Path) -> None:
    """Only files of the same name, since the folder is the user's."""
    shutil.copytree(of_killed_writer / "codec", tmp_path, dirs_exist_ok=True)
    for name in (".tmp-out.bin-1", ".tmp-other.bin-1"):
        (tmp_path / name).write_text("text")
        os.utime(tmp_path / name, (0, 0))
    with writing_file(tmp_path / "out.bin") as path:
        path.write_bytes(b"new")
    assert {path.name for path in tmp_path.iterdir()} == {"out.bin", ".tmp-other.bin-1"}


def test_a_lock_that_another_holds_is_waited_for_and_then_told(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    with store.alone("folder"):
        held = pytest.raises(StorageError, match="another process has locked the folder")
        with held, store.alone("folder", wait_s=0.0):
            pass
        with store.alone("other", wait_s=0.0):
            pass
    with store.alone("folder", wait_s=0.0):
        pass
