import hashlib
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.corpus import partition as corpus
from core.corpus import parts
from core.corpus.partition import (
    Partition,
    document_id,
    list_sealed,
    list_versions,
    read_documents,
    read_seal,
    tables_of,
)
from core.corpus.sealing import Description, seal_partition
from core.errors import PartitionSealed, SchemaMismatch, StorageError
from core.month import Month
from core.schemas.tables import DOCUMENTS
from core.storage.store import Store
from tests.core.corpus.texts import MARCH, newest, rows_of, tables, texts_of
from tests.tiers import few

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 10)
    monkeypatch.setattr(corpus, "BATCH_ROWS", 2)


def _media(*contents: bytes, kind: str = "audio") -> list[dict[str, Any]]:
    codec = {"audio": "pcm_s16le", "image": "grey8"}[kind]
    return [
        {
            "native_id": f"n{i}", "date_kind": "given", "licence": "MIT", "media_kind": kind,
            "codec": codec, "media": content,
        }
        for i, content in enumerate(contents)
    ]  # fmt: skip


def test_rows_are_completed() -> None:
    (table,) = tables_of([{**rows_of("naïve")[0], "version_id": "v1"}], MARCH)
    row = table.to_pylist()[0]
    identity = hashlib.sha256(b"wikipedia|n0|v1").hexdigest()[:32]
    assert row["document_id"] == document_id("wikipedia", "n0", "v1") == identity
    assert (row["num_chars"], row["num_bytes"]) == (5, 6)
    assert row["sha256_text"] == hashlib.sha256("naïve".encode()).hexdigest()
    assert (row["source"], str(row["month"])) == ("wikipedia", "2024-03-01")
    assert row["cluster_id"] == "n0"
    assert row["url"] is None
    assert table.schema == DOCUMENTS


def test_batches_are_bounded_in_rows_and_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "BATCH_ROWS", 3)
    monkeypatch.setattr(corpus, "BATCH_BYTES", 10)
    assert [t.num_rows for t in tables(*"abcdefg")] == [3, 3, 1]
    assert [t.num_rows for t in tables("x" * 10, "a", "y" * 9, "b")] == [1, 2, 1]
    assert list(tables()) == []


@pytest.mark.usefixtures("small_parts")
def test_a_sealed_partition_reads_back_in_order(store: Store) -> None:
    texts = [f"text {i}" for i in range(7)]
    seal = seal_partition(store, MARCH, [*tables(*texts), Description({"kind": "test"})])
    assert len(seal.parts) == 4
    assert (seal.num_documents, seal.num_bytes) == (7, sum(map(len, texts)))
    assert texts_of(store, seal) == texts
    assert read_seal(store, MARCH) == seal
    assert seal.manifest["kind"] == "test"
    batches = list(read_documents(store, seal, ["document_id", "text"], batch_rows=1))
    assert {batch.num_rows for batch in batches} == {1}
    assert batches[0].schema.names == ["document_id", "text"]
    for file, path in zip(seal.manifest["files"], seal.parts, strict=True):  # type: ignore[call-overload]
        assert hashlib.sha256(store.read_bytes(path)).hexdigest() == file["sha256"]


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("kind", ["image", "audio"])
def test_media_are_sealed_and_read_like_texts(kind: str, store: Store) -> None:
    contents = [bytes([i, 255]) * (i + 1) for i in range(5)]
    seal = seal_partition(store, MARCH, tables_of(_media(*contents, kind=kind), MARCH))
    assert (seal.content, seal.is_text, seal.manifest["content"]) == (kind, False, kind)
    assert (seal.num_documents, seal.num_bytes, len(seal.parts)) == (5, 30, 2)
    assert read_seal(store, MARCH) == seal
    columns = ["document_id", "media", "width"]
    batches = list(read_documents(store, seal, columns))
    assert batches[0].schema.names == columns
    assert [value for batch in batches for value in batch["media"].to_pylist()] == contents
    again = seal_partition(store, MARCH, tables_of(_media(*contents, kind=kind), MARCH))
    assert again == seal
    with pytest.raises(PartitionSealed):
        seal_partition(store, MARCH, tables_of(_media(b"ab", kind=kind), MARCH))
    text = seal_partition(store, MARCH, tables("a"), replace=True)
    assert (text.content, text.is_text, text.version) == ("text", True, 2)
    assert len(store.list(f"{text.folder}/*")) == 2


