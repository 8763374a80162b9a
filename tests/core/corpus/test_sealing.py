import datetime as dt
import json
import multiprocessing
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.corpus.partition import (
    Partition,
    Seal,
    find_version,
    list_sealed,
    list_versions,
    read_seal,
)
from core.corpus.parts import PartWriter, find_damage
from core.corpus.sealing import (
    HELD_BECAUSE,
    Description,
    accept_held,
    list_held,
    read_held,
    seal_partition,
)
from core.corpus.tombstones import write_tombstone
from core.errors import PartitionHeld, PartitionSealed, StorageError, UsageError
from core.month import Month
from core.storage.store import Store
from tests.core.corpus.texts import MARCH, newest, tables, texts_of
from tests.tiers import few

ROOT = Path(__file__).resolve().parents[3]


def _seal(store: Store, *texts: str, partition: Partition = MARCH, **options: Any) -> Seal:
    return seal_partition(
        store,
        partition,
        [*tables(*texts, partition=partition), Description(**options)],
        replace=True,
    )


def _tree(store: Store) -> dict[str, bytes]:
    files = (path for path in Path(store.root).rglob("*") if path.is_file())
    return {str(path.relative_to(store.root)): path.read_bytes() for path in files}


def test_a_month_sealed_anew_is_the_next_version_and_the_former_stays(store: Store) -> None:
    first = _seal(store, "a", files={"notes.txt": b"1"})
    before = _tree(store)
    second = _seal(store, "b", files={"notes.txt": b"2"})
    third = _seal(store, "a")
    assert [first.version, second.version, third.version] == [1, 2, 3]
    assert first.folder == MARCH.path
    assert second.folder == f"{MARCH.path}/version=2"
    assert list_versions(store, MARCH) == [first, second, third]
    assert [texts_of(store, seal) for seal in (first, second, third)] == [["a"], ["b"], ["a"]]
    assert {path: _tree(store)[path] for path in before} == before
    assert store.read_bytes(f"{second.folder}/notes.txt") == b"2"
    assert read_seal(store, MARCH) == third
    assert list_sealed(store) == [third]
    assert find_version(store, MARCH, second.digest) == second
    assert find_version(store, MARCH, first.digest) == third  # as good, and the newest
    assert find_version(store, MARCH, "0" * 64) is None


def test_the_same_content_again_is_no_version(store: Store) -> None:
    _seal(store, "a")
    second = _seal(store, "b")
    before = _tree(store)
    assert _seal(store, "b") == second
    assert seal_partition(store, MARCH, [*tables("b"), Description({"run": 2})]) == second
    assert _tree(store) == before


def test_versions_are_read_as_of_an_instant(store: Store) -> None:
    first, second = _seal(store, "a"), _seal(store, "b")
    april = _seal(store, "c", partition=Partition("wikipedia", Month("2024-04")))
    assert first.sealed_at
    assert second.sealed_at
    assert first.sealed_at < second.sealed_at
    between = second.sealed_at - dt.timedelta(microseconds=1)
    assert read_seal(store, MARCH, first.sealed_at) == first
    assert read_seal(store, MARCH, between) == first
    assert read_seal(store, MARCH, second.sealed_at) == second
    assert read_seal(store, MARCH, first.sealed_at - dt.timedelta(microseconds=1)) is None
    assert list_sealed(store, as_of=between) == [first]
    assert list_sealed(store) == [second, april]
    assert list_sealed(store, "wikipedia", second.sealed_at) == [second]


def test_a_corpus_of_before_versions_is_its_first_version(store: Store) -> None:
    seal = _seal(store, "a")
    former = {k: v for k, v in seal.manifest.items() if k not in ("version", "sealed_at")}
    store.write_bytes(f"{MARCH.path}/manifest.json", json.dumps(former).encode())
    read = read_seal(store, MARCH, dt.datetime(2000, 1, 1, tzinfo=dt.UTC))
    assert read is not None
    assert (read.version, read.sealed_at) == (1, None)
    crawled = {**former, "ended_at": "2024-04-02T00:00:00+00:00"}
    store.write_bytes(f"{MARCH.path}/manifest.json", json.dumps(crawled).encode())
    assert read_seal(store, MARCH, dt.datetime(2024, 4, 1, tzinfo=dt.UTC)) is None
    assert _seal(store, "b").version == 2


