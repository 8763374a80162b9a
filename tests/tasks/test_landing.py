"""What is scored lands once, with all that it is joined with."""

from __future__ import annotations

import datetime as dt
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.corpus import Seal
from core.errors import SchemaMismatch, StorageError
from core.month import Month
from core.settings import Settings
from core.storage import Store
from models.catalogue import ModelEntry, add_model
from tasks.landing import describe_models, land_finished
from tasks.scoring import ScoringPlan, plan_scoring, write_losses
from warehouse.land import open_warehouse
from warehouse.publish import publish
from warehouse.query import query
from warehouse.writer import connected

Sealer = Callable[..., Seal]


def score(settings: Settings, protocol: str = "default") -> ScoringPlan:
    """Write the losses of every cell that has none."""
    plan = plan_scoring("control:zstd", [protocol], None, None, settings)
    for cell in plan.pending:
        write_losses([cell], plan.entry, settings)
    return plan


def ask(settings: Settings, sql: str) -> list[dict[str, Any]]:
    publish(settings)
    rows: list[dict[str, Any]] = query(settings, sql).to_pylist()
    return rows


def test_cells_land_once(settings: Settings, seal: Sealer) -> None:
    seal("notes", "2024-01")
    seal("notes", "2024-02")
    plan = score(settings)
    assert land_finished(plan.entry, plan.cells, settings) == 2
    assert land_finished(plan.entry, plan.cells, settings) == 0
    sql = "select num_documents, num_chunks from landed_cells order by month"
    assert ask(settings, sql) == [{"num_documents": 3, "num_chunks": 3}] * 2


def test_cells_without_losses_are_passed_over(settings: Settings, seal: Sealer) -> None:
    seal("notes", "2024-01")
    seal("notes", "2024-02")
    plan = plan_scoring("control:zstd", ["default"], None, None, settings)
    write_losses([plan.pending[1]], plan.entry, settings)
    assert land_finished(plan.entry, plan.cells, settings) == 1
    assert land_finished(plan.entry, (), settings) == 0
    [row] = ask(settings, "select strftime(month, '%Y-%m') as month from landed_cells")
    assert row == {"month": "2024-02"}


def test_what_cells_are_joined_with_lands_too(settings: Settings, seal: Sealer) -> None:
    seal("notes", "2024-01")
    plan = score(settings)
    land_finished(plan.entry, plan.cells, settings)
    [model] = ask(settings, "from models")
    assert (model["model"], model["kind"], model["cutoff"]) == ("control:zstd", "control", None)
    assert model["revision"] == plan.cells[0].revision
    assert [row["protocol"] for row in ask(settings, "from protocols")] == ["default"]
    [source] = ask(settings, "select source, title from sources")
    assert source == {"source": "notes", "title": None}  # imported: no more is known
    [documents] = ask(settings, "select count(*) as n, sum(num_bytes) as size from documents")
    assert documents["n"] == 3
    sql = "select sum(num_bytes) as size from chunk_losses"
    assert ask(settings, sql) == [{"size": documents["size"]}]


def test_a_partition_sealed_anew_takes_the_place_of_the_old(
    settings: Settings, seal: Sealer
) -> None:
    seal("notes", "2024-01")
    old = score(settings)
    land_finished(old.entry, old.cells, settings)
    seal("notes", "2024-01", words="other words, ", num=5)
    # The losses of what is no longer there must not be joined with what is.
    land_finished(old.entry, old.cells, settings)
    new = score(settings)
    assert land_finished(new.entry, new.cells, settings) == 1
    [row] = ask(settings, "select num_documents, partition_digest from landed_cells")
    assert row == {"num_documents": 5, "partition_digest": new.cells[0].partition_digest}
    assert ask(settings, "select count(*) as n from documents") == [{"n": 5}]


def test_protocols_stand_side_by_side(settings: Settings, seal: Sealer) -> None:
    seal("notes", "2024-01")
    for protocol in ("default", "disjoint-64"):
        plan = score(settings, protocol)
        assert land_finished(plan.entry, plan.cells, settings) == 1
    sql = "select protocol, num_chunks from landed_cells order by protocol"
    assert [row["protocol"] for row in ask(settings, sql)] == ["default", "disjoint-64"]
    assert [row["protocol"] for row in ask(settings, "from protocols order by 1")] == [
        "default", "disjoint-64",
    ]  # fmt: skip


def test_damaged_losses_stop_the_landing_and_leave_what_landed(
    settings: Settings, store: Store, seal: Sealer
) -> None:
    seal("notes", "2024-01")
    seal("notes", "2024-02")
    plan = score(settings)
    path = sorted(plan.cells)[1].path
    store.write_bytes(path, store.read_bytes(path)[:-50])
    with pytest.raises(StorageError, match="is damaged .*; delete it and score again"):
        land_finished(plan.entry, plan.cells, settings)
    assert ask(settings, "select count(*) as n from landed_cells") == [{"n": 1}]


