import datetime as dt
import hashlib
import io
import json
import os
import shutil
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
import zstandard
from PIL import Image

from core.corpus.partition import Partition, Seal, document_id, list_sealed, read_documents
from core.errors import MalformedInput, PartitionSealed, UsageError
from core.month import Month
from core.schemas.tables import MEDIA
from core.storage.store import Store
from crawlers.imports.texts import ImportOptions, import_texts
from extras.media.importing import import_media

JUNE = Partition("gallery", Month("2024-06"))


def _image(path: Path, mark: int = 0, size: tuple[int, int] = (256, 64)) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(mark).integers(0, 256, (size[1], size[0]), dtype=np.uint8)
    Image.fromarray(pixels).save(path, "PNG")
    return path


def _recording(path: Path, mark: int = 0, seconds: float = 5) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(mark).integers(-999, 999, int(seconds * 16_000), dtype=np.int16)
    soundfile.write(path, samples, 16_000, format="WAV")
    return path


WRITERS: dict[str, Callable[..., Path]] = {"image": _image, "audio": _recording}


def _rows(store: Store, seal: Seal) -> list[dict[str, Any]]:
    return [row for batch in read_documents(store, seal) for row in batch.to_pylist()]


def _drops(store: Store) -> dict[str, str]:
    lines = zstandard.decompress(store.read_bytes(f"{JUNE.path}/dropped.jsonl.zst")).splitlines()
    return {drop["native_id"]: drop["reason"] for drop in map(json.loads, lines)}


def test_an_image_becomes_its_patches(store: Store, tmp_path: Path) -> None:
    path = _image(tmp_path / "a.png")
    seal = import_media(path, JUNE, store)
    pixels = np.asarray(Image.open(path))
    assert (seal.content, seal.is_text, seal.num_documents) == ("image", False, 2)
    assert seal.num_bytes == pixels.size
    first, second = _rows(store, seal)
    assert list(first) == MEDIA.names
    assert first["media"] == pixels[:, :128].tobytes()
    assert second["media"] == pixels[:, 128:].tobytes()
    expected = {
        "document_id": document_id("gallery", "a.png:0", None), "source": "gallery",
        "month": dt.date(2024, 6, 1), "native_id": "a.png:0", "cluster_id": "a.png",
        "date_kind": "given", "title": "a.png", "url": None, "licence": "LicenseRef-unknown",
        "media_kind": "image", "codec": "grey8", "width": 128, "height": 64, "channels": 1,
        "sample_rate": None, "duration_s": None, "num_bytes": 8192,
        "sha256_media": hashlib.sha256(first["media"]).hexdigest(),
        "extra": '{"top": 0, "left": 0, "image_width": 256, "image_height": 64}',
    }  # fmt: skip
    assert {name: first[name] for name in expected} == expected
    facts = {"kind": "import", "file": "a.png", "patch_height": 64, "max_patches": 16, "kept": 2}
    assert {name: seal.manifest[name] for name in facts} == facts


def test_a_recording_becomes_its_segments(store: Store, tmp_path: Path) -> None:
    undated = Partition("radio", None)
    seal = import_media(_recording(tmp_path / "b.wav", seconds=6.5), undated, store, licence="CC0")
    assert (seal.content, seal.num_documents, seal.num_bytes) == ("audio", 2, 6.5 * 32_000)
    rows = _rows(store, seal)
    expected = {
        "month": None, "native_id": "b.wav:1", "cluster_id": "b.wav", "date_kind": "none",
        "licence": "CC0", "media_kind": "audio", "codec": "pcm_s16le", "width": None,
        "height": None, "channels": 1, "sample_rate": 16_000, "duration_s": 2.5,
        "extra": '{"begin_s": 4}',
    }  # fmt: skip
    assert {name: rows[1][name] for name in expected} == expected
    samples, _ = soundfile.read(tmp_path / "b.wav", dtype="int16")
    assert b"".join(row["media"] for row in rows) == samples.astype("<i2").tobytes()


@pytest.mark.parametrize("kind", WRITERS)
def test_the_same_files_elsewhere_change_nothing(kind: str, store: Store, tmp_path: Path) -> None:
    for index in range(3):
        WRITERS[kind](tmp_path / "here" / "sub" / f"{index}", index)
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    first = import_media(tmp_path / "here", JUNE, store)
    assert import_media(tmp_path / "there", JUNE, store) == first
    with pytest.raises(UsageError, match="no file or folder"):
        import_media(tmp_path / "nowhere", JUNE, store)


