import datetime as dt
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from core.corpus.partition import FIRST_REGIME
from core.errors import DamagedFile, SchemaMismatch, StorageError
from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from instruments.landing import describe_models, land_losses
from instruments.losses import ScoringPlan, plan_scoring, write_losses
from models.catalogue import ModelEntry, add_model
from tests.losses import loss_row
from tests.seals import Sealer
from tests.tiers import few
from warehouse.database.schema import qualify
from warehouse.database.writer import connected
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

pytestmark = pytest.mark.long


def score(settings: Settings, protocol: str = "default") -> ScoringPlan:
    plan = plan_scoring("control:zstd", [protocol], None, None, settings)
    for cell in plan.pending:
        write_losses([cell], plan.entry, settings)
    return plan


def ask(settings: Settings, sql: str) -> list[dict[str, Any]]:
    """Return rows of the writer's database, which takes a tenth of a publication."""
    with connected(settings) as connection:
        rows: list[dict[str, Any]] = connection.sql(sql).to_arrow_table().to_pylist()
    return rows


def test_cells_without_losses_are_passed_over(settings: Settings, seal: Sealer) -> None:
    seal("notes", "2024-01")
    seal("notes", "2024-02")
    plan = plan_scoring("control:zstd", ["default"], None, None, settings)
    write_losses([plan.pending[1]], plan.entry, settings)
    assert len(land_losses(plan.entry, plan.cells, settings)) == 1
    assert len(land_losses(plan.entry, (), settings)) == 0
    [row] = ask(settings, "select strftime(month, '%Y-%m') as month from internal.landed_cells")
    assert row == {"month": "2024-02"}


def test_what_cells_are_joined_with_lands_too(settings: Settings, seal: Sealer) -> None:
    seal("notes", "2024-01")
    plan = score(settings)
    land_losses(plan.entry, plan.cells, settings)
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
    land_losses(old.entry, old.cells, settings)
    seal("notes", "2024-01", words="other words, ", num=5)
    # The losses of what is no longer there must not be joined with what is.
    land_losses(old.entry, old.cells, settings)
    new = score(settings)
    assert len(land_losses(new.entry, new.cells, settings)) == 1
    [row] = ask(settings, "select num_documents, partition_digest from internal.landed_cells")
    assert row == {"num_documents": 5, "partition_digest": new.cells[0].partition_digest}
    assert ask(settings, "select count(*) as n from documents") == [{"n": 5}]


def test_a_new_month_brings_the_regimes_of_its_source(settings: Settings, seal: Sealer) -> None:
    seal("notes", "2024-01")
    old = score(settings)
    land_losses(old.entry, old.cells, settings)
    regimes = "select regime, is_regime_start from source_months order by month"
    assert ask(settings, regimes) == [{"regime": FIRST_REGIME, "is_regime_start": False}]
    seal("notes", "2024-01", regime="scan")  # the same text: its digest stays
    seal("notes", "2024-02", regime="scan")
    new = score(settings)
    land_losses(new.entry, new.cells, settings)
    assert ask(settings, regimes) == [{"regime": "scan", "is_regime_start": False}] * 2


def test_foreign_losses_of_a_catalogued_model_are_split_at_its_cutoff(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path))
    entry = ModelEntry(
        name="theirs", location="org/theirs", cutoff=Month("2024-01"),
        cutoff_provenance="stated", cutoff_precision="month",
    )  # fmt: skip
    add_model(entry, settings)
    rows = [
        loss_row(model, "s", dt.date(2024, month, 1), "d", nll_nats=1.0 * month)
        for model in ("theirs", "nobody's")
        for month in (1, 2)
    ]
    with open_warehouse(settings) as warehouse:
        warehouse.land_losses(pa.Table.from_pylist(rows), "rows")
        describe_models(warehouse, settings)
    publish(settings)
    found = query(
        settings, "select model, split_date from train_test_gap_at(null) where scope = 'source'"
    ).to_pylist()
    assert found == [{"model": "theirs", "split_date": dt.date(2024, 2, 1)}]


