"""Plans name cells without loading weights; losses are written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from core.corpus import Seal
from core.errors import ModelLoadError, StorageError, UnknownName, UsageError
from core.month import Month
from core.schemas import LOSSES
from core.settings import Settings
from core.storage import Store
from models.catalogue import ModelEntry, find_model
from tasks.scoring import (
    ScoringPlan,
    _LoadedModel,
    load_model,
    plan_scoring,
    require_sealed,
    select_sealed,
    write_losses,
)

Sealer = Callable[..., Seal]
JANUARY, FEBRUARY = Month("2024-01"), Month("2024-02")


@pytest.fixture
def corpus(seal: Sealer) -> None:
    for source, month in (("a", "2024-01"), ("a", "2024-02"), ("b", "2024-02"), ("c", None)):
        seal(source, month)


def plan(settings: Settings, model: str = "control:zstd", protocol: str = "default") -> ScoringPlan:
    return plan_scoring(model, [protocol], None, None, settings)


def names(seals: list[Seal]) -> list[str]:
    return [str(seal.partition) for seal in seals]


@pytest.mark.usefixtures("corpus")
def test_partitions_are_selected_by_source_and_month(store: Store) -> None:
    assert names(select_sealed(store, None, None)) == [
        "a 2024-01", "a 2024-02", "b 2024-02", "c undated",
    ]  # fmt: skip
    assert names(select_sealed(store, ["b", "c"], None)) == ["b 2024-02", "c undated"]
    assert names(select_sealed(store, None, [FEBRUARY])) == ["a 2024-02", "b 2024-02"]
    assert select_sealed(store, ["b"], [JANUARY]) == []


@pytest.mark.usefixtures("corpus")
def test_what_is_not_sealed_is_refused_with_what_is(store: Store) -> None:
    require_sealed(store, None, None)
    require_sealed(store, ["a", "b"], [JANUARY, FEBRUARY])
    with pytest.raises(UsageError, match=r"nothing is sealed of b for 2024-01 under .*: a\)"):
        require_sealed(store, ["a", "b"], [JANUARY])
    with pytest.raises(UsageError, match="of any source for 2023-01 to 2023-02 .*: nothing"):
        require_sealed(store, None, [Month("2023-01"), Month("2023-02")])


def test_an_empty_data_root_is_refused(store: Store) -> None:
    with pytest.raises(UsageError, match="nothing is sealed of any source .*crawl or import"):
        require_sealed(store, None, None)


@pytest.mark.usefixtures("corpus")
def test_what_has_losses_is_done(settings: Settings) -> None:
    first = plan(settings)
    assert (len(first.pending), first.done) == (4, ())
    write_losses([first.pending[1]], first.entry, settings)
    second = plan(settings)
    assert second.done == (first.pending[1],)
    assert set(second.cells) == set(first.pending)


@pytest.mark.usefixtures("corpus")
def test_another_protocol_and_another_text_make_other_cells(
    settings: Settings, seal: Sealer
) -> None:
    paths = {cell.path for cell in plan(settings).cells}
    assert not paths & {cell.path for cell in plan(settings, protocol="disjoint-512").cells}
    seal("b", "2024-02", words="other words, ")
    assert len(paths & {cell.path for cell in plan(settings).cells}) == 3


@pytest.mark.usefixtures("corpus")
def test_names_that_are_unknown_and_models_that_cannot(settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="unknown model"):
        plan(settings, model="nope")
    with pytest.raises(UnknownName, match="unknown protocol"):
        plan(settings, protocol="nope")
    [refused] = plan(settings, protocol="uncheatable").refused
    assert "defined on a model's tokens" in refused
    with pytest.raises(ModelLoadError, match=r"has no config\.json"):
        plan(settings, model=str(tmp_path))


@pytest.mark.usefixtures("corpus")
def test_losses_are_of_the_schema_and_of_every_document(settings: Settings, store: Store) -> None:
    the_plan = plan(settings)
    cell = the_plan.pending[0]
    write_losses([cell], the_plan.entry, settings)
    table = pq.read_table(store.open(cell.path))
    assert table.schema.equals(LOSSES)
    assert set(table["model"].to_pylist()) == {"control:zstd"}
    [seal] = select_sealed(store, ["a"], [JANUARY])
    assert table["num_bytes"].to_pylist() == [seal.num_bytes // 3] * 3
    assert len(set(table["document_id"].to_pylist())) == seal.num_documents


@pytest.mark.usefixtures("corpus")
def test_a_partition_sealed_anew_is_not_scored_under_its_old_name(
    settings: Settings, store: Store, seal: Sealer
) -> None:
    the_plan = plan(settings)
    [old] = [cell for cell in the_plan.pending if cell.partition.source == "b"]
    seal("b", "2024-02", words="other words, ")
    with pytest.raises(StorageError, match="b 2024-02 was sealed anew meanwhile; score it again"):
        write_losses([old], the_plan.entry, settings)
    assert store.list("losses/**/*.parquet") == []


@pytest.mark.usefixtures("corpus")
def test_a_damaged_partition_leaves_no_losses(settings: Settings, store: Store) -> None:
    the_plan = plan(settings)
    [part] = select_sealed(store, ["b"], None)[0].parts
    store.write_bytes(part, store.read_bytes(part)[:-100])
    [cell] = [cell for cell in the_plan.pending if cell.partition.source == "b"]
    with pytest.raises(StorageError, match="is damaged"):
        write_losses([cell], the_plan.entry, settings)
    assert store.list("losses/**") == [] or not store.exists(cell.path)
    assert [path for path in Path(settings.home).rglob(".tmp-*")] == []


def test_one_model_is_held_at_a_time(settings: Settings) -> None:
    loaded = _LoadedModel()
    zstd, gzip = (find_model(f"control:{name}", settings) for name in ("zstd", "gzip"))
    with loaded.hold(zstd, settings) as first:
        pass
    with loaded.hold(zstd, settings) as again:
        assert again is first
    with loaded.hold(gzip, settings) as other:
        assert other.name == "control:gzip"
    with loaded.hold(zstd, settings) as anew:
        assert anew is not first


@pytest.mark.usefixtures("corpus")
def test_nothing_is_loaded_where_nothing_is_pending(settings: Settings, tmp_path: Path) -> None:
    broken = ModelEntry(name="broken", location=str(tmp_path / "no such folder"))
    cells = plan(settings).cells
    assert cells
    load_model(ScoringPlan(broken, "default", pending=(), done=cells), settings)
    with pytest.raises(ModelLoadError, match="no such folder"):
        load_model(ScoringPlan(broken, "default", pending=cells, done=()), settings)
