import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.commands import *  # noqa: F403
from tests.commands import import_notes

Tidemark = Callable[..., Any]
TEXT = "The tide leaves a mark on the sand. Ещё раз: 早い者勝ち 🙂\r\n\0" * 12


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT.encode())
    return path


@pytest.fixture
def coded(tidemark: Tidemark, text: Path, tiny_model: Path, tmp_path: Path) -> Path:
    path = tmp_path / "text.tmk"
    assert tidemark("compress", text, path, "--model", tiny_model).code == 0
    return path


def files_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


@pytest.mark.smoke
def test_a_text_comes_back(tidemark: Tidemark, text, tiny_model, tmp_path) -> None:
    ran = tidemark("compress", text, tmp_path / "coded", "--model", tiny_model)
    size = (tmp_path / "coded").stat().st_size
    said = re.search(
        rf"coded: {size:,} bytes of {len(TEXT.encode()):,} "
        r"\((\d+) chunks: ([\d.,]+) predicted, ([\d,]+) coded; (\d+) of header\)",
        ran.out,
    )
    assert ran.code == 0 and said
    chunks, predicted, coded, header = (float(figure.replace(",", "")) for figure in said.groups())
    assert coded + header == size
    assert chunks > 1 and predicted - 1 <= coded <= 1.001 * predicted + 16 * chunks
    ran = tidemark("decompress", tmp_path / "coded", tmp_path / "back")
    assert ran.code == 0 and f"back: {len(TEXT.encode()):,} bytes" in ran.out
    assert (tmp_path / "back").read_bytes() == TEXT.encode()
    assert files_in(tmp_path) == ["back", "coded", "text.txt"]


def test_damage_leaves_what_was_there(tidemark: Tidemark, coded: Path, tmp_path: Path) -> None:
    whole = coded.read_bytes()
    (tmp_path / "old").write_text("as it was")
    before = files_in(tmp_path)
    for damaged in (
        whole[:-1],
        whole[:40],
        b"",
        whole[:99] + bytes([whole[99] ^ 1]) + whole[100:],
        b"x" + whole,
    ):
        coded.write_bytes(damaged)
        for name in ("new", "old"):
            tidemark("decompress", coded, tmp_path / name).expect(1, str(coded))
    assert files_in(tmp_path) == before
    assert (tmp_path / "old").read_text() == "as it was"


def test_a_model_of_other_weights_is_refused(
    tidemark: Tidemark, coded: Path, tiny_model: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(tiny_model, tmp_path / "other")
    assert tidemark("decompress", coded, tmp_path / "back", "--model", other).code == 0
    (tmp_path / "back").unlink()
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    ran = tidemark("decompress", coded, tmp_path / "back", "--model", other)
    assert ran.code == 1 and "other weights or another tokenizer" in ran.err
    assert not (tmp_path / "back").exists()


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("compress none OUT -m MODEL", "none cannot be read: No such file"),
        ("compress . OUT -m MODEL", "cannot be read: Is a directory"),
        ("compress IN . -m MODEL", "is no file; give a name"),
        ("compress IN IN -m MODEL", "would be written over"),
        ("compress IN no/folder/out -m MODEL", "is no folder; make it first"),
        ("compress IN OUT -m nobody", "unknown model 'nobody'"),
        ("compress IN OUT -m control:zstd", "of kind control"),
        ("decompress none OUT", "none cannot be read"),
        ("check losses -m nobody", "unknown model 'nobody'"),
        ("check losses -m MODEL", "run `tidemark score --model /"),
        ("check losses -m MODEL --month 2024-13", "is not a month"),
    ],
)
def test_a_wrong_request_exits_with_2_and_does_nothing(
    tidemark: Tidemark, command, says, text, tiny_model, tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"IN": text, "OUT": tmp_path / "out", "MODEL": tiny_model}
    tidemark(*(names.get(word, word) for word in command.split())).expect(2, says)
    assert files_in(tmp_path) == ["text.txt"]


def test_what_is_no_text_is_refused(tidemark: Tidemark, tiny_model, tmp_path) -> None:
    (tmp_path / "bytes").write_bytes(b"good so far \xff\xfe")
    ran = tidemark("compress", tmp_path / "bytes", tmp_path / "out", "-m", tiny_model)
    assert ran.code == 1 and "is not UTF-8 text (byte 12 is 0xff)" in ran.err
    ran = tidemark("decompress", tmp_path / "bytes", tmp_path / "out")
    assert ran.code == 1 and "is no file that `tidemark compress` wrote" in ran.err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def scored(tidemark: Tidemark, tiny_model: Path, home: Path, tmp_path: Path) -> Path:
    for month, word in (("2024-01", "first"), ("2024-02", "second")):
        folder = tmp_path / month
        folder.mkdir()
        for number in range(3):
            (folder / f"{number}.txt").write_text(f"{word} {number}: {TEXT}", encoding="utf-8")
        assert tidemark("import", "texts", folder, "--source", "news", "--month", month).code == 0
    tidemark("score", "--model", tiny_model, "--model", "control:zstd").expect(0)
    [path] = home.glob("losses/model=tiny/source=news/month=2024-02/default-*.parquet")
    return path


def test_landed_losses_are_code_lengths(tidemark: Tidemark, tiny_model, scored: Path) -> None:
    ran = tidemark("check", "losses", "-m", tiny_model, "-m", "control:zstd", "--sample", "9")
    assert ran.code == 0, ran.err
    assert ran.out.count(" ok ") == 9
    assert "news 2024-01" in ran.out and "news 2024-02" in ran.out
    assert "control:zstd: skipped, its loss is a code length already" in ran.out
    again = tidemark("check", "losses", "-m", tiny_model, "--sample", "9")
    assert again.out.splitlines()[:-1] == ran.out.splitlines()[: len(again.out.splitlines()) - 1]
    ran = tidemark("check", "losses", "-m", tiny_model, "-s", "news", "--month", "2024-01")
    assert ran.code == 0 and "2024-02" not in ran.out


def test_losses_that_are_no_code_lengths_are_told(
    tidemark: Tidemark, tiny_model, scored: Path
) -> None:
    losses = pq.read_table(scored)
    place = losses.schema.get_field_index("nll_nats")
    for factor in (0.7, 1.6):
        wrong = pc.multiply(losses["nll_nats"], pa.scalar(factor))
        pq.write_table(losses.set_column(place, losses.schema.field(place), wrong), scored)
        ran = tidemark("check", "losses", "-m", tiny_model, "--month", "2024-02", "--sample", "4")
        assert ran.code == 1
        assert ran.err.count("failed: tiny, chunk news 2024-02") == 4
        assert "one of the two passes is wrong" in ran.err


def test_a_partition_that_was_sealed_anew_is_told(
    tidemark: Tidemark, tiny_model, scored: Path, tmp_path
) -> None:
    (tmp_path / "2024-02" / "9.txt").write_text(TEXT + "one more", encoding="utf-8")
    tidemark(
        "import",
        "texts",
        tmp_path / "2024-02",
        "--source",
        "news",
        "--month",
        "2024-02",
        "--replace",
    ).expect(0)
    ran = tidemark("check", "losses", "-m", tiny_model, "--month", "2024-02")
    assert ran.code == 2 and "nothing is scored with tiny" in ran.err


def test_a_misspelt_source_is_no_success(tidemark: Tidemark, tmp_path: Path) -> None:
    """Compressors are skipped, so nothing else asked for the source."""
    import_notes(tidemark, tmp_path, "2024-01", "tide")
    ran = tidemark("check", "losses", "--model", "control:zstd", "--source", "ntoes")
    ran.expect(2, "did you mean notes?")