def test_files_that_cannot_be_used_are_counted(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    whole = _image(folder / "good.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.png").touch()
    (folder / "notes.txt").write_text("these are photographs of mine")
    _image(folder / "small.png", size=(128, 63))
    (folder / "link.png").symlink_to(_image(tmp_path / "outside.png"))  # no file of the folder
    seal = import_media(folder, JUNE, store)
    assert _drops(store) == {
        "cut.png": "damaged", "empty.png": "empty", "notes.txt": "unknown_format",
        "small.png": "too_small",
    }  # fmt: skip
    assert seal.manifest["dropped"] == dict.fromkeys(_drops(store).values(), 1)
    assert (seal.manifest["requested"], seal.manifest["kept"]) == (6, 2)


def test_content_tells_what_a_file_is(store: Store, tmp_path: Path) -> None:
    pixels = Image.fromarray(np.full((64, 128, 3), 7, dtype=np.uint8))
    for format_ in ("PNG", "JPEG", "GIF", "WEBP"):
        (tmp_path / "in").mkdir(exist_ok=True)
        pixels.save(tmp_path / "in" / f"{format_}.wav", format_)
    assert import_media(tmp_path / "in", JUNE, store).content == "image"
    (tmp_path / "heard").mkdir()
    for format_ in ("WAV", "FLAC", "OGG", "MP3"):
        file = io.BytesIO()
        soundfile.write(file, np.zeros(20_000), 16_000, format=format_)
        (tmp_path / "heard" / f"{format_}.png").write_bytes(file.getvalue())
    tag = b"ID3\x04\0\0\0\0\0\x0a" + bytes(10)
    (tmp_path / "heard" / "tagged").write_bytes(tag + file.getvalue())
    seal = import_media(tmp_path / "heard", Partition("radio", None), store)
    assert (seal.content, seal.num_documents) == ("audio", 5)


@pytest.mark.parametrize(
    "start",
    [b"", b"\xff\xfe<\0", b"\xff\xf1\x50\x80", b"BM", b"II*\0", b"RIFF\0\0\0\0AVI ", b"%PDF"],
    ids=["empty", "UTF-16", "AAC", "BMP", "TIFF", "AVI", "PDF"],
)
def test_a_folder_of_neither(start: bytes, store: Store, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(start + bytes(20 if start else 0))
    with pytest.raises(UsageError, match=r"holds no image \(PNG, .*\) and no recording \(WAV, "):
        import_media(tmp_path, JUNE, store)


def test_a_source_is_of_one_kind(store: Store, tmp_path: Path) -> None:
    image = _image(tmp_path / "a.png")
    recording = _recording(tmp_path / "a.wav")
    text = tmp_path / "a.json"
    text.write_text(json.dumps(["a text that is long enough to be kept " * 5]))
    july = Partition("gallery", Month("2024-07"))
    import_media(image, JUNE, store)
    with pytest.raises(UsageError, match=r"gallery 2024-06 is sealed as image, so audio needs"):
        import_media(recording, july, store)
    with pytest.raises(UsageError, match=r"is sealed as image, so text needs a source of its own"):
        import_texts(text, july, store, ImportOptions())
    with pytest.raises(PartitionSealed):
        import_media(recording, JUNE, store)
    assert import_media(recording, JUNE, store, replace=True).content == "audio"
    assert import_media(recording, july, store).content == "audio"


def test_a_file_name_that_is_no_text_is_refused(store: Store, tmp_path: Path) -> None:
    _image(tmp_path / "a.png").rename(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png"))
    with pytest.raises(MalformedInput, match="lone surrogate") as caught:
        import_media(tmp_path, JUNE, store)
    str(caught.value).encode()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png")).write_text("words " * 30)
    with pytest.raises(MalformedInput, match="lone surrogate"):
        import_texts(tmp_path, JUNE, store, ImportOptions(format="folder"))


def test_a_file_that_goes_away_meanwhile_is_named(store: Store, tmp_path: Path) -> None:
    for index in range(3):
        _image(tmp_path / "in" / f"{index}.png", index)

    class Thief(Store):
        def list(self, pattern: str) -> list[str]:  # asked after the files were listed
            (tmp_path / "in" / "2.png").unlink(missing_ok=True)
            return super().list(pattern)

    with pytest.raises(MalformedInput, match=r"2\.png cannot be read"):
        import_media(tmp_path / "in", JUNE, Thief(store.root))
    assert list_sealed(store) == []


@pytest.mark.long
def test_memory_does_not_grow_with_the_folder(store: Store, tmp_path: Path) -> None:
    def peak(num_files: int) -> int:
        folder = tmp_path / str(num_files)
        for index in range(num_files):
            _image(folder / f"{index}.png", index, size=(512, 256))  # 128 KiB of patches each
        tracemalloc.start()
        seal = import_media(folder, Partition(f"gallery-{num_files}", None), store)
        _, high = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert seal.num_documents == 16 * num_files
        return high

    assert peak(160) < peak(40) + 2**21
