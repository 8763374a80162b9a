import json
import resource
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from core.corpus.partition import list_sealed
from core.settings import Settings
from core.storage.store import Store
from simulator.server import Web
from tests.commands import TIDEMARK
from tests.forks import run_process
from tests.tiers import few, needs_extra
from warehouse.database.writer import connected

Tidemark = Callable[..., Any]
TEXT = "The tide leaves a mark on the sand, and the next tide washes it away. "


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    numbers = (f"{index:04d} {(index + 7919) ** 500}" for index in range(400))
    path.write_text("".join(json.dumps({"text": number}) + "\n" for number in numbers))
    return path


@pytest.fixture
def imported(tidemark: Tidemark, tmp_path: Path) -> Path:
    path = tmp_path / "notes.json"
    path.write_text(json.dumps([f"{number}. {TEXT * 3}" for number in range(3)]))
    assert tidemark("import", "texts", path, "--source", "notes", "--month", "2024-01").code == 0
    return path


UNKNOWN = "config.json is not one that transformers knows"
CODE = {"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"}


SPOILT: list[tuple[str, str | int | dict[str, Any] | None, str]] = [
    ("config.json", {"model_type": "evil", "auto_map": CODE}, "own code (evil.Model), which"),
    ("config.json", None, "has no config.json; expected a folder as save_pretrained writes it"),
    ("model.safetensors", 1000, "the weights cannot be loaded"),
    ("model.safetensors", "", "the weights cannot be loaded"),
    ("model.safetensors", None, "expected model.safetensors"),
    ("*.safetensors", None, "pickles may run code"),
    ("config.json", '{"model_type": ', UNKNOWN),
    ("config.json", '{"model_type": "never"}', UNKNOWN),
    ("*token*", None, "the tokenizer "),
    ("tokenizer.json", "{}", "the tokenizer is missing or broken"),
    ("*", None, "has no config.json"),
]


@pytest.mark.parametrize(("files", "content", "says"), few(SPOILT, 1))
def test_an_unreadable_model_fails_and_its_neighbour_is_scored(
    tidemark: Tidemark, imported: Path, tiny_model: Path, tmp_path: Path, files: str,
    content: str | int | dict[str, Any] | None, says: str,
) -> None:  # fmt: skip
    """Files are deleted (None), cut by some bytes, or have other content, or other keys."""
    folder, mark = shutil.copytree(tiny_model, tmp_path / "spoilt"), tmp_path / "the-code-ran"
    for path in list(folder.glob(files)):
        if content is None:
            path.unlink()
        elif isinstance(content, int):
            path.write_bytes(path.read_bytes()[:-content])
        elif isinstance(content, dict):
            path.write_text(json.dumps({**json.loads(path.read_text()), **content}))
            (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w').close()\n")
        else:
            path.write_text(content)
    if files == "*.safetensors":
        torch.save({}, folder / "pytorch_model.bin")
    ran = tidemark("score", "-m", folder, "-m", "control:zstd").expect(1, out="1 cell landed\n")
    [failure] = [line for line in ran.err.splitlines() if line.startswith("failed: ")]
    assert f"{folder}: " in failure
    assert says in failure
    assert not mark.exists()


def test_a_model_that_is_a_file_is_refused(
    tidemark: Tidemark, imported: Path, tiny_model: Path
) -> None:
    tidemark("score", "-m", tiny_model / "model.safetensors").expect(2, "is one file")


def test_a_protocol_that_a_model_cannot_take(
    tidemark: Tidemark, imported: Path, tiny_model: Path
) -> None:
    tidemark("score", "-m", tiny_model, "--context", "4096").expect(1, "4096")


class Disk:
    def __init__(self, folder: Path) -> None:
        self._ballast = folder / "ballast"
        self.home = folder / "home"
        self.home.mkdir()

    def full(self, *leave: int, begun: Path | None = None) -> Iterator[int]:
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


@pytest.fixture
def mend(tidemark: Tidemark, disk: Disk, home: Path) -> Callable[..., Iterator[str]]:

    def mend(
        command: Sequence[str | Path], leave: tuple[int, ...], state: Callable[[Path], Any],
        begun: Path | None = None,
    ) -> Iterator[str]:  # fmt: skip
        assert tidemark(*command).code == 0
        expected = state(home)
        for _ in disk.full(*leave, begun=begun):
            ran = tidemark(*command, at=disk.home).expect(1, "no space left")
            yield ran.err
            disk.free()
            assert tidemark(*command, at=disk.home).code == 0
            assert state(disk.home) == expected

    return mend


def digests(root: Path) -> list[tuple[str, str]]:
    return [(str(seal.partition), seal.digest) for seal in list_sealed(Store(str(root)))]


def test_import_on_a_full_disk(mend: Callable[..., Any], disk: Disk, texts: Path) -> None:
    command = ("import", "texts", texts, "--source", "notes", "--month", "2024-01")
    for error in mend(command, (0, 40_000), digests):
        assert error.startswith(f"error: no space left while writing {disk.home}/")
        assert "then run the same command again" in error
        assert [path for path in disk.home.rglob("*") if path.is_file()] == []


@pytest.mark.slow
@needs_extra("arxiv")
@needs_extra("github")
def test_crawl_on_a_full_disk(mend: Callable[..., Any], sites: Web, home: Path) -> None:
    sources = ("-s", "wikipedia_new", "-s", "arxiv", "-s", "github_projects")
    for error in mend(("crawl", "--month", "2024-01", *sources), (0, 160_000), digests):
        assert len(digests(home)) == 3
        failures = [line for line in error.splitlines() if line.startswith("failed: ")]
        assert failures
        assert all("no space left" in failure for failure in failures)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "leave"),
    [
        ("control:zstd", (0, 300_000)),
        pytest.param("tiny", (0, 30_000, 300_000, 1_000_000, 3_000_000), marks=pytest.mark.slow),
    ],
    ids=["control", "tiny"],
)
def test_score_on_a_full_disk(
    mend: Callable[..., Any], imported: Path, home: Path, tiny_model: Path, dump: Any,
    tmp_path: Path, model: str, leave: tuple[int, ...],
) -> None:  # fmt: skip
    command = ("score", "-m", tiny_model if model == "tiny" else model)
    begun = shutil.copytree(home, tmp_path / "begun")
    for error in mend(command, leave, dump, begun):
        assert "then run the same command again" in error


