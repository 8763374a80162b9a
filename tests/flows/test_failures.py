"""What goes wrong on real machines: a clear message, and the same command mends it."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from core.corpus import Partition, list_sealed, read_seal
from core.month import Month
from core.storage import Store
from simulator.server import Web

Tidemark = Callable[..., Any]
TEXT = "The tide leaves a mark on the sand, and the next tide washes it away. "


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A file of texts to import: a megabyte that does not pack well."""
    path = tmp_path / "texts.jsonl"
    numbers = (f"{index:04d} {(index + 7919) ** 500}" for index in range(400))
    path.write_text("".join(json.dumps({"text": number}) + "\n" for number in numbers))
    return path


@pytest.fixture
def imported(tidemark: Tidemark, tmp_path: Path) -> Path:
    """A file of three short texts that is imported as `notes 2024-01`."""
    path = tmp_path / "notes.json"
    path.write_text(json.dumps([f"{number}. {TEXT * 3}" for number in range(3)]))
    assert tidemark("import-texts", path, "--source", "notes", "--month", "2024-01").code == 0
    return path


# Models that cannot be read.


def _without_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def _with_broken_config(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": ')


def _of_unknown_kind(folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "never-heard-of"}')


def _that_brings_code(folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    code = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}
    (folder / "config.json").write_text(
        json.dumps({**config, "model_type": "evil", "auto_map": code})
    )
    mark = folder.parent / "the-code-ran"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\n")


def _with_truncated_weights(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])


def _with_empty_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"")


def _without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def _with_a_pickle_only(folder: Path) -> None:
    _without_weights(folder)
    torch.save({}, folder / "pytorch_model.bin")


def _without_tokenizer(folder: Path) -> None:
    for path in folder.glob("*token*"):
        path.unlink()


def _with_a_broken_tokenizer(folder: Path) -> None:
    (folder / "tokenizer.json").write_text("{}")


def _emptied(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (_without_config, "has no config.json; expected a folder as save_pretrained writes it"),
        (_with_broken_config, "config.json is not one that transformers knows"),
        (_of_unknown_kind, "config.json is not one that transformers knows"),
        (_that_brings_code, "models that bring their own code are not run"),
        (_with_truncated_weights, "the weights cannot be loaded"),
        (_with_empty_weights, "the weights cannot be loaded"),
        (_without_weights, "expected model.safetensors"),
        (_with_a_pickle_only, "pickles may run code"),
        (_without_tokenizer, "the tokenizer "),
        (_with_a_broken_tokenizer, "the tokenizer is missing or broken"),
        (_emptied, "has no config.json"),
    ],
)
def test_an_unreadable_model_fails_and_its_neighbour_is_scored(
    tidemark: Tidemark,
    imported: Path,
    tiny_model: Path,
    tmp_path: Path,
    spoil: Callable[[Path], None],
    says: str,
) -> None:
    folder = tmp_path / "spoilt"
    shutil.copytree(tiny_model, folder)
    spoil(folder)
    ran = tidemark("score", "-m", folder, "-m", "control:zstd")
    assert ran.code == 1
    assert ran.out == "1 cells landed\n"
    [failure] = [line for line in ran.err.splitlines() if line.startswith("failed: ")]
    assert f"{folder}: " in failure
    assert says in failure
    assert not (tmp_path / "the-code-ran").exists()


def test_a_model_that_is_a_file_is_unknown(
    tidemark: Tidemark, imported: Path, tiny_model: Path
) -> None:
    ran = tidemark("score", "-m", tiny_model / "model.safetensors")
    assert ran.code == 2
    assert "a folder must exist" in ran.err


def test_a_protocol_that_a_model_cannot_take(
    tidemark: Tidemark, imported: Path, tiny_model: Path
) -> None:
    ran = tidemark("score", "-m", tiny_model, "--context", "4096")
    assert ran.code == 1
    assert "4096" in ran.err


# A full disk.