def test_digests_are_what_they_were_in_the_first_release(store: Store) -> None:
    """Losses are stored by digest: a changed digest would cause rescoring of everything."""

    def digest(rows: list[dict[str, Any]]) -> str:
        return seal_partition(store, MARCH, tables_of(rows, MARCH), replace=True).digest

    texts = "".join(
        f"{document_id('wikipedia', f'n{i}', None)} {hashlib.sha256(content).hexdigest()}\n"
        for i, content in enumerate((b"a\0", b"bb"))
    )
    expected = hashlib.sha256(texts.encode()).hexdigest()
    assert digest(rows_of("a\0", "bb")) == digest(_media(b"a\0", b"bb")) == expected


@pytest.mark.parametrize("batch_rows", [1, 10])
@pytest.mark.parametrize(
    ("first", "second"), [("text", "image"), ("image", "audio"), ("audio", "text")]
)
def test_a_partition_is_of_one_kind(
    first: str, second: str, batch_rows: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpus, "BATCH_ROWS", batch_rows)
    monkeypatch.setattr(parts, "PART_BYTES", 1)
    rows = [
        *(rows_of("ab") if first == "text" else _media(b"ab", kind=first)),
        *(rows_of("cd") if second == "text" else _media(b"cd", kind=second)),
    ]
    with pytest.raises(SchemaMismatch, match=r"wikipedia 2024-03: \w+ and \w+ in one partition"):
        seal_partition(store, MARCH, tables_of(rows, MARCH))
    assert store.list(f"{MARCH.path}/*") == []


def test_a_manifest_that_does_not_say_is_of_texts(store: Store) -> None:
    seal = seal_partition(store, MARCH, tables("a"))
    path = f"{MARCH.path}/manifest.json"
    manifest = json.loads(store.read_bytes(path))
    del manifest["content"]
    store.write_bytes(path, json.dumps(manifest).encode())
    old = newest(store)
    assert (old.is_text, old.digest) == (True, seal.digest)
    store.write_bytes(path, json.dumps({**manifest, "content": "video"}).encode())
    with pytest.raises(StorageError, match="unknown content 'video'"):
        read_seal(store, MARCH)


def test_other_content_is_refused_unless_it_may_replace(store: Store) -> None:
    first = seal_partition(store, MARCH, [*tables("a"), Description(files={"notes.txt": b"1"})])
    with pytest.raises(PartitionSealed, match=r"1 documents.*2 documents.*--replace"):
        seal_partition(store, MARCH, [*tables("a", "b"), Description(files={"notes.txt": b"2"})])
    assert read_seal(store, MARCH) == first
    assert texts_of(store, first) == ["a"]
    assert store.read_bytes(f"{MARCH.path}/notes.txt") == b"1"
    second = seal_partition(store, MARCH, tables("a", "b"), replace=True)
    assert second.digest != first.digest
    assert store.list(f"{second.folder}/*") == sorted(
        [*second.parts, f"{second.folder}/manifest.json"]
    )


def test_a_source_that_fails_half_way_leaves_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 1)

    def made() -> Iterator[pa.Table]:
        yield from tables("a")
        raise KeyError("the site is gone")

    with pytest.raises(KeyError):
        seal_partition(store, MARCH, made())
    assert store.list(f"{MARCH.path}/*") == []
    assert read_seal(store, MARCH) is None
    assert list_sealed(store) == []


def test_rows_of_another_partition_are_refused(store: Store) -> None:
    april = Partition("wikipedia", Month("2024-04"))
    for other in (april, Partition("arxiv", MARCH.month), Partition("wikipedia", None)):
        with pytest.raises(SchemaMismatch, match="must be"):
            seal_partition(store, MARCH, tables("a", partition=other))
    with pytest.raises(SchemaMismatch, match="UTF-8 length"):
        (table,) = tables("a")
        wrong = table.set_column(18, DOCUMENTS.field("num_bytes"), pa.array([7]))
        seal_partition(store, MARCH, [wrong])
    assert list_sealed(store) == []


