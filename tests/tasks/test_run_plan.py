"""What a run would do, and what that takes."""

from __future__ import annotations

import datetime as dt
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.corpus import Seal
from core.month import Month, month_range
from core.settings import Settings
from core.storage import Store
from tasks import estimate
from tasks.estimate import estimate_run, measure_slowness
from tasks.planning import Request, check_request
from tasks.run_plan import RunPlan, plan_run

MONTHS = tuple(month_range(Month("2024-01"), Month("2024-03")))


def plan(settings: Settings, *models: str, months: tuple[Month, ...] = MONTHS) -> RunPlan:
    return plan_run(Request(months, ("arxiv",), models or ("control:zstd",)), settings)


def change(seal: Seal, store: Store, **keys: Any) -> None:
    path = f"{seal.folder}/manifest.json"
    manifest = {**json.loads(store.read_bytes(path)), **keys}
    store.write_bytes(path, json.dumps(manifest).encode())


def test_partitions_are_told_apart(
    settings: Settings, store: Store, seal: Callable[..., Seal]
) -> None:
    seal("arxiv", "2024-01")
    change(
        seal("arxiv", "2024-02"), store, status="partial", failed={"http_5xx": 3}, ended_early=""
    )
    months = (Month("1990-01"), *MONTHS)
    found = {
        str(each.partition.month): (each.state, each.why)
        for each in plan(settings, months=months).of_source("arxiv")
    }
    assert found["2024-01"] == ("sealed", "")
    assert found["2024-02"] == ("partial", "failed: 3 http_5xx")
    assert found["2024-03"] == ("to crawl", "")
    assert found["1990-01"][0] == "lacking" and "begins with" in found["1990-01"][1]


def test_cells_of_what_is_not_sealed_yet_are_to_be_scored(
    settings: Settings, seal: Callable[..., Seal]
) -> None:
    seal("arxiv", "2024-01")
    (model,) = plan(settings).models
    assert (len(model.done), len(model.pending), len(model.new)) == (0, 1, 2)
    future = dt.datetime(2999, 1, 1, tzinfo=dt.UTC)
    assert len(plan(settings.model_copy(update={"corpus_as_of": future})).models[0].new) == 2
    past = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    assert plan(settings.model_copy(update={"corpus_as_of": past})).models[0].num_cells == 0


def test_a_model_that_is_not_here_is_named_and_not_fetched(
    settings: Settings, seal: Callable[..., Seal], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    seal("arxiv", "2024-01")
    request = check_request(list(MONTHS), ["arxiv"], ["somebody/something"], settings)
    found = plan_run(request, settings)
    assert "not in the local cache" in found.models[0].problem
    assert found.models[0].num_to_score == 3
    unknown = estimate_run(found, settings).unknown
    assert [(step.name, step.model) for step in unknown] == [("score", "somebody/something")]


def test_a_crawl_is_estimated_from_former_ones_of_its_source(
    settings: Settings,
    store: Store,
    seal: Callable[..., Seal],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What is assumed beside them must not depend on what else this machine does.
    monkeypatch.setattr(estimate, "measure_slowness", lambda: 1.0)
    (unknown,) = (s for s in estimate_run(plan(settings), settings).steps if s.name == "crawl")
    assert unknown.basis.startswith("assumed: ") and unknown.seconds
    urls = {"arxiv": "https://a.example", "arxiv_oai": "https://b.example"}
    here = settings.model_copy(update={"sites": urls, "request_interval_s": 2.0})
    facts = {"kind": "crawl", "limit": None, "started_at": "2024-02-03T00:00:00+00:00"}
    requests = {"requests": 100, "cached": 0, "wait_ms": 150_000}
    sealed_at = "2024-02-03T00:05:00.500000+00:00"
    first = seal("arxiv", "2024-01")
    change(first, store, **facts, base_urls=urls, requests=requests, sealed_at=sealed_at)
    assert crawl_seconds(here) == pytest.approx(2 * 300, abs=3)  # as long as the first
    change(first, store, **facts, base_urls={}, requests=requests, sealed_at=sealed_at)
    assert crawl_seconds(here) == pytest.approx(2 * 200, abs=3)  # 100 requests at today's pace


def crawl_seconds(settings: Settings) -> float:
    steps = estimate_run(plan(settings), settings).steps
    return sum(step.seconds or 0 for step in steps if step.name == "crawl")


def test_a_slow_machine_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = estimate._loop
    before = measure_slowness()
    monkeypatch.setattr(estimate, "_loop", lambda: (loop(), time.sleep(0.5)))
    assert measure_slowness() > before + 2
