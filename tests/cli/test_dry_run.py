import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterKey

from core.month import Month
from core.progress import duration
from core.settings import Settings
from core.storage.store import Store
from flows.backfill import backfill
from instruments.planning import check_request
from instruments.running.run_plan import RunPlan, plan_run, spans
from simulator.server import Web
from tasks.prefect.storage_keys import using
from tests.commands import Ran

SOURCES, MODELS = ["arxiv", "wikipedia_new"], ["control:gzip", "control:zstd"]
MONTHS = [Month("2024-01"), Month("2024-02")]
OPTIONS = ["--from", "2024-01", "--to", "2024-02", *(f"-s{each}" for each in SOURCES)]


pytestmark = pytest.mark.usefixtures("prefect_api")


@pytest.fixture
def simulated(settings: Settings, web: Web) -> Iterator[Settings]:
    simulated = settings.model_copy(update={"sites": web.urls})
    with using(simulated):
        yield simulated


def test_the_plan_is_what_the_run_does(simulated: Settings) -> None:
    store = Store(simulated.home)
    former = backfill("2024-01", "2024-01", SOURCES[:1], MODELS[:1])
    assert former.cells == 1
    plan = plan_run(check_request(MONTHS, SOURCES, MODELS, simulated), simulated)
    gzip, zstd = plan.models
    assert gzip.cell_s is not None and gzip.seconds == gzip.num_to_score * gzip.cell_s
    assert zstd.seconds is None and "not known: control:zstd" in plan.total()
    known = set(store.list("losses/**/*.parquet"))
    summary = backfill("2024-01", "2024-02", SOURCES, MODELS)
    assert summary.holes == []
    assert planned_partitions(plan) == set(store.list("corpus/*/*/manifest.json"))
    done = {cell.path for model in plan.models for cell in model.done}
    assert done == known
    new = {folder(path) for path in set(store.list("losses/**/*.parquet")) - known}
    assert planned_cells(plan) == new
    assert summary.cells == sum(model.num_to_score for model in plan.models) == 7
    again = plan_run(plan.request, simulated)
    assert {each.state for each in again.partitions} == {"sealed"}
    assert [model.num_to_score for model in again.models] == [0, 0]
    assert [model.seconds for model in again.models] == [0.0, 0.0]


def planned_partitions(plan: RunPlan) -> set[str]:
    return {f"{each.partition.path}/manifest.json" for each in plan.partitions}


def planned_cells(plan: RunPlan) -> set[str]:
    return {
        f"losses/model={model.asked.replace(':', '%3A')}/{partition.path.removeprefix('corpus/')}"
        for model in plan.models
        for partition in [*(cell.partition for cell in model.pending), *model.new]
    }


def folder(path: str) -> str:
    return path.rpartition("/")[0]


def test_a_dry_run_on_a_server_tells_by_message_and_artifact(simulated: Settings) -> None:
    arguments: dict[str, Any] = {"sources": SOURCES, "models": MODELS}
    state = backfill("2024-01", "2024-02", dry_run=True, return_state=True, **arguments)
    assert state.is_completed() and state.name == "Completed (dry run)"
    assert state.message is not None and "4 partitions to crawl, 8 cells to score" in state.message
    assert not Path(simulated.home).exists()
    with get_client(sync_client=True) as client:
        (artifact,) = client.read_artifacts(
            artifact_filter=ArtifactFilter(key=ArtifactFilterKey(any_=["backfill-dry-run"]))
        )
    assert "| arxiv | to crawl | 2024-01 … 2024-02 | 2 |" in str(artifact.data)


def test_the_command_prints_the_plan_and_writes_nothing(
    tidemark: Callable[..., Ran], sites: Web, home: Path
) -> None:
    asked = len(sites.requests)
    ran = tidemark("backfill", *OPTIONS, "-mcontrol:zstd", "--dry-run")
    assert ran.code == 0 and ran.err == ""
    assert re.search(
        r"total: 4 partitions to crawl, 4 cells to score \(0 done\); time to score not known",
        ran.out,
    )
    assert re.search(r"arxiv +│ to crawl +│ 2024-01 … 2024-02 +│ 2 ", ran.out)
    assert len(sites.requests) == asked and not home.exists()


def test_months_are_written_as_spans() -> None:
    months = list(map(Month, ["2023-12", "2024-01", "2024-02", "2024-05", "2024-07", "2024-08"]))
    assert spans(months) == "2023-12 … 2024-02, 2024-05, 2024-07 … 2024-08"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (99, "99 s"), (200, "3 min 20 s"), (3599, "59 min 59 s"), (18_600, "5 h 10 min"),
     (187_200, "2 d 4 h"), (None, "not known")],
)  # fmt: skip
def test_times_are_said_as_people_do(seconds: float | None, said: str) -> None:
    assert duration(seconds) == said
