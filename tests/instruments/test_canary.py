import datetime as dt
import shutil

import pytest

from core.cells.canary import CanaryRecord, read_canary_records, write_canary_record
from core.errors import MalformedInput, ModelLoadError
from core.settings import Settings
from core.storage.store import Store
from instruments.canary import check_canary, find_drifts, is_canary_due, land_canary_runs
from models import canary
from models.canary import score_canary
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish
from warehouse.read.query import query

RUNS = "select dtype, drift, expected_nats from canary_runs order by run_at"


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(home=str(tmp_path), device="cpu", dtype="float32")


@pytest.mark.long
def test_the_known_loss_comes_out_in_float32_and_float64(settings):
    for dtype in ("float32", "float64"):
        loss = score_canary(settings.model_copy(update={"dtype": dtype}))
        assert loss.dtype == dtype
        assert loss.device.startswith("cpu: ")
        assert loss.nll_nats == pytest.approx(loss.expected_nats, rel=1e-7)
        assert loss.num_tokens == 10_494


@pytest.mark.long
def test_a_run_is_recorded_and_can_be_queried(settings):
    run = check_canary(settings)
    assert run.is_well
    assert not run.model_copy(update={"drift": float("nan")}).is_well
    publish(settings)
    [row] = query(settings, RUNS).to_pylist()
    assert (row["dtype"], row["drift"]) == ("float32", run.drift)
    shutil.rmtree(settings.scratch)  # the writer's database
    with open_warehouse(settings) as warehouse:
        land_canary_runs(warehouse, Store(settings.home))
    publish(settings)
    assert query(settings, RUNS).to_pylist() == [row]


@pytest.mark.long
def test_bfloat16_is_judged_by_its_first_run(settings):
    rounded = settings.model_copy(update={"dtype": "bfloat16"})
    assert score_canary(rounded).expected_nats is None
    assert [check_canary(rounded).drift for _ in range(2)] == [0.0, 0.0]


@pytest.mark.long
def test_other_arithmetic_is_a_drift(settings, monkeypatch):
    monkeypatch.setattr(canary, "_EXPECTED_NATS", canary._EXPECTED_NATS * (1 + 2e-6))
    run = check_canary(settings)
    assert not run.is_well
    assert "is off by -2.0e-06" in str(run)
    assert "torch 2" in str(run)


@pytest.mark.long
def test_it_is_due_until_it_has_run_with_these_libraries_in_this_dtype(settings):
    assert is_canary_due(settings)
    check_canary(settings)
    assert not is_canary_due(settings)
    assert is_canary_due(settings.model_copy(update={"dtype": "bfloat16"}))
    Store(settings.home).write_bytes("canary/x.json", b"{}")
    with pytest.raises(MalformedInput, match=r"canary/x\.json is not a run of the canary"):
        is_canary_due(settings)


def test_changed_files_are_another_canary(settings, tmp_path, monkeypatch):
    folder = shutil.copytree(canary._FOLDER, tmp_path / "canary_model")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-4] + b"\0\0\0\0")
    monkeypatch.setattr(canary, "_FOLDER", folder)
    with pytest.raises(ModelLoadError, match="the files have digest"):
        score_canary(settings)


def test_a_drift_on_a_machine_whose_clock_is_behind_is_found(store: Store) -> None:
    noon = dt.datetime(2024, 1, 1, 12, tzinfo=dt.UTC)
    for hour, drift in ((1, 1.0), (2, 0.0)):
        write_canary_record(store, _record(noon + dt.timedelta(hours=hour), drift))
    former = read_canary_records(store)
    assert find_drifts(store, former) == []
    write_canary_record(store, _record(noon, 1.0))
    assert [each.run_at for each in find_drifts(store, former)] == [noon]


def _record(run_at: dt.datetime, drift: float) -> CanaryRecord:
    return CanaryRecord(
        run_at=run_at, device="cpu", dtype="float32", versions={}, nll_nats=1.0 + drift,
        expected_nats=1.0, drift=drift, num_tokens=1,
    )  # fmt: skip