def test_partitions_are_listed_by_source_and_month(store: Store) -> None:
    december = Partition("wikipedia", Month("2023-12"))
    partitions = [Partition("org/odd name:*", None), MARCH, december]
    for partition in partitions:
        seal_partition(store, partition, tables("a", partition=partition))
    assert {seal.partition for seal in list_sealed(store)} == set(partitions)
    months = [str(seal.partition.month) for seal in list_sealed(store, "wikipedia")]
    assert months == ["2023-12", "2024-03"]
    assert [s.partition for s in list_sealed(store, "org/odd name:*")] == [partitions[0]]
    assert list_sealed(store, "unknown") == []


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"digest": 1}', "\xff"])
def test_a_damaged_manifest_is_named(store: Store, text: str) -> None:
    store.write_bytes(f"{MARCH.path}/manifest.json", text.encode("latin-1"))
    with pytest.raises(StorageError, match=r"manifest\.json is not a manifest"):
        read_seal(store, MARCH)


def test_a_damaged_part_is_found(store: Store) -> None:
    text = "".join(hashlib.sha256(bytes([i])).hexdigest() for i in range(200))
    seal = seal_partition(store, MARCH, tables(text))
    whole = store.read_bytes(seal.parts[0])
    column = DOCUMENTS.get_field_index("text")
    with store.open(seal.parts[0]) as file:
        page = pq.ParquetFile(file).metadata.row_group(0).column(column)
        middle = page.data_page_offset + page.total_compressed_size // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    for damaged in (flipped, whole[:-100], b"not parquet", b""):
        store.write_bytes(seal.parts[0], damaged)
        with pytest.raises(StorageError, match="is damaged.*--replace"):
            texts_of(store, seal)
    store.delete(seal.parts[0])
    with pytest.raises(StorageError, match="cannot read"):
        texts_of(store, seal)


def test_a_rival_that_seals_meanwhile_is_noticed(store: Store) -> None:
    """The other process removes our files as leftovers; then our manifest must not be written."""

    def made() -> Iterator[pa.Table]:
        yield from tables("x" * 20)
        seal_partition(store, MARCH, tables("of a rival"), replace=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART_BYTES", 1)
        with pytest.raises(StorageError, match="another process"):
            seal_partition(store, MARCH, made(), replace=True)
    seal = newest(store)
    assert texts_of(store, seal) == ["of a rival"]


_SEALER = """
import os, sys
from core.corpus import partition as corpus
from core.corpus import parts
from core.corpus import sealing
from core.month import Month
from core.storage.store import Store, replace_durably
import core.storage.store

writes_left = int(sys.argv[2])

def killing(temporary, final):
    global writes_left
    if not writes_left:
        os.kill(os.getpid(), 9)
    writes_left -= 1
    replace_durably(temporary, final)

core.storage.store.replace_durably = killing
parts.PART_BYTES = 1
corpus.BATCH_ROWS = 1
march = corpus.Partition("wikipedia", Month("2024-03"))
rows = [{"native_id": t, "date_kind": "created", "licence": "MIT", "text": t} for t in "abc"]
beside = sealing.Description(files={"dropped.jsonl.zst": b"none"})
contents = [*corpus.tables_of(rows, march), beside]
sealing.seal_partition(Store(sys.argv[1]), march, contents, replace=True)
"""


@pytest.mark.parametrize("writes", few([5, 6, 4, 3, 0, 1, 2], 3))
def test_a_kill_at_any_write_leaves_old_or_new(tmp_path: Path, writes: int) -> None:
    store = Store(str(tmp_path))
    old = seal_partition(store, MARCH, tables("old"))

    def run(writes: int) -> int:
        command = [sys.executable, "-c", _SEALER, str(tmp_path), str(writes)]
        return subprocess.run(command, cwd=ROOT).returncode

    assert run(writes) == (-9 if writes < 6 else 0)
    seal = newest(store)
    assert texts_of(store, seal) == (["old"] if writes < 6 else ["a", "b", "c"])
    assert (seal == old) == (writes < 6)
    assert run(99) == 0
    seal = newest(store)
    assert texts_of(store, seal) == ["a", "b", "c"]
    if writes < 6:  # otherwise the second run finds nothing to remove
        assert sorted(p.name for p in (tmp_path / seal.folder).iterdir()) == sorted(
            ["manifest.json", "dropped.jsonl.zst", *(Path(path).name for path in seal.parts)]
        )
    assert list_versions(store, MARCH) == [old, seal]
    assert texts_of(store, old) == ["old"]
