import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from core.cells.losses import Cell
from core.corpus.partition import Seal, read_seal, tables_of
from core.corpus.sealing import seal_partition
from core.month import Month
from core.settings import Settings
from core.storage.store import Store, sha256_of_file
from tests.warehouse.cells import JANUARY, RECORD
from warehouse.database.objects import digest_catalogue
from warehouse.database.schema import SNAPSHOT, read_sql
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse
from warehouse.read.check import DEEP, QUICK, check_database, check_home, check_root
from warehouse.read.findings import SHOWN_ROWS, Finding, describe, list_checks, run_checks
from warehouse.read.publish import publish
from warehouse.read.query import opened

pytestmark = pytest.mark.long

COVERING = {"layout": "disjoint", "max_chars": None, "joined_by": None}
OWN, FOREIGN = "model = 'control:x'", "model = 'org/model'"


def seal_texts(store: Store, *texts: str) -> Seal:
    rows = [
        {"native_id": str(number), "date_kind": "given", "licence": "CC0-1.0", "text": text}
        for number, text in enumerate(texts)
    ]
    return seal_partition(store, JANUARY, tables_of(rows, JANUARY), replace=True)


def own_cell(seal: Seal, model: str = "control:x") -> Cell:
    return Cell(model, "r1", JANUARY, seal.digest, "default", "abcd1234")


def write_own(store: Store, cell: Cell, losses: pa.Table) -> None:
    store.write_bytes(cell.record_path, RECORD.to_json())
    with store.writing(cell.path) as staged:
        pq.write_table(losses, staged.path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, losses: Any) -> Path:
    home = tmp_path_factory.mktemp("made") / "home"
    settings, store = Settings(home=str(home)), Store(str(home))
    seal = seal_texts(store, "a" * 30, "é" * 20, "c" * 10)
    ids = pq.read_table(store.open(seal.parts[0]))["document_id"].to_pylist()
    rows = [
        {"document_id": ids[0], "chunk_index": 0, "num_chars": 20, "num_bytes": 20},
        {"document_id": ids[0], "chunk_index": 1, "num_chars": 10, "num_bytes": 10},
        {"document_id": ids[1], "num_chars": 20, "num_bytes": 40},
        {"document_id": ids[2], "num_chars": 10, "num_bytes": 10, "nll_nats": math.nan,
         "reason": "no_tokens"},
    ]  # fmt: skip
    table = losses(*({**row, "model": "control:x"} for row in rows))
    write_own(store, own_cell(seal), table)
    with open_warehouse(settings) as warehouse:
        warehouse.upsert_models([{"name": "control:x", "cutoff": Month("2023-01")}])
        warehouse.upsert_protocols([{"name": "default", "definition": json.dumps(COVERING)}])
        warehouse.land_documents(seal)
        warehouse.land_cells([own_cell(seal)])
        warehouse.land_losses(losses(*({"document_id": f"d{i}"} for i in range(8))), "rows")
    publish(settings)
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "home"))


@pytest.fixture
def files(made: Path, tmp_path: Path) -> Path:
    """A copy of the data root without its databases."""
    without = shutil.ignore_patterns(SNAPSHOT, "work")
    return Path(shutil.copytree(made, tmp_path / "files", ignore=without))


