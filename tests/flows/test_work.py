"""The flow of a worker, in this process."""

import time
from collections.abc import Callable

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName
from prefect.client.schemas.objects import State

from core.cells.failures import read_failures
from core.corpus.partition import Seal
from core.errors import OrchestrationError
from core.settings import Settings
from core.storage.store import Store
from flows.work import compute, work
from instruments.losses import scoring_request
from instruments.pools import list_models_of
from models.catalogue import ModelEntry, add_model

pytestmark = pytest.mark.usefixtures("prefect_api")


@pytest.fixture
def used(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr("flows.work.worker_settings", lambda: settings)
    return settings


def task_runs(name: str, num_expected: int) -> list[str]:
    """Return the names of the completed task runs of a flow run; the server learns them late."""
    of = FlowRunFilter(name=FlowRunFilterName(any_=[name]))
    deadline = time.monotonic() + 1200
    with get_client(sync_client=True) as client:
        while True:
            runs = client.read_task_runs(flow_run_filter=of)
            names = sorted(run.name for run in runs if run.state and run.state.is_completed())
            if len(names) >= num_expected or time.monotonic() > deadline:
                return names
            time.sleep(0.1)


def test_each_cell_is_a_task_run_and_those_that_are_done_are_none(
    used: Settings, seal: Callable[..., Seal]
) -> None:
    for month in ("2024-01", "2024-02", "2024-03"):
        seal("notes", month)

    def score(name: str) -> State[str]:
        named = work.with_options(flow_run_name=name)
        state: State[str] = named(models=["control:gzip"], return_state=True)
        return state

    assert score("first").message == "3 cells complete, 0 items"
    assert task_runs("first", 3) == [
        f"score control:gzip on notes 2024-0{month} under default" for month in (1, 2, 3)
    ]
    assert score("again").message == "0 cells complete, 0 items"
    assert task_runs("again", 0) == []


def test_a_model_that_cannot_be_used_costs_no_other_model(
    used: Settings, seal: Callable[..., Seal]
) -> None:
    seal("notes", "2024-01")
    gone = ModelEntry(name="gone", location="/no/such/model")
    add_model(gone, used)
    state = work(models=["gone", "control:gzip"], run="monthly-1", return_state=True)
    assert state.name == "Completed (partial)"
    assert state.message and state.message.startswith("1 hole:\nscore gone: ")
    store = Store(used.home)
    assert len(store.list("losses/*/*/*/*.parquet")) == 1
    [failure] = read_failures(store, "losses").values()
    assert failure.run == "monthly-1"


def test_a_cluster_without_the_extra_is_refused(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.work.import_parts", lambda part: ())  # as without extras/ray
    request = scoring_request(["control:gzip"], None, None, ["default"], settings)
    there = settings.model_copy(update={"ray_address": "auto"})
    with pytest.raises(OrchestrationError, match="extras/ray is missing"):
        compute(request, "score", None, None, there)


def test_a_pool_has_the_models_that_fit_it(used: Settings) -> None:
    served = ModelEntry("served", "api", location="http://127.0.0.1:1", served_name="a/b")
    add_model(served, used)
    chosen = used.model_copy(update={"models": ("served", "control:gzip", "gpt2")})
    assert list_models_of("gpu", chosen) == ["served", "control:gzip", "gpt2"]
    assert list_models_of("gpu", chosen, is_asked=True) == ["gpt2"]
    assert list_models_of("api", chosen, is_asked=True) == ["served"]
    assert list_models_of("gpu-all", chosen) == []