class Disk:
    """A small disk that can be filled and freed."""

    def __init__(self, folder: Path) -> None:
        self._ballast = folder / "ballast"
        self.home = folder / "home"
        self.home.mkdir()

    def full(self, *leave: int, begun: Path | None = None) -> Iterator[int]:
        """Fill the disk but for some bytes; each time with a new home, empty or a copy of one."""
        for each in leave:
            shutil.rmtree(self.home)
            shutil.copytree(begun, self.home) if begun else self.home.mkdir()
            self.fill(each)
            yield each

    def fill(self, leave: int) -> None:
        free = shutil.disk_usage(self._ballast.parent).free
        self._ballast.write_bytes(bytes(max(0, free - leave)))

    def free(self) -> None:
        self._ballast.unlink()


@pytest.fixture
def disk(small_disk: Path) -> Disk:
    return Disk(small_disk)


def test_import_on_a_full_disk(tidemark: Tidemark, disk: Disk, texts: Path, home: Path) -> None:
    command = ("import-texts", texts, "--source", "notes", "--month", "2024-01")
    assert tidemark(*command).code == 0
    notes = Partition("notes", Month("2024-01"))
    expected = read_seal(Store(str(home)), notes)
    for _ in disk.full(0, 40_000):
        ran = tidemark(*command, at=disk.home)
        assert ran.code == 1
        where = f"error: no space left while writing {disk.home}/corpus/source=notes"
        assert ran.err.startswith(where)
        assert "then run the same command again" in ran.err
        assert [path for path in disk.home.rglob("*") if path.is_file()] == []
        disk.free()
        assert tidemark(*command, at=disk.home).code == 0
        sealed = read_seal(Store(str(disk.home)), notes)
        assert sealed and expected
        assert (sealed.digest, sealed.num_documents) == (expected.digest, 400)


def test_crawl_on_a_full_disk(tidemark: Tidemark, disk: Disk, sites: Web, home: Path) -> None:
    def digests(root: Path) -> list[tuple[str, str]]:
        return [(str(seal.partition), seal.digest) for seal in list_sealed(Store(str(root)))]

    command = ["crawl", "--month", "2024-01"]
    for source in ("wikipedia_new", "arxiv", "github_projects"):
        command += ["-s", source]
    assert tidemark(*command).code == 0
    assert len(digests(home)) == 3
    for _ in disk.full(0, 60_000, 160_000, 350_000):
        ran = tidemark(*command, at=disk.home)
        assert ran.code == 1
        failures = [line for line in ran.err.splitlines() if line.startswith("failed: ")]
        assert failures
        assert all("no space left" in failure for failure in failures)
        disk.free()
        assert tidemark(*command, at=disk.home).code == 0
        assert digests(disk.home) == digests(home)


@pytest.mark.parametrize("model", ["control:zstd", "tiny"])
def test_score_on_a_full_disk(
    tidemark: Tidemark, disk: Disk, imported: Path, home: Path, tiny_model: Path, dump: Any,
    tmp_path: Path, model: str,
) -> None:  # fmt: skip
    command = ("score", "-m", tiny_model if model == "tiny" else model)
    begun = shutil.copytree(home, tmp_path / "begun")
    assert tidemark(*command).code == 0
    expected = dump()
    for _ in disk.full(0, 30_000, 300_000, 1_000_000, 3_000_000, begun=begun):
        ran = tidemark(*command, at=disk.home)
        assert ran.code == 1
        assert "no space left" in ran.err
        assert "then run the same command again" in ran.err
        disk.free()
        assert tidemark(*command, at=disk.home).code == 0
        assert dump(disk.home) == expected


def test_land_on_a_full_disk(
    tidemark: Tidemark, disk: Disk, losses_file: Callable[..., Path], dump: Any
) -> None:
    command = ("land", losses_file("small"), losses_file("large", 60_000))
    assert tidemark(*command).code == 0
    expected = dump()
    for _ in disk.full(0, 30_000, 300_000, 1_000_000, 3_000_000, 6_000_000):
        ran = tidemark(*command, at=disk.home)
        assert ran.code == 1
        assert "no space left" in ran.err
        disk.free()
        assert tidemark(*command, at=disk.home).code == 0
        assert dump(disk.home) == expected


