"""Each check finds the one thing that it is about, explains it, and changes nothing."""

from __future__ import annotations

import datetime as dt
import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from core.cell_record import CellRecord, Milestone
from core.cells import Cell
from core.corpus import Partition, Seal, read_seal, tables_of
from core.month import Month
from core.sealing import seal_partition
from core.settings import Settings
from core.storage import Store, sha256_of_file
from warehouse.check import DEEP, QUICK, SHOWN_ROWS, Finding, check_database, describe
from warehouse.check_root import check_home
from warehouse.land import open_warehouse
from warehouse.publish import SNAPSHOT, publish
from warehouse.schema import list_checks, read_sql

JANUARY = Partition("news", Month("2024-01"))
COVERING = {"layout": "disjoint", "max_chars": None, "joined_by": None}
OWN, FOREIGN = "model = 'control:x'", "model = 'org/model'"
RECORD = CellRecord(
    scored_at=dt.datetime(2024, 3, 1, tzinfo=dt.UTC),
    device="cpu: test",
    dtype="float32",
    batch_tokens=None,
    context=None,
    versions={"tidemark": "1"},
    seconds=1.0,
    num_tokens_read=20,
    peak_memory_bytes=1,
    energy_joules=None,
    num_lossy_documents=0,
    tokenizer=None,
    milestones=(Milestone(milestone=10, num_documents=2, nll_nats=3.0, num_chars=9, num_bytes=9),),
)


def seal_texts(store: Store, *texts: str) -> Seal:
    rows = [
        {
            "native_id": str(number),
            "date_kind": "given",
            "licence": "CC0-1.0",
            "text": text,
        }
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
def made(tmp_path_factory: pytest.TempPathFactory, losses: Callable[..., pa.Table]) -> Path:
    """A published home: an own cell of three documents (one unmeasured), and a foreign cell."""
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
        warehouse.land_cell(own_cell(seal))
        warehouse.land_losses(losses(*({"document_id": f"d{i}"} for i in range(8))), "rows")
    publish(settings)
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(made, tmp_path / "home"))


def check(home: Path, is_deep: bool = True) -> list[Finding]:
    return list(check_home(home / SNAPSHOT, Store(str(home)), is_deep))


def damage(home: Path, *statements: str) -> None:
    with duckdb.connect(str(home / SNAPSHOT)) as connection:
        for statement in statements:
            connection.execute(statement)