def test_foreign_losses_of_a_catalogued_model_are_split_at_its_cutoff(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path))
    entry = ModelEntry(
        name="theirs", location="org/theirs", cutoff=Month("2024-01"),
        cutoff_provenance="stated", cutoff_precision="month",
    )  # fmt: skip
    add_model(entry, settings)
    rows = [
        {
            "model": model, "revision": "r", "source": "s", "month": dt.date(2024, month, 1),
            "document_id": "d", "chunk_index": 0, "protocol": "p", "nll_nats": 1.0 * month,
            "num_tokens": 1, "num_chars": 1, "num_bytes": 1,
        }
        for model in ("theirs", "nobody's")
        for month in (1, 2)
    ]  # fmt: skip
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(pa.Table.from_pylist(rows), "rows")
        describe_models(warehouse, settings)
    publish(settings)
    found = query(settings, "select model, split_date from train_test_gap").to_pylist()
    assert found == [{"model": "theirs", "split_date": dt.date(2024, 2, 1)}]

    add_model(replace(entry, cutoff=Month("2023-12")), settings, replace=True)
    with open_warehouse(settings) as warehouse:
        describe_models(warehouse, settings)
    publish(settings)
    assert query(
        settings, "select cutoff, revision from models where kind is not null"
    ).to_pylist() == [{"cutoff": dt.date(2023, 12, 1), "revision": "r"}]


def test_the_setting_chooses_which_version_is_scored_and_landed(
    settings: Settings, seal: Sealer, store: Store
) -> None:
    first = seal("notes", "2024-01")
    past = settings.model_copy(update={"corpus_as_of": dt.datetime.now(dt.UTC)})
    plan = score(settings)
    land_finished(plan.entry, plan.cells, settings)
    second = seal("notes", "2024-01", words="other words, ", num=2)
    sql = "select partition_digest, partition_version from landed_cells"
    documents = "select partition_version, num_documents from landed_partitions"
    newest = score(settings)
    assert len(newest.pending) == 1
    land_finished(newest.entry, newest.cells, settings)
    assert ask(settings, sql) == [{"partition_digest": second.digest, "partition_version": 2}]
    assert ask(settings, documents) == [{"partition_version": 2, "num_documents": 2}]
    before = plan_scoring("control:zstd", ["default"], None, None, past)
    assert before.pending == ()  # the losses are there
    assert land_finished(before.entry, before.cells, past) == 1
    assert ask(past, sql) == [{"partition_digest": first.digest, "partition_version": 1}]
    assert ask(past, documents) == [{"partition_version": 1, "num_documents": 3}]
    assert ask(past, "select num_outdated_cells as n from coverage") == [{"n": 0}]


def test_a_model_that_was_not_scored_again_is_outdated(settings: Settings, seal: Sealer) -> None:
    seal("notes", "2024-01")
    for protocol in ("default", "solid"):
        plan = score(settings, protocol)
        land_finished(plan.entry, plan.cells, settings)
    seal("notes", "2024-01", words="other words, ", num=2)
    plan = score(settings)
    land_finished(plan.entry, plan.cells, settings)
    rows = ask(settings, "select protocol, num_outdated_cells as n from coverage order by all")
    assert rows == [{"protocol": "default", "n": 0}, {"protocol": "solid", "n": 1}]


def test_a_damaged_cell_keeps_none_of_its_neighbours_out(settings: Settings, seal: Sealer) -> None:
    """All of them would land together."""
    for month in ("2024-01", "2024-02", "2024-03"):
        seal("notes", month)
    plan = score(settings)
    store = Store(settings.home)
    stranger = store.read_bytes(plan.cells[0].path)
    whole = store.read_bytes(plan.cells[2].path)
    store.write_bytes(plan.cells[2].path, stranger)
    with pytest.raises(SchemaMismatch, match="2024-03.*another cell: .*month=2024-01-01"):
        land_finished(plan.entry, plan.cells, settings)
    store.write_bytes(plan.cells[2].path, b"torn")
    with pytest.raises(StorageError, match="score again"):
        land_finished(plan.entry, plan.cells, settings)
    months = "select strftime(month, '%Y-%m') as month from landed_cells order by all"
    assert ask(settings, months) == [{"month": "2024-01"}, {"month": "2024-02"}]
    store.write_bytes(plan.cells[2].path, whole)
    assert land_finished(plan.entry, plan.cells, settings) == 1


def test_cells_that_land_together_land_as_each_by_itself(
    settings: Settings, seal: Sealer, tmp_path: Path
) -> None:
    for month in ("2024-01", "2024-02", None):
        seal("notes", month, num=30)
    plan = score(settings)
    shutil.copytree(settings.home, tmp_path / "apart")
    apart = settings.model_copy(update={"home": str(tmp_path / "apart")})
    land_finished(plan.entry, plan.cells, settings)
    for cell in plan.cells:
        land_finished(plan.entry, (cell,), apart)
    tables = ("landed_cells", "chunk_losses", "cell_replicates", "cell_costs", "tokenizers")
    for table in tables:
        with connected(settings) as ours, connected(apart) as theirs:
            expected = sorted(theirs.table(table).fetchall(), key=repr)
            assert sorted(ours.table(table).fetchall(), key=repr) == expected


def test_what_was_scored_again_lands_again(settings: Settings, seal: Sealer) -> None:
    seal("notes", "2024-01")
    plan = score(settings)
    assert land_finished(plan.entry, plan.cells, settings) == 1
    Store(settings.home).delete(plan.cells[0].path)
    score(settings)
    assert land_finished(plan.entry, plan.cells, settings) == 1
    assert land_finished(plan.entry, plan.cells, settings) == 0