def test_publish_on_a_full_disk_leaves_the_former_snapshot(
    tidemark: Tidemark, disk: Disk, losses_file: Callable[..., Path], tmp_path: Path
) -> None:
    def models() -> list[str]:
        ran = tidemark("sql", "select distinct model from landed_cells order by 1",
                       "--format", "json", at=disk.home)  # fmt: skip
        return [row["model"] for row in json.loads(ran.out)]

    elsewhere = tmp_path / "scratch"  # where there is room for the writer's file
    assert tidemark("land", losses_file("old"), at=disk.home, work_dir=elsewhere).code == 0
    disk.fill(100_000)
    ran = tidemark("land", losses_file("new"), at=disk.home, work_dir=elsewhere)
    assert ran.code == 1
    assert f"no space left while writing {disk.home}/warehouse.duckdb" in ran.err
    assert models() == ["old"]
    assert sorted(each.name for each in disk.home.iterdir()) == ["warehouse.duckdb", "writer.json"]
    disk.free()
    assert tidemark("land", losses_file("new"), at=disk.home, work_dir=elsewhere).code == 0
    assert models() == ["new", "old"]


def test_a_query_into_a_file_on_a_full_disk(
    tidemark: Tidemark, disk: Disk, small_disk: Path, losses_file: Callable[..., Path]
) -> None:
    assert tidemark("land", losses_file("foreign")).code == 0
    disk.fill(0)
    sql = ("sql", "select * from range(100000)", "--format", "csv")
    ran = tidemark(*sql, "--output", small_disk / "out.csv")
    assert ran.code == 1
    assert f"no space left while writing {small_disk}/out.csv" in ran.err


# Text that is none, too long, or not there.


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("x.json", '["a naïve text"]'.encode("latin-1"), "x.json: byte 6 (0xef) is not UTF-8"),
        ("x.jsonl", b'{"text": "fine"}\n{"text": "\xff"}\n', "line 2: byte 27 (0xff) is not UTF-8"),
        ("x.json", '["a text"]'.encode("utf-16"), "is not UTF-8"),
        ("x.json", b'["fine", "not closed', "record 1"),
        ("x.json", b'["fine", 7]', "record 1 is a number; expected a list of strings"),
        ("x.json", b'["fine", "\\ud800"]', "record 1: character 0 is a lone surrogate"),
        ("x.jsonl", b'{"title": "no text"}\n', "line 1 has no `text` field"),
        ("x.parquet", b"PAR1 and no more", "not Parquet or damaged"),
    ],
)
def test_what_is_no_text_is_refused_with_its_place(
    tidemark: Tidemark, home: Path, tmp_path: Path, name: str, content: bytes, says: str
) -> None:
    (tmp_path / name).write_bytes(content)
    ran = tidemark("import-texts", tmp_path / name, "--source", "notes", "--undated")
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.startswith(f"error: {tmp_path / name}")
    assert says in ran.err
    assert [path for path in home.rglob("*") if path.is_file()] == []


