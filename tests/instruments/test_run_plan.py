import datetime as dt
import json
from pathlib import Path
from typing import Any

import pytest

from core.cells.record import MAX_TIMED, median_seconds, read_cell_record
from core.corpus.partition import Seal
from core.month import Month, month_range
from core.settings import Settings
from core.storage.store import Store
from instruments.losses import plan_scoring, write_losses
from instruments.planning import Request, check_request
from instruments.running.run_plan import RunPlan, plan_run
from tests.seals import Sealer
from tests.warehouse.cells import RECORD

MONTHS = tuple(month_range(Month("2024-01"), Month("2024-03")))


def plan(settings: Settings, *models: str, months: tuple[Month, ...] = MONTHS) -> RunPlan:
    return plan_run(Request(months, ("arxiv",), models or ("control:zstd",)), settings)


def change(seal: Seal, store: Store, **keys: Any) -> None:
    path = f"{seal.folder}/manifest.json"
    manifest = {**json.loads(store.read_bytes(path)), **keys}
    store.write_bytes(path, json.dumps(manifest).encode())


def test_partitions_are_told_apart(settings: Settings, store: Store, seal: Sealer) -> None:
    seal("arxiv", "2024-01")
    facts = {"status": "partial", "failed": {"http_5xx": 3}, "ended_early": ""}
    change(seal("arxiv", "2024-02"), store, **facts)
    months = (Month("1990-01"), *MONTHS)
    found = {
        str(each.partition.month): (each.state, each.why)
        for each in plan(settings, months=months).partitions
    }
    assert found["2024-01"] == ("sealed", "")
    assert found["2024-02"] == ("partial", "failed: 3 http_5xx")
    assert found["2024-03"] == ("to crawl", "")
    assert found["1990-01"][0] == "lacking" and "begins with" in found["1990-01"][1]


def test_cells_of_what_is_not_sealed_yet_are_to_be_scored(settings: Settings, seal: Sealer) -> None:
    seal("arxiv", "2024-01")
    (model,) = plan(settings).models
    assert (len(model.done), len(model.pending), len(model.new)) == (0, 1, 2)
    future = dt.datetime(2999, 1, 1, tzinfo=dt.UTC)
    assert len(plan(settings.model_copy(update={"corpus_as_of": future})).models[0].new) == 2
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    assert plan(settings.model_copy(update={"corpus_as_of": past})).models[0].num_cells == 0


@pytest.mark.long
def test_a_model_that_is_not_here_is_named_and_not_fetched(
    settings: Settings, seal: Sealer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    seal("arxiv", "2024-01")
    request = check_request(list(MONTHS), ["arxiv"], ["somebody/something"], settings)
    found = plan_run(request, settings)
    [model] = found.models
    assert "not in the local cache" in model.problem
    assert (model.num_to_score, model.seconds) == (3, None)
    assert found.total().endswith("time to score not known")


def test_the_time_is_the_median_of_measured_cells_times_the_pending_ones(
    settings: Settings, store: Store, seal: Sealer
) -> None:
    for month in ("2023-10", "2023-11", "2023-12"):
        seal("other", month)
    seal("arxiv", "2024-01")
    scoring = plan_scoring("control:zstd", ["default"], ["other"], None, settings)
    write_losses(scoring.pending, scoring.entry, settings)
    for cell, seconds in zip(scoring.pending, (1.0, 2.0, 30.0), strict=True):
        record = read_cell_record(store, cell)
        assert record is not None
        changed = record.model_copy(update={"seconds": seconds})
        store.write_bytes(cell.record_path, changed.to_json())
    zstd, gzip = plan(settings, "control:zstd", "control:gzip").models
    assert (zstd.num_to_score, zstd.cell_s, zstd.seconds) == (3, 2.0, 6.0)
    assert (gzip.num_to_score, gzip.cell_s, gzip.seconds) == (3, None, None)


def test_a_sample_of_many_records_is_read(store: Store, settings: Settings) -> None:
    paths = [f"losses/{number:02}.json" for number in range(2 * MAX_TIMED)]
    for number, path in enumerate(paths):
        record = RECORD.model_copy(update={"seconds": float(number % 2)})
        store.write_bytes(path, record.to_json())
    assert median_seconds(store, paths) == 0.0  # every other one
    store.write_bytes("losses/broken.json", b"{")
    assert median_seconds(store, ["losses/broken.json", "losses/missing.json"]) is None