def test_damaged_files_of_the_newest_version_are_mended_in_place(store: Store) -> None:
    old = _seal(store, "old")
    seal = _seal(store, "text of the newest")
    store.write_bytes(seal.parts[0], b"damaged")
    with pytest.raises(PartitionSealed):
        seal_partition(store, MARCH, tables("other"))
    mended = _seal(store, "text of the newest")
    assert (mended.version, mended.digest) == (2, seal.digest)
    assert not list(find_damage(store, mended))
    assert list_versions(store, MARCH) == [old, mended]
    assert store.list(f"{mended.folder}/part-*") == list(mended.parts)


def test_a_foreign_folder_is_named(store: Store) -> None:
    _seal(store, "a")
    store.write_bytes(f"{MARCH.path}/version=two/manifest.json", b"{}")
    with pytest.raises(StorageError, match="expected a folder version=N"):
        read_seal(store, MARCH)


def test_what_a_killed_run_left_is_cleared(store: Store) -> None:
    first = _seal(store, "a")
    store.write_bytes(f"{MARCH.path}/version=2/part-00000-dead.parquet", b"half")
    store.write_bytes(f"{MARCH.path}/version=2/dropped.jsonl.zst", b"half")
    store.write_bytes(f"{MARCH.path}/version=2/.sealing", b"")
    store.write_bytes(f"{MARCH.path}/part-00000-dead.parquet", b"half")
    store.write_bytes(f"{MARCH.path}/sketch.parquet", b"of another step")
    assert list_sealed(store) == [first]
    assert _seal(store, "a") == first
    assert sorted(_tree(store)) == sorted(
        [*first.parts, f"{MARCH.path}/manifest.json", f"{MARCH.path}/sketch.parquet"]
    )


@pytest.mark.parametrize("num_before", [0, 1])
def test_texts_whose_manifest_is_lost_are_never_deleted(store: Store, num_before: int) -> None:
    for number in range(num_before):
        _seal(store, f"before {number}", files={"dropped.jsonl.zst": b"0"})
    lost = _seal(store, "a", files={"dropped.jsonl.zst": b"1"})
    path = f"{lost.folder}/manifest.json"
    manifest = store.read_bytes(path)
    store.delete(path)
    before = _tree(store)
    for texts in (["a"], ["b"], ["before 0"]):
        with pytest.raises(StorageError, match=r"manifest.json is missing; nothing was changed"):
            _seal(store, *texts)
        assert _tree(store) == before
    store.write_bytes(path, manifest)
    assert _seal(store, "a", files={"dropped.jsonl.zst": b"1"}).digest == lost.digest


def test_a_run_killed_just_before_the_manifest_is_no_lost_manifest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> bool:
        raise SystemExit

    monkeypatch.setattr(Store, "create_bytes", killed)
    monkeypatch.setattr(PartWriter, "discard", lambda _: None)
    with pytest.raises(SystemExit):
        _seal(store, "a", files={"dropped.jsonl.zst": b"1"})
    monkeypatch.undo()
    seal = _seal(store, "b", files={"dropped.jsonl.zst": b"2"})
    assert sorted(_tree(store)) == sorted(
        [*seal.parts, f"{MARCH.path}/manifest.json", f"{MARCH.path}/dropped.jsonl.zst"]
    )


def _rival(root: str, barrier: Any, text: str) -> None:
    def made() -> Iterator[pa.Table]:
        yield from tables(text)
        barrier.wait(300)

    try:
        beside = {"notes.txt": text.encode()}
        seal_partition(Store(root), MARCH, chain(made(), [Description(files=beside)]), replace=True)
    except StorageError as error:
        assert "another process" in str(error)
        sys.exit(3)


@pytest.mark.parametrize("num_before", few([1, 0], 1))
def test_of_two_processes_that_seal_at_once_one_wins(store: Store, num_before: int) -> None:
    if num_before:
        _seal(store, "before")
    context = multiprocessing.get_context("spawn")  # threads of earlier tests do not survive a fork
    barrier = context.Barrier(2)
    rivals = [
        context.Process(target=_rival, args=(store.root, barrier, text)) for text in ("x", "y")
    ]
    for rival in rivals:
        rival.start()
    for rival in rivals:
        rival.join(300)
    assert {rival.exitcode for rival in rivals} == {0, 3}
    seal = newest(store)
    assert seal.version == num_before + 1
    [text] = texts_of(store, seal)
    assert store.read_bytes(f"{seal.folder}/notes.txt").decode() == text
    assert store.list(f"{seal.folder}/part-*") == list(seal.parts)