def long_line(path: Path) -> Path:
    """A file with a document of 50 MB on a single line, and a short one."""
    paragraph = TEXT * 100
    document = "".join(f"{number} {paragraph}" for number in range(50_000_000 // len(paragraph)))
    path.write_text(json.dumps({"text": document}) + "\n" + json.dumps({"text": TEXT * 3}) + "\n")
    return path


def test_a_document_of_50_mb_is_dropped_and_counted(tidemark: Tidemark, tmp_path: Path) -> None:
    file = long_line(tmp_path / "long.jsonl")
    ran = tidemark("import-texts", file, "--source", "notes", "--undated")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines() == ["notes undated: 1 documents", "dropped: 1 too_long"]


@pytest.mark.slow
def test_a_document_of_50_mb_is_scored_where_it_is_allowed(
    tidemark: Tidemark, tmp_path: Path, environment: dict[str, str]
) -> None:
    file = long_line(tmp_path / "long.jsonl")
    allowed = {"max_document_bytes": "100000000"}
    ran = tidemark("import-texts", file, "--source", "notes", "--undated", **allowed)
    assert ran.out.splitlines() == ["notes undated: 2 documents"]
    limit = 3 * 2**30  # of address space: libraries, the text in a few forms, one block of pieces

    done = subprocess.run(
        [Path(sys.executable).parent / "tidemark", "score", "-m", "control:gzip"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )
    assert (done.returncode, done.stdout) == (0, "1 cells landed\n"), done.stderr
    sums = tidemark(
        "sql", "select sum(num_bytes) as n, count(*) > 5000 as many from chunk_losses",
        "--format", "json",
    )  # fmt: skip
    [row] = json.loads(sums.out)
    lines = file.read_text(encoding="utf-8").splitlines()
    assert row["n"] == sum(len(json.loads(line)["text"]) for line in lines)
    assert row["many"]


def test_nothing_to_keep_of_an_import(tidemark: Tidemark, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "texts.json"
    for content, counts in (
        (["", "  ", "short"], "3 requested, 0 kept, dropped: {'empty': 2, 'too_short': 1}"),
        ([], "0 requested, 0 kept, dropped: none"),
    ):
        file.write_text(json.dumps(content))
        ran = tidemark("import-texts", file, "--source", "notes", "--month", "2024-01")
        assert ran.code == 1
        assert ran.err == (f"error: notes 2024-01: nothing to keep ({counts}); nothing is sealed\n")
    assert list_sealed(Store(str(home))) == []


def test_nothing_to_keep_of_a_crawl(tidemark: Tidemark, home: Path, sites: Web) -> None:
    ran = tidemark("crawl", "-s", "wikipedia_new", "--month", "2024-06")
    assert (ran.code, ran.out) == (1, "")
    assert "failed: wikipedia_new 2024-06: " in ran.err
    assert "nothing to keep (0 requested, 0 kept, dropped: none); nothing is sealed" in ran.err
    assert list_sealed(Store(str(home))) == []
    ran = tidemark("score", "-m", "control:zstd", "-s", "wikipedia_new")
    assert ran.code == 2
    assert "nothing is sealed of wikipedia_new" in ran.err
    assert "crawl or import it first" in ran.err


# What somebody else has damaged.


def test_a_damaged_part_is_named_and_can_be_imported_again(
    tidemark: Tidemark, imported: Path, home: Path
) -> None:
    [part] = (home / "corpus").rglob("part-*.parquet")
    part.write_bytes(part.read_bytes()[:-200])
    ran = tidemark("score", "-m", "control:zstd")
    assert ran.code == 1
    assert f"{part} is damaged" in ran.err
    assert "--replace" in ran.err
    again = ("import-texts", imported, "--source", "notes", "--month", "2024-01", "--replace")
    assert tidemark(*again).code == 0
    assert tidemark("score", "-m", "control:zstd").code == 0


def test_a_damaged_manifest_is_named(tidemark: Tidemark, imported: Path, home: Path) -> None:
    [manifest] = (home / "corpus").rglob("manifest.json")
    manifest.write_text("{")
    ran = tidemark("score", "-m", "control:zstd")
    assert ran.code == 1
    assert f"{manifest} is not a manifest of tidemark" in ran.err


def test_damaged_losses_are_named_and_can_be_scored_again(
    tidemark: Tidemark, imported: Path, home: Path
) -> None:
    assert tidemark("score", "-m", "control:zstd").code == 0
    [losses] = (home / "losses").rglob("*.parquet")
    shutil.rmtree(home / "work")  # so that they must be landed anew
    (home / "warehouse.duckdb").unlink()
    losses.write_bytes(losses.read_bytes()[:-200])
    ran = tidemark("score", "-m", "control:zstd")
    assert ran.code == 1
    assert f"{losses} is damaged" in ran.err
    losses.unlink()
    ran = tidemark("score", "-m", "control:zstd")
    assert (ran.code, ran.out) == (0, "1 cells landed\n")


def test_a_snapshot_that_is_no_database(tidemark: Tidemark, home: Path) -> None:
    home.mkdir()
    (home / "warehouse.duckdb").write_bytes(b"not a database" * 1000)
    ran = tidemark("sql", "select 1")
    assert ran.code == 1
    assert "publish it again" in ran.err


def test_a_data_root_that_is_a_file(tidemark: Tidemark, imported: Path) -> None:
    for command in (
        ("import-texts", imported, "--source", "notes", "--undated"),
        ("score", "-m", "control:zstd"),
        ("land", imported),
    ):
        ran = tidemark(*command, at=imported)
        assert ran.code in {1, 2}
        assert ran.err.strip().startswith("error: ")
        assert str(imported) in ran.err