# What breaks one invariant of the database, and no other.
DAMAGE = {
    "cells_come_once": [
        ["insert into landed_partitions from landed_partitions"],
        ["insert into cell_costs from cell_costs"],
        # Another revision of the model, beside the first and with rows of its own.
        ["insert into landed_cells select * replace ('r2' as revision) from landed_cells "
         f"where {FOREIGN}",
         "insert into chunk_losses select * replace ('r2' as revision, document_id || 'b' as "
         f"document_id) from chunk_losses where {FOREIGN}"],
    ],
    "cells_cover_partitions": [[f"update landed_cells set num_documents = 2 where {OWN}"]],
    "cells_have_replicates": [
        ["delete from cell_replicates where replicate = 7"],
        [f"delete from cell_replicates where {FOREIGN}"],
        ["insert into cell_replicates select * replace ('other' as model) from cell_replicates "
         f"where {OWN}"],
    ],
    "cells_match_losses": [
        [f"delete from chunk_losses where document_id = 'd3' and {FOREIGN}"],
        [f"update landed_cells set num_unmeasured = 1 where {FOREIGN}"],
    ],
    "dimensions_are_complete": [
        ["delete from models where model = 'org/model'"],
        ["delete from sources"],
        ["delete from protocols"],
    ],
    "documents_match_partitions": [
        ["insert into landed_partitions values ('other', null, 'x', 1, 3, 9)"],
        ["insert into documents select * replace ('other' as source) from documents limit 1"],
        ["update landed_partitions set num_bytes = 1"],
    ],
    "months_are_first_days": [
        ["update models set cutoff = date '2023-01-31'"],
        ["insert into landed_partitions values ('other', date '2024-01-02', 'x', 1, 0, 0)"],
    ],
    "records_have_cells": [
        ["insert into cell_costs select * replace ('other' as model) from cell_costs"],
        ["insert into cell_milestones select * replace ('b' as model) from cell_milestones"],
    ],
    "replicates_come_once": [
        [f"update cell_replicates set replicate = 7 where replicate = 8 and {OWN}"],
        [f"update cell_replicates set replicate = 201 where replicate = 8 and {OWN}"],
    ],
    "sums_are_sound": [
        ["update cell_replicates set nll_nats = 'nan' where replicate = 3"],
        ["update cell_replicates set num_bytes = -1 where replicate = 3"],
        ["update cell_milestones set nll_nats = 'inf'"],
        ["update cell_costs set seconds = -1"],
    ],
    "cells_match_sums": [
        [f"update landed_cells set nll_nats = nll_nats * (1 + 1e-8) where {FOREIGN}"],
        [f"update landed_cells set num_bytes = num_bytes + 1 where {FOREIGN}"],
        [f"update landed_cells set num_not_finite = 1 where {OWN}"],
        [f"update chunk_losses set nll_nats = 10.1 where document_id = 'd3' and {FOREIGN}"],
    ],
    "chunks_come_once": [
        [f"update chunk_losses set document_id = 'd0' where document_id = 'd1' and {FOREIGN}"],
    ],
    "chunks_have_documents": [
        ["update chunk_losses set document_id = 'ghost' where reason is not null"],
    ],
    "documents_add_up": [
        ["update documents set num_chars = num_chars + 1 where num_chars = 30"],
        [f"update chunk_losses set num_bytes = num_bytes + 1 where {OWN} and reason is not null"],
    ],
    "losses_are_sound": [
        [f"update chunk_losses set nll_nats = -1 where document_id = 'd3' and {FOREIGN}"],
        [f"update chunk_losses set nll_nats = 'nan' where document_id = 'd3' and {FOREIGN}"],
        [f"update chunk_losses set nll_nats = 'inf' where document_id = 'd3' and {FOREIGN}"],
        [f"update chunk_losses set chunk_index = -1 where document_id = 'd3' and {FOREIGN}"],
        [f"update chunk_losses set num_tokens = -1 where document_id = 'd3' and {FOREIGN}",
         f"update landed_cells set num_tokens = num_tokens - 6 where {FOREIGN}"],
    ],
    "missing_losses_have_reasons": [
        ["update chunk_losses set reason = null"],
        ["update chunk_losses set reason = '' where reason is not null"],
        [f"update chunk_losses set reason = 'x' where document_id = 'd3' and {FOREIGN}"],
    ],
    "reasons_are_known": [
        ["update chunk_losses set reason = 'tired' where reason is not null"],
    ],
}  # fmt: skip
CASES = [(name, statements) for name, cases in DAMAGE.items() for statements in cases]