@pytest.mark.parametrize(
    ("leave", "num_rows"),
    [
        ((1_000_000,), 20_000),
        pytest.param((0, 30_000, 300_000, 3_000_000, 6_000_000), 60_000, marks=pytest.mark.slow),
    ],
    ids=["one", "more"],
)
def test_land_on_a_full_disk(
    mend: Callable[..., Any], losses_file: Callable[..., Path], dump: Any, tmp_path: Path,
    leave: tuple[int, ...], num_rows: int,
) -> None:  # fmt: skip
    begun = tmp_path / "begun"
    with connected(Settings(home=str(begun))):
        pass  # a copy of an empty database, which takes ten seconds to make on the small disk
    command = ("land", "losses", losses_file("small"), losses_file("large", num_rows))
    assert len(list(mend(command, leave, dump, begun))) == len(leave)


@pytest.mark.slow
def test_publish_on_a_full_disk_leaves_the_former_snapshot(
    tidemark: Tidemark, disk: Disk, losses_file: Callable[..., Path], tmp_path: Path
) -> None:
    def models() -> list[str]:
        ran = tidemark("sql", "select distinct model from internal.landed_cells order by 1",
                       "--format", "json", at=disk.home)  # fmt: skip
        return [row["model"] for row in json.loads(ran.out)]

    elsewhere = tmp_path / "scratch"  # where there is room for the writer's file
    assert (
        tidemark("land", "losses", losses_file("old"), at=disk.home, work_dir=elsewhere).code == 0
    )
    disk.fill(100_000)
    ran = tidemark("land", "losses", losses_file("new"), at=disk.home, work_dir=elsewhere)
    assert ran.code == 1
    assert f"no space left while writing {disk.home}/warehouse.duckdb" in ran.err
    assert models() == ["old"]
    assert sorted(each.name for each in disk.home.iterdir()) == ["warehouse.duckdb", "writer.json"]
    disk.free()
    assert (
        tidemark("land", "losses", losses_file("new"), at=disk.home, work_dir=elsewhere).code == 0
    )
    assert models() == ["new", "old"]


def test_a_query_into_a_file_on_a_full_disk(
    tidemark: Tidemark, disk: Disk, small_disk: Path, losses_file: Callable[..., Path]
) -> None:
    assert tidemark("land", "losses", losses_file("foreign")).code == 0
    disk.fill(0)
    sql = ("sql", "select * from range(100000)", "--format", "csv")
    ran = tidemark(*sql, "--output", small_disk / "out.csv")
    assert ran.code == 1
    assert f"no space left while writing {small_disk}/out.csv" in ran.err


@pytest.mark.slow
def test_a_document_of_50_mb_is_scored_where_it_is_allowed(
    tidemark: Tidemark, tmp_path: Path, environment: dict[str, str]
) -> None:
    paragraph, file = TEXT * 100, tmp_path / "long.jsonl"
    document = "".join(f"{number} {paragraph}" for number in range(50_000_000 // len(paragraph)))
    file.write_text(json.dumps({"text": document}) + "\n" + json.dumps({"text": TEXT * 3}) + "\n")
    allowed = {"max_document_bytes": "100000000"}
    ran = tidemark("import", "texts", file, "--source", "notes", "--undated", **allowed)
    assert ran.out.splitlines() == ["notes undated: 2 documents"]
    limit = 3 * 2**30  # of address space: libraries, the text in a few forms, one block of pieces

    command = [TIDEMARK, "score", "-m", "control:gzip"]
    within = partial(resource.setrlimit, resource.RLIMIT_AS, (limit, limit))
    done = run_process(*command, env=environment, preexec_fn=within)
    assert (done.returncode, done.stdout) == (0, "1 cell landed\n"), done.stderr
    sums = tidemark(
        "sql", "select sum(num_bytes) as n, count(*) > 5000 as many from chunk_losses",
        "--format", "json",
    )  # fmt: skip
    [row] = json.loads(sums.out)
    assert row["n"] == len(document) + len(TEXT * 3)
    assert row["many"]


def test_a_snapshot_that_is_no_database(tidemark: Tidemark, home: Path) -> None:
    home.mkdir()
    (home / "warehouse.duckdb").write_bytes(b"not a database" * 1000)
    tidemark("sql", "select 1").expect(1, "is no database of DuckDB")


def test_a_data_root_that_is_a_file(tidemark: Tidemark, imported: Path) -> None:
    for command in (
        ("import", "texts", imported, "--source", "notes", "--undated"),
        ("score", "-m", "control:zstd"),
        ("land", "losses", imported),
    ):
        ran = tidemark(*command, at=imported)
        assert ran.code in {1, 2}
        assert ran.err.strip().startswith("error: ")
        assert str(imported) in ran.err