@pytest.mark.slow
def test_the_setting_chooses_which_version_is_scored_and_landed(
    settings: Settings, seal: Sealer, store: Store
) -> None:
    first = seal("notes", "2024-01")
    past = settings.model_copy(update={"corpus_as_of": dt.datetime.now(dt.UTC)})
    plan = score(settings)
    land_losses(plan.entry, plan.cells, settings)
    second = seal("notes", "2024-01", words="other words, ", num=2)
    sql = "select partition_digest, partition_version from internal.landed_cells"
    documents = "select partition_version, num_documents from internal.landed_partitions"
    newest = score(settings)
    assert len(newest.pending) == 1
    land_losses(newest.entry, newest.cells, settings)
    assert ask(settings, sql) == [{"partition_digest": second.digest, "partition_version": 2}]
    assert ask(settings, documents) == [{"partition_version": 2, "num_documents": 2}]
    before = plan_scoring("control:zstd", ["default"], None, None, past)
    assert before.pending == ()  # the losses are there
    assert len(land_losses(before.entry, before.cells, past)) == 1
    assert ask(past, sql) == [{"partition_digest": first.digest, "partition_version": 1}]
    assert ask(past, documents) == [{"partition_version": 1, "num_documents": 3}]
    assert ask(past, "select num_outdated_cells as n from coverage") == [{"n": 0}]


def test_a_damaged_cell_keeps_none_of_its_neighbours_out(settings: Settings, seal: Sealer) -> None:
    """Undamaged, the cells would land together."""
    for month in ("2024-01", "2024-02", "2024-03"):
        seal("notes", month)
    plan = score(settings)
    store = Store(settings.home)
    stranger = store.read_bytes(plan.cells[0].path)
    whole = store.read_bytes(plan.cells[2].path)
    store.write_bytes(plan.cells[2].path, stranger)
    with pytest.raises(SchemaMismatch, match="2024-03.*another cell: .*month=2024-01-01"):
        land_losses(plan.entry, plan.cells, settings)
    store.write_bytes(plan.cells[2].path, b"torn")
    with pytest.raises(StorageError, match="score again"):
        land_losses(plan.entry, plan.cells, settings)
    months = "select strftime(month, '%Y-%m') as month from internal.landed_cells order by all"
    assert ask(settings, months) == [{"month": "2024-01"}, {"month": "2024-02"}]
    store.write_bytes(plan.cells[2].path, whole)
    assert len(land_losses(plan.entry, plan.cells, settings)) == 1


@pytest.mark.parametrize("place", few([0, 1, 2], 1))
def test_the_damaged_cells_of_a_model_are_named_and_the_others_land(
    settings: Settings, seal: Sealer, place: int
) -> None:
    for month in ("2024-01", "2024-02", "2024-03"):
        seal("notes", month)
    plan = score(settings)
    store = Store(settings.home)
    whole = store.read_bytes(plan.cells[place].path)
    store.write_bytes(plan.cells[place].path, whole[:-20])
    with pytest.raises(DamagedFile, match="move it out of the data root and score again") as alone:
        land_losses(plan.entry, plan.cells, settings)
    assert plan.cells[place].path in str(alone.value)
    assert ask(settings, "select count(*) as n from internal.landed_cells") == [{"n": 2}]
    other = plan.cells[place - 1]
    store.write_bytes(other.record_path, b"{}")
    with pytest.raises(StorageError, match="2 of 3 cells could not land") as both:
        land_losses(plan.entry, plan.cells, settings)
    assert plan.cells[place].path in str(both.value)
    assert other.record_path in str(both.value)


def test_cells_that_land_together_land_as_each_by_itself(
    settings: Settings, seal: Sealer, tmp_path: Path
) -> None:
    for month in ("2024-01", "2024-02", None):
        seal("notes", month, num=30)
    plan = score(settings)
    shutil.copytree(settings.home, tmp_path / "apart")
    apart = settings.model_copy(update={"home": str(tmp_path / "apart")})
    land_losses(plan.entry, plan.cells, settings)
    for cell in plan.cells:
        land_losses(plan.entry, (cell,), apart)
    tables = ("landed_cells", "chunk_losses", "cell_replicates", "cell_costs", "tokenizers")
    for table in tables:
        with connected(settings) as ours, connected(apart) as theirs:
            expected = sorted(theirs.table(qualify(table)).fetchall(), key=repr)
            assert sorted(ours.table(qualify(table)).fetchall(), key=repr) == expected


def test_what_was_scored_again_lands_again(settings: Settings, seal: Sealer) -> None:
    seal("notes", "2024-01")
    plan = score(settings)
    assert len(land_losses(plan.entry, plan.cells, settings)) == 1
    Store(settings.home).delete(plan.cells[0].path)
    score(settings)
    assert len(land_losses(plan.entry, plan.cells, settings)) == 1
    assert len(land_losses(plan.entry, plan.cells, settings)) == 0
