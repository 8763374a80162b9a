"""Damaged databases: each advice is followed as it is printed, and no row is lost."""

import datetime as dt
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cli.doctor import Finding, examine
from core.corpus.partition import Partition, tables_of
from core.corpus.sealing import seal_partition
from core.month import Month
from core.plugins import list_extras
from core.schemas.tables import LOSSES
from core.settings import Settings
from core.storage.store import Store
from core.version import own_version
from instruments.losses import score_and_land
from tests.databases import losses_of, snapshot_of, text_of, writer_of
from tests.losses import loss_row
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish

pytestmark = pytest.mark.long
Tidemark = Callable[..., Any]
BLOCK = 262_144  # bytes of a block of DuckDB's files, which begin after three headers
HEADERS = 3 * 4096
ADVISED = re.compile(r"`(tidemark (?:publish|rebuild|rebuild --partial))`")


def overwrite(path: Path, at: int, num: int = 40) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(b"\xff\x13" * (num // 2))


def overwrite_losses(path: Path) -> None:
    """Damage the block that holds the losses: the file opens, but these rows cannot be read."""
    with duckdb.connect(str(path), read_only=True) as database:
        [(block,)] = database.execute(
            "select distinct block_id from pragma_storage_info('chunk_losses') "
            "where column_name = 'nll_nats' and segment_type = 'DOUBLE' and block_id >= 0 limit 1"
        ).fetchall()
    overwrite(path, HEADERS + block * BLOCK + 5000)


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "first header": lambda path: overwrite(path, 0),
    "both database headers": lambda path: overwrite(path, 4096, 8192),
    "catalogue or rows": lambda path: overwrite(path, HEADERS + BLOCK + 5000),
    "losses": overwrite_losses,
    "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: path.write_bytes(b""),
    "SQLite": lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(9000)),
    "text": lambda path: path.write_text("no database"),
    "a folder": become_a_folder,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home with two cells of tidemark and a cell of other people, published."""
    home = tmp_path_factory.mktemp("made") / "home"
    settings = Settings(home=str(home))
    partition = Partition("news", Month("2024-01"))
    rows = (
        {"native_id": str(n), "date_kind": "created", "licence": "CC0-1.0", "text": f"Text {n}. "}
        for n in range(3)
    )
    seal_partition(Store(str(home)), partition, tables_of(rows, partition))
    score_and_land(settings, ["control:gzip"], None, None, ["default"])
    theirs = [loss_row("org/model", "news", dt.date(2024, 1, 1), f"d{n}") for n in range(4)]
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(pa.Table.from_pylist(theirs, LOSSES), "rows")
    publish(settings)
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    home = tmp_path / "home"
    shutil.copytree(made, home)
    named = home / "writer.json"
    named.write_text(json.dumps({**json.loads(named.read_text()), "root": str(home)}))
    return home


def contents_of(home: Path) -> dict[str, bytes]:
    """Return the bytes of all files but Prefect's own, by path."""
    files = [path for path in home.rglob("*") if path.is_file()]
    found = {str(path.relative_to(home)): path.read_bytes() for path in files}
    return {name: data for name, data in found.items() if not name.startswith("work/prefect")}


def warehouse_of(home: Path) -> Finding:
    """Return what `tidemark doctor` says of the databases; its table folds long words."""
    [found] = [each for each in examine(Settings(home=str(home))) if each.what == "warehouse"]
    return found


KINDS = [
    pytest.param(kind, marks=[] if kind in ("losses", "empty") else [pytest.mark.slow])
    for kind in DAMAGE
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("which", [writer_of, snapshot_of])
def test_a_damaged_database_is_called_well_by_nobody(
    home: Path, tidemark: Tidemark, kind: str, which: Callable[[Path], Path]
) -> None:
    DAMAGE[kind](which(home))
    advice = "tidemark rebuild" if which is writer_of else "tidemark publish"
    status = tidemark("status")
    assert f"PROBLEM: {which(home)} " in text_of(status)
    assert "Delete nothing: " in text_of(status)
    assert f"run `{advice}`" in text_of(status)
    check = tidemark("check")
    assert check.code == 1
    assert "Delete nothing: " in text_of(check)
    assert f"run `{advice}`" in text_of(check)
    found = warehouse_of(home)
    assert not found.is_well
    assert str(which(home)) in found.detail
    assert f"run `{advice}`" in found.mend


@pytest.mark.parametrize("kind", ["losses", pytest.param("first header", marks=pytest.mark.slow)])
def test_the_advice_for_a_damaged_snapshot_makes_it_again(
    home: Path, tidemark: Tidemark, kind: str
) -> None:
    before = losses_of(snapshot_of(home))
    DAMAGE[kind](snapshot_of(home))
    asked = tidemark("sql", "select sum(nll_nats) from chunk_losses")
    assert asked.code == 1
    assert str(snapshot_of(home)) in asked.err
    [advised] = ADVISED.findall(text_of(asked))
    assert tidemark(*advised.split()[1:]).code == 0
    assert losses_of(snapshot_of(home)) == before
    assert losses_of(writer_of(home)) == before
    assert tidemark("check").code == 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["losses", pytest.param("empty", marks=pytest.mark.slow)])
def test_the_advice_for_a_damaged_writer_makes_it_again(
    home: Path, tidemark: Tidemark, kind: str
) -> None:
    before = losses_of(snapshot_of(home))
    published = snapshot_of(home).read_bytes()
    DAMAGE[kind](writer_of(home))
    damaged = writer_of(home).read_bytes()
    refused = tidemark("publish")
    assert refused.code == 1
    assert str(writer_of(home)) in refused.err
    assert snapshot_of(home).read_bytes() == published, "a damaged copy replaced the good one"
    [advised] = ADVISED.findall(text_of(refused))
    rebuilt = tidemark(*advised.split()[1:])
    assert rebuilt.code == 0, rebuilt.err
    assert losses_of(snapshot_of(home)) == before
    assert losses_of(writer_of(home)) == before
    kept = writer_of(home).with_name("writer.duckdb.kept-1")
    assert kept.read_bytes() == damaged
    assert str(kept) in text_of(rebuilt)
    assert tidemark("check").code == 0


@pytest.mark.slow
def test_the_advice_for_two_damaged_databases_takes_a_backup_or_the_cells(
    home: Path, tidemark: Tidemark
) -> None:
    before = losses_of(snapshot_of(home))
    backup = home.with_name("backup.duckdb")
    shutil.copyfile(snapshot_of(home), backup)
    DAMAGE["losses"](snapshot_of(home))
    damaged = snapshot_of(home).read_bytes()
    DAMAGE["cut off"](writer_of(home))
    checked = text_of(tidemark("check"))
    assert "bring" in checked
    assert "back from a backup" in checked
    assert set(ADVISED.findall(checked)) == {"tidemark rebuild", "tidemark rebuild --partial"}
    refused = tidemark("rebuild")
    assert refused.code == 1
    assert "rows of other people's files cannot be copied" in text_of(refused)
    assert snapshot_of(home).read_bytes() == damaged
    own = [row for row in before if "org/model" not in row]
    without = home.with_name("without")
    shutil.copytree(home, without)
    named = without / "writer.json"
    named.write_text(json.dumps({**json.loads(named.read_text()), "root": str(without)}))
    tidemark("rebuild", "--partial", at=without)
    assert losses_of(snapshot_of(without)) == own
    assert (without / "work" / "warehouse.duckdb.kept-1").read_bytes() == damaged
    shutil.copyfile(backup, snapshot_of(home))
    assert tidemark("rebuild").code == 0
    assert losses_of(snapshot_of(home)) == losses_of(writer_of(home)) == before


@pytest.mark.slow
def test_a_damaged_journal_costs_only_what_it_holds(home: Path, tidemark: Tidemark) -> None:
    before = losses_of(writer_of(home))
    journal = Path(f"{writer_of(home)}.wal")
    journal.mkdir()
    refused = tidemark("publish")
    assert refused.code == 1
    assert str(writer_of(home)) in refused.err
    assert tidemark("rebuild").code == 0
    assert losses_of(snapshot_of(home)) == losses_of(writer_of(home)) == before
    assert not journal.exists()


def test_a_take_over_keeps_its_own_database_until_the_snapshot_is_proved(
    home: Path, tidemark: Tidemark
) -> None:
    named = home / "writer.json"
    elsewhere = {**json.loads(named.read_text()), "writer": "another", "machine": "far"}
    named.write_text(json.dumps(elsewhere))
    DAMAGE["losses"](snapshot_of(home))
    own = writer_of(home).read_bytes()
    refused = tidemark("take-over")
    assert refused.code == 1
    assert "run `tidemark publish` on machine far" in text_of(refused)
    assert writer_of(home).read_bytes() == own
    assert json.loads(named.read_text()) == elsewhere


def test_a_damaged_record_of_the_writer_is_written_again_and_the_database_stays(
    home: Path, tidemark: Tidemark
) -> None:
    (home / "writer.json").write_bytes(b"")
    before = losses_of(writer_of(home))
    snapshot_of(home).unlink()  # only the database to write has the rows
    assert "run `tidemark take-over`" in text_of(tidemark("publish"))
    assert tidemark("take-over").code == 0
    assert losses_of(writer_of(home)) == before
    assert json.loads((home / "writer.json").read_text())["root"] == str(home)


@pytest.mark.parametrize("which", [writer_of, snapshot_of])
def test_a_database_of_a_later_version_is_named(
    home: Path, tidemark: Tidemark, which: Callable[[Path], Path]
) -> None:
    with duckdb.connect(str(which(home))) as database:
        database.execute("update internal.schema_version set version = 99, tidemark = '9.8.7'")
    before = which(home).read_bytes()
    commands = (
        [["publish"], ["rebuild"]] if which is writer_of else [["sql", "select 1"], ["report"]]
    )
    for command in commands:
        ran = tidemark(*command)
        assert ran.code == 1
        assert f"was made by tidemark 9.8.7, newer than this one ({own_version()}" in text_of(ran)
        assert "docs/going-back.md" in text_of(ran)
    for name in ("check", "status"):
        text = text_of(tidemark(name))
        assert "9.8.7" in text
        assert "half-written" not in text
    assert "9.8.7" in warehouse_of(home).detail
    assert which(home).read_bytes() == before


@pytest.mark.parametrize("which", [writer_of, snapshot_of])
def test_nothing_is_written_beside_a_database_of_a_later_version(
    home: Path, tidemark: Tidemark, which: Callable[[Path], Path]
) -> None:
    [texts] = home.glob("corpus/**/*.parquet")
    document_id = pq.read_table(texts, columns=["document_id"])["document_id"][0].as_py()
    for losses in home.glob("losses/**/*.parquet"):
        losses.unlink()  # a pending cell
    with duckdb.connect(str(which(home))) as database:
        database.execute("update internal.schema_version set version = 99, tidemark = '9.8.7'")
    before = contents_of(home)
    for arguments in (
        ["score", "-m", "control:gzip"],
        ["run", "--month", "2024-01", "-s", "hackernews", "-m", "control:gzip"],
        ["rebuild", "--partial"],
        *([["corpus", "forget", document_id]] if "takedown" in list_extras() else []),
        ["check", "numerics"],
        ["publish"],
    ):
        ran = tidemark(*arguments)
        assert ran.code == 1
        assert text_of(ran).count("was made by tidemark 9.8.7, newer than this one") == 1
        assert contents_of(home) == before


def test_the_version_that_made_a_database_is_stored(made: Path) -> None:
    for path in (writer_of(made), snapshot_of(made)):
        with duckdb.connect(str(path), read_only=True) as database:
            [(maker,)] = database.execute("select tidemark from internal.schema_version").fetchall()
        assert maker.startswith(own_version())