def test_what_is_forgotten_meanwhile_is_not_sealed(store: Store) -> None:
    def made() -> Iterator[pa.Table]:
        yield from tables("a")
        write_tombstone(store, "0" * 32, "asked")

    with pytest.raises(StorageError, match="forgotten meanwhile"):
        seal_partition(store, MARCH, made())
    assert list_sealed(store) == []
    assert store.list(f"{MARCH.path}/*") == []


def _hold(store: Store, *texts: str) -> None:
    described, reasons = {"status": "partial"}, ["too few", "too small"]
    with pytest.raises(PartitionHeld, match=r"too few; too small.*corpus accept wikipedia 2024-03"):
        _seal(store, *texts, manifest=described, held_because=reasons, files={"notes.txt": b"n"})


def test_what_is_held_is_nowhere_to_be_seen_until_it_is_accepted(store: Store) -> None:
    _hold(store, "a", "b")
    assert read_seal(store, MARCH) is None
    assert list_sealed(store) == []
    held = read_held(store, MARCH)
    assert held is not None
    assert list(list_held(store)) == [held]
    assert held.manifest["status"] == "held"
    assert held.manifest[HELD_BECAUSE] == ["too few", "too small"]
    with pytest.raises(UsageError, match="--why"):
        accept_held(store, MARCH, " ")
    seal = accept_held(store, MARCH, "the site was young")
    assert texts_of(store, seal) == ["a", "b"]
    assert seal.digest == held.digest
    assert seal.manifest["status"] == "partial"
    accepted: Any = seal.manifest["accepted"]
    assert accepted["why"] == "the site was young"
    assert accepted["although"] == ["too few", "too small"]
    assert HELD_BECAUSE not in seal.manifest
    assert store.read_bytes(f"{MARCH.path}/notes.txt") == b"n"
    assert read_held(store, MARCH) is None
    assert store.list(f"{MARCH.path}/held*") == []
    with pytest.raises(UsageError, match="nothing is held back"):
        accept_held(store, MARCH, "again")


def test_a_version_that_is_held_leaves_the_former_in_use(store: Store) -> None:
    first = _seal(store, "a")
    _hold(store, "b")
    assert read_seal(store, MARCH) == first
    _hold(store, "c")  # another crawl takes its place
    held = read_held(store, MARCH)
    assert held is not None
    assert texts_of(store, held) == ["c"]
    store.write_bytes(held.parts[0], b"damaged")
    with pytest.raises(StorageError, match="crawl wikipedia 2024-03 again"):
        accept_held(store, MARCH, "looks fine")
    second = _seal(store, "d")  # a month that passes replaces it
    assert (second.version, read_held(store, MARCH)) == (2, None)


_ACCEPTER = """
import os, sys
from core.corpus import partition as corpus
from core.corpus import sealing
from core.month import Month
from core.storage.store import Store
import core.storage.store

changes_left = int(sys.argv[2])
replace_durably, delete = core.storage.store.replace_durably, Store.delete

def count():
    global changes_left
    if not changes_left:
        os.kill(os.getpid(), 9)
    changes_left -= 1

def killing(*arguments):
    count()
    replace_durably(*arguments)

def deleting(*arguments):
    count()
    delete(*arguments)

core.storage.store.replace_durably, Store.delete = killing, deleting
sealing.accept_held(Store(sys.argv[1]), corpus.Partition("wikipedia", Month("2024-03")), "so")
"""


@pytest.mark.parametrize("changes", few(range(6), 3))
def test_accepting_can_be_killed_anywhere(tmp_path: Path, changes: int) -> None:
    store = Store(str(tmp_path))
    _hold(store, "a")
    command = [sys.executable, "-c", _ACCEPTER, str(tmp_path), str(changes)]
    assert subprocess.run(command, cwd=ROOT).returncode == -9
    if read_held(store, MARCH) is not None:
        accept_held(store, MARCH, "so")
    seal = newest(store)
    assert texts_of(store, seal) == ["a"]
    assert seal.manifest["status"] == "partial"