def test_a_sound_home_is_sound(made: Path) -> None:
    before = {path: sha256_of_file(path) for path in made.rglob("*") if path.is_file()}
    assert check(made) == []
    after = {path: sha256_of_file(path) for path in made.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize(("name", "statements"), CASES)
def test_a_broken_invariant_is_found_by_its_check_alone(
    home: Path, name: str, statements: list[str]
) -> None:
    damage(home, *statements)
    [finding] = check_database(home / SNAPSHOT, is_deep=True)
    assert finding.check == name
    assert finding.num_rows == len(finding.rows) > 0
    is_quick = name in list_checks(QUICK)
    assert [each.check for each in check_database(home / SNAPSHOT)] == [name] * is_quick


def test_every_check_is_broken_somewhere_and_says_what_to_do() -> None:
    checks = [(folder, check) for folder in (QUICK, DEEP) for check in list_checks(folder)]
    assert {check for _, check in checks} == set(DAMAGE)
    for folder, name in [*checks, ("checks/root", "losses_match_files")]:
        meaning, remedy = describe(read_sql(folder, name))
        assert meaning.endswith(".")
        assert remedy.endswith(".")
        assert "--" not in meaning


def test_the_first_rows_are_shown_and_all_are_counted(home: Path) -> None:
    damage(home, f"update chunk_losses set chunk_index = -1 where {FOREIGN}")
    [finding] = check_database(home / SNAPSHOT, is_deep=True)
    assert (len(finding.rows), finding.num_rows) == (SHOWN_ROWS, 8)
    assert finding.first.startswith("model=org/model, source=news, month=2024-01-01")


# Files that are no database of ours.


@pytest.mark.parametrize("size", [0, 100, 5000, 200_000])
def test_a_half_written_database_is_explained(home: Path, size: int) -> None:
    raw = (home / SNAPSHOT).read_bytes()
    assert size < len(raw)
    (home / SNAPSHOT).write_bytes(raw[:size])
    [finding] = check(home)
    assert finding.check == "database_can_be_read"
    assert "damaged" in finding.meaning
    assert "Publish it again" in finding.remedy


def test_a_database_with_flipped_bits_is_explained(home: Path) -> None:
    raw = bytearray((home / SNAPSHOT).read_bytes())
    for place in range(4096 * 4, len(raw), 20_000):
        raw[place] ^= 0xFF
    (home / SNAPSHOT).write_bytes(raw)
    findings = check(home)
    assert findings[-1].check == "database_can_be_read"


def test_another_database_and_another_version_are_explained(home: Path) -> None:
    damage(home, "update schema_version set version = 1")
    [finding] = check(home)
    assert (finding.check, finding.rows[0]["schema_version"]) == ("schema_is_current", 1)
    (home / SNAPSHOT).unlink()
    damage(home, "create table t (a int)")
    [finding] = check(home)
    assert finding.check == "database_can_be_read"


def test_a_missing_table_is_explained(home: Path) -> None:
    damage(home, "alter table cell_costs rename to other")
    found = {finding.check: finding for finding in check(home)}
    assert "cell_costs" in found["checks_can_be_run"].first
    assert "views_can_be_read" in found


def test_hostile_names_are_names(home: Path, losses: Callable[..., pa.Table]) -> None:
    settings, store = Settings(home=str(home)), Store(str(home))
    model = "'); drop table models; --\n\x1b[31m$month"
    seal = read_seal(store, JANUARY)
    assert seal is not None
    cell = own_cell(seal, model)
    [document] = pq.read_table(store.open(seal.parts[0]))["document_id"].to_pylist()[:1]
    write_own(store, cell, losses({"model": model, "document_id": document}))
    with open_warehouse(settings) as warehouse:
        warehouse.land_cell(cell)
    publish_anyway(settings)
    assert {finding.check for finding in check(home)} == {
        "cells_cover_partitions", "documents_add_up",
    }  # fmt: skip


def publish_anyway(settings: Settings) -> None:
    shutil.copy(settings.scratch / "writer.duckdb", Path(settings.home) / SNAPSHOT)


# The data root.


def names(home: Path) -> list[str]:
    return [finding.check for finding in check(home)]


def only(pattern: str, home: Path) -> Path:
    [path] = home.glob(pattern)
    return path


def test_a_tampered_loss_is_found(home: Path) -> None:
    """In the database, sums and all: only the file can tell."""
    damage(
        home,
        f"update chunk_losses set nll_nats = 9 where {OWN} and chunk_index = 1",
        f"update landed_cells set nll_nats = nll_nats - 1 where {OWN}",
    )
    [finding] = check(home)
    assert finding.check == "losses_match_files"
    assert finding.rows[0]["model"] == "control:x"
    assert (finding.rows[0]["nll_nats_landed"], finding.rows[0]["nll_nats_of_file"]) == (29, 30)


def test_losses_that_changed_places_are_found(home: Path) -> None:
    file = only("losses/**/*.parquet", home)
    table = pq.read_table(file)
    nats = pa.array([9.0, 11.0, 10.0, math.nan])
    pq.write_table(table.set_column(table.column_names.index("nll_nats"), "nll_nats", nats), file)
    assert names(home) == ["losses_match_files"]


@pytest.mark.parametrize("damaged", ["torn", "gone", "short"])
def test_a_damaged_losses_file_is_named(home: Path, damaged: str) -> None:
    file = only("losses/**/*.parquet", home)
    if damaged == "gone":
        file.unlink()
    elif damaged == "torn":
        file.write_bytes(file.read_bytes()[:-9])
    else:
        pq.write_table(pq.read_table(file, columns=["model", "document_id"]), file)
    [finding] = check(home)
    assert finding.check == "losses_can_be_read"
    assert finding.rows[0]["file"] == str(file.relative_to(home))


def test_a_damaged_record_is_named(home: Path) -> None:
    only("losses/**/*.json", home).write_text("{}")
    assert names(home) == ["records_can_be_read"]


def test_losses_that_have_not_landed_are_named(home: Path, losses: Callable[..., pa.Table]) -> None:
    store = Store(str(home))
    seal = read_seal(store, JANUARY)
    assert seal is not None
    cell = own_cell(seal, "control:y")
    write_own(store, cell, losses({"model": "control:y"}))
    torn = cell.path.replace("abcd1234", "ffff0000")
    store.write_bytes(torn, b"torn")
    [finding] = check(home)
    assert finding.check == "losses_have_landed"
    assert [row["file"] for row in finding.rows] == [cell.path, torn]
    assert finding.rows[0]["problem"] == "has not landed"


def test_former_losses_of_a_landed_cell_are_no_finding(home: Path) -> None:
    file = only("losses/**/*.parquet", home)
    shutil.copy(file, file.with_name(file.name.replace("-r1-", "-r0-")))
    assert check(home) == []


def test_a_damaged_part_is_named(home: Path) -> None:
    part = only("corpus/**/*.parquet", home)
    raw = bytearray(part.read_bytes())
    raw[40] ^= 1
    part.write_bytes(raw)
    [finding] = check(home)
    assert finding.check == "partitions_are_sound"
    assert {row["file"] for row in finding.rows} == {str(part.relative_to(home))}
    assert "SHA-256" in str(finding.rows[0]["problem"])


def test_a_forged_text_is_found_though_the_manifest_was_forged_with_it(home: Path) -> None:
    part, manifest = only("corpus/**/*.parquet", home), only("corpus/**/manifest.json", home)
    table = pq.read_table(part)
    texts = pa.array(["b" * 30, *table["text"].to_pylist()[1:]], pa.large_string())
    pq.write_table(table.set_column(table.column_names.index("text"), "text", texts), part)
    content = json.loads(manifest.read_text())
    content["files"][0]["sha256"] = sha256_of_file(part)
    manifest.write_text(json.dumps(content))
    [finding] = check(home)
    assert finding.check == "partitions_are_sound"
    assert "not the text of its digest" in finding.first


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
def test_a_manifest_that_lies_is_found(home: Path, change: dict[str, Any], says: str) -> None:
    manifest = only("corpus/**/manifest.json", home)
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **change}))
    found = {finding.check: finding for finding in check(home)}
    rows = found["partitions_are_sound"].rows
    assert any(says in str(row["problem"]) for row in rows)


def test_a_folder_of_no_month_is_named(home: Path) -> None:
    (home / "corpus/source=x/month=2024-13").mkdir(parents=True)
    (home / "corpus/source=x/month=2024-13/manifest.json").write_text("{}")
    [finding] = check(home)
    assert finding.check == "partitions_are_sound"
    assert "2024-13" in finding.first


def test_a_next_version_of_the_text_leaves_all_sound_until_the_one_scored_is_gone(
    home: Path,
) -> None:
    seal_texts(Store(str(home)), "other")
    assert names(home) == []
    for file in (home / "corpus/source=news/month=2024-01").glob("*.*"):
        file.unlink()
    assert names(home) == ["documents_match_seals", "cells_have_texts"]
    shutil.rmtree(home / "corpus")
    [documents, texts] = check(home)
    assert (documents.check, texts.check) == ("documents_match_seals", "cells_have_texts")
    assert texts.rows[0]["cell"] == "control:x/news/2024-01/default"
    assert texts.rows[0]["digest_of_seal"] is None


def test_an_empty_warehouse_is_sound(settings: Settings) -> None:
    publish(settings)
    assert check(Path(settings.home)) == []