@pytest.fixture(scope="module")
def landed(made: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The sound snapshot, open for all tests."""
    with opened(made / SNAPSHOT) as connection:
        yield connection


@pytest.fixture(scope="module")
def breakable(
    made: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A copy of the snapshot to change in transactions that are rolled back."""
    copy = shutil.copy(made / SNAPSHOT, tmp_path_factory.mktemp("breakable") / SNAPSHOT)
    with duckdb.connect(str(copy)) as connection:
        yield connection


def check_files(landed: duckdb.DuckDBPyConnection, files: Path) -> list[Finding]:
    """Compare the sound snapshot with a data root, as a deep check does."""
    return list(check_root(landed, Store(str(files))))


def check(home: Path, is_deep: bool = True) -> list[Finding]:
    return list(check_home(home / SNAPSHOT, Store(str(home)), is_deep))


def damage(home: Path, *statements: str) -> None:
    with duckdb.connect(str(home / SNAPSHOT)) as connection:
        for statement in statements:
            connection.execute(statement)


# Statements that each break exactly one invariant of the database.
DAMAGE = yaml.safe_load(Path(__file__).with_name("damage.yml").read_text(encoding="utf-8"))
CASES = [  # `make test` takes the first case of each check
    pytest.param(name, statements, marks=[pytest.mark.slow] if number else [])
    for name, cases in DAMAGE.items()
    for number, statements in enumerate(cases)
]


def test_a_sound_home_is_sound(made: Path, empty: Settings) -> None:
    def digests() -> dict[Path, str]:
        return {path: sha256_of_file(path) for path in made.rglob("*") if path.is_file()}

    before = digests()
    assert check(made) == []
    assert digests() == before
    assert check(Path(empty.home)) == []


@pytest.mark.parametrize(("name", "statements"), CASES)
def test_a_broken_invariant_is_found_by_its_check_alone(
    breakable: duckdb.DuckDBPyConnection, name: str, statements: list[str]
) -> None:
    breakable.begin()
    try:
        for statement in statements:
            breakable.execute(statement)
        quick = list(run_checks(breakable, QUICK))
        deep = list(run_checks(breakable, DEEP))
    finally:
        breakable.rollback()
    [finding] = [*quick, *deep]
    assert finding.check == name
    assert finding.num_rows == len(finding.rows) > 0
    assert bool(quick) == (name in list_checks(QUICK))


def test_every_check_is_broken_somewhere_and_says_what_to_do() -> None:
    checks = [(folder, check) for folder in (QUICK, DEEP) for check in list_checks(folder)]
    assert {check for _, check in checks} == set(DAMAGE)
    for folder, name in [*checks, ("checks/root", "losses_match_files")]:
        meaning, remedy = describe(read_sql(folder, name))
        assert meaning.endswith(".")
        assert remedy.endswith(".")
        assert "--" not in meaning


def test_a_snapshot_has_the_columns_that_its_views_were_made_with(home: Path) -> None:
    """Then a quick check need not bind all views, which takes longer than all else in it."""
    with opened(home / SNAPSHOT) as connection:
        [(made,)] = connection.sql("select catalogue from internal.schema_version").fetchall()
        assert made == digest_catalogue(connection)


@pytest.mark.parametrize(
    "statement",
    [
        "alter table documents drop column category",
        pytest.param(
            "alter table internal.benchmark_scores rename column score to points",
            marks=pytest.mark.slow,
        ),
        "create or replace view internal.sound_cells as select 1 as model",
        pytest.param("drop view internal.sound_cells", marks=pytest.mark.slow),
        "drop table materialised.model_difference",
        "drop macro wilson_low",
    ],
)
def test_a_quick_check_finds_views_that_cannot_be_read(home: Path, statement: str) -> None:
    damage(home, statement)
    assert "views_can_be_read" in [finding.check for finding in check(home, is_deep=False)]


def test_the_first_rows_are_shown_and_all_are_counted(home: Path) -> None:
    damage(home, f"update chunk_losses set chunk_index = -1 where {FOREIGN}")
    [finding] = check_database(home / SNAPSHOT, is_deep=True)
    assert (len(finding.rows), finding.num_rows) == (SHOWN_ROWS, 8)
    assert finding.first.startswith("model=org/model, source=news, month=2024-01-01")


def test_a_half_written_database_is_explained(home: Path) -> None:
    raw = (home / SNAPSHOT).read_bytes()
    for size in (200_000, 5000, 100, 0):
        assert size < len(raw)
        (home / SNAPSHOT).write_bytes(raw[:size])
        [finding] = check(home)
        assert finding.check == "database_can_be_read"
        assert "damaged" in finding.meaning and "tidemark publish" in finding.remedy


def test_databases_that_are_not_of_this_version_or_damaged_are_explained(home: Path) -> None:
    damage(home, "alter table cell_costs rename to other")
    found = {finding.check: finding for finding in check(home)}
    assert "cell_costs" in found["checks_can_be_run"].first
    assert "views_can_be_read" in found
    damage(home, "update internal.schema_version set version = 1")
    [finding] = check(home)
    assert (finding.check, finding.rows[0]["schema_version"]) == ("schema_is_current", 1)
    raw = bytearray((home / SNAPSHOT).read_bytes())
    for place in range(4096 * 4, len(raw), 20_000):
        raw[place] ^= 0xFF
    (home / SNAPSHOT).write_bytes(raw)
    assert names(home)[-1] == "database_can_be_read"
    (home / SNAPSHOT).unlink()
    damage(home, "create table t (a int)")
    assert names(home) == ["database_can_be_read"]


def test_hostile_names_are_names(home: Path, losses: Any) -> None:
    settings, store = Settings(home=str(home)), Store(str(home))
    model = "'); drop table models; --$month"
    seal = read_seal(store, JANUARY)
    assert seal is not None
    cell = own_cell(seal, model)
    [document] = pq.read_table(store.open(seal.parts[0]))["document_id"].to_pylist()[:1]
    write_own(store, cell, losses({"model": model, "document_id": document}))
    with open_warehouse(settings) as warehouse:
        warehouse.land_cells([cell])
    with connected(settings) as connection:
        found = [*run_checks(connection, QUICK), *run_checks(connection, DEEP)]
        found += check_root(connection, store)
    assert {finding.check for finding in found} == {"cells_cover_partitions", "documents_add_up"}


def names(home: Path) -> list[str]:
    return [finding.check for finding in check(home)]


def only(pattern: str, home: Path) -> Path:
    [path] = home.glob(pattern)
    return path


def test_a_tampered_loss_is_found(home: Path) -> None:
    """The database and its sums agree; only the file differs."""
    damage(
        home,
        f"update chunk_losses set nll_nats = 9 where {OWN} and chunk_index = 1",
        f"update internal.landed_cells set nll_nats = nll_nats - 1 where {OWN}",
        f"update internal.cell_kinds set nll_nats = nll_nats - 1 where {OWN}",
    )
    [finding] = check(home)
    assert finding.check == "losses_match_files"
    assert finding.rows[0]["model"] == "control:x"
    assert (finding.rows[0]["nll_nats_landed"], finding.rows[0]["nll_nats_of_file"]) == (29, 30)


def swap_losses(file: Path) -> None:
    table = pq.read_table(file)
    nats = pa.array([9.0, 11.0, 10.0, math.nan])
    pq.write_table(table.set_column(table.column_names.index("nll_nats"), "nll_nats", nats), file)


def copy_as_former(file: Path) -> None:
    shutil.copy(file, file.with_name(file.name.replace("-r1-", "-r0-")))


def flip_a_bit(part: Path) -> None:
    raw = part.read_bytes()
    part.write_bytes(raw[:40] + bytes([raw[40] ^ 1]) + raw[41:])


def overwrite_source(file: Path) -> None:
    """Write 40 bytes of zeros into the column that no comparison with landed rows reads."""
    table = pq.read_table(file)
    pq.write_table(table, file, compression="zstd", write_page_checksum=True)
    group = pq.read_metadata(file).row_group(0)
    column = group.column(table.column_names.index("source"))
    start = column.dictionary_page_offset or column.data_page_offset
    end = start + column.total_compressed_size
    raw = bytearray(file.read_bytes())
    raw[end - 40 : end] = bytes(40)
    file.write_bytes(raw)


def rename_source(file: Path) -> None:
    """Write a whole file, with checksums, whose rows are of another source."""
    table = pq.read_table(file)
    names = pa.array(["y"] * table.num_rows)
    renamed = table.set_column(table.column_names.index("source"), "source", names)
    pq.write_table(renamed, file, write_page_checksum=True)


LOSSES, RECORDS, PARTS = "losses/**/*.parquet", "losses/**/*.json", "corpus/**/*.parquet"
FILES: dict[str, tuple[str, Callable[[Path], object], list[str]]] = {
    "changed places": (LOSSES, swap_losses, ["losses_match_files"]),
    "torn": (LOSSES, lambda f: f.write_bytes(f.read_bytes()[:-9]), ["losses_can_be_read"]),
    "gone": (LOSSES, lambda f: f.unlink(), ["losses_can_be_read"]),
    "short": (LOSSES, lambda f: pq.write_table(pq.read_table(f, columns=["model"]), f),
              ["losses_can_be_read"]),
    "bytes of a column": (LOSSES, overwrite_source, ["losses_can_be_read"]),
    "another source": (LOSSES, rename_source, ["losses_can_be_read"]),
    "former losses": (LOSSES, copy_as_former, []),
    "record": (RECORDS, lambda f: f.write_text("{}"), ["records_can_be_read"]),
    "bit of a part": (PARTS, flip_a_bit, ["partitions_are_sound"]),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_a_damaged_file_is_named(landed: duckdb.DuckDBPyConnection, files: Path, case: str) -> None:
    pattern, damage_file, expected = FILES[case]
    file = only(pattern, files)
    damage_file(file)
    findings = check_files(landed, files)
    assert [finding.check for finding in findings] == expected
    for row in (row for finding in findings for row in finding.rows):
        assert row.get("file", row.get("model")) in (str(file.relative_to(files)), "control:x")


def test_losses_that_have_not_landed_are_named(
    landed: duckdb.DuckDBPyConnection, files: Path, losses: Any
) -> None:
    store = Store(str(files))
    seal = read_seal(store, JANUARY)
    assert seal is not None
    cell = own_cell(seal, "control:y")
    write_own(store, cell, losses({"model": "control:y"}))
    torn = cell.path.replace("abcd1234", "ffff0000")
    store.write_bytes(torn, b"torn")
    [finding] = check_files(landed, files)
    assert finding.check == "losses_have_landed"
    assert [row["file"] for row in finding.rows] == [cell.path, torn]
    assert finding.rows[0]["problem"] == "has not landed"


def test_a_forged_text_is_found_though_the_manifest_was_forged_with_it(
    landed: duckdb.DuckDBPyConnection, files: Path
) -> None:
    part = only("corpus/**/*.parquet", files)
    manifest = only("corpus/**/manifest.json", files)
    table = pq.read_table(part)
    texts = pa.array(["b" * 30, *table["text"].to_pylist()[1:]], pa.large_string())
    pq.write_table(table.set_column(table.column_names.index("text"), "text", texts), part)
    content = json.loads(manifest.read_text())
    content["files"][0]["sha256"] = sha256_of_file(part)
    manifest.write_text(json.dumps(content))
    (files / "corpus/source=x/month=2024-13").mkdir(parents=True)
    (files / "corpus/source=x/month=2024-13/manifest.json").write_text("{}")
    malformed, forged = check_files(landed, files)
    assert malformed.check == "manifests_can_be_read"
    assert "2024-13" in str(malformed.rows)
    assert forged.check == "partitions_are_sound"
    assert "not the text of its digest" in str(forged.rows)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"digest": "0" * 64}, "has digest 000"),
        ({"num_documents": 4}, "has 4 documents, and its files 3"),
        ({"files": [{"name": "../../../x.parquet"}]}, "leaves the data root"),
        ({"files": "none"}, "is not a manifest"),
        ({"files": []}, "has 3 documents, and its files 0"),
    ],
)
def test_a_manifest_that_lies_is_found(
    landed: duckdb.DuckDBPyConnection, files: Path, change: dict[str, Any], says: str
) -> None:
    manifest = only("corpus/**/manifest.json", files)
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **change}))
    found = {finding.check: finding for finding in check_files(landed, files)}
    name = "manifests_can_be_read" if "is not" in says else "partitions_are_sound"
    rows = found[name].rows
    assert any(says in str(row["problem"]) for row in rows)


def test_a_next_version_of_the_text_leaves_all_sound_until_the_one_scored_is_gone(
    landed: duckdb.DuckDBPyConnection, files: Path
) -> None:
    seal_texts(Store(str(files)), "other")
    assert check_files(landed, files) == []
    for file in (files / "corpus/source=news/month=2024-01").glob("*.*"):
        file.unlink()
    wanted = ["documents_match_seals", "cells_have_texts"]
    assert [finding.check for finding in check_files(landed, files)] == wanted
    shutil.rmtree(files / "corpus")
    found = check_files(landed, files)
    wanted = ["landed_partitions_are_there", "cells_have_texts"]
    assert [finding.check for finding in found] == wanted
    row = found[1].rows[0]
    assert (row["cell"], row["digest_of_seal"]) == ("control:x/news/2024-01/default", None)
