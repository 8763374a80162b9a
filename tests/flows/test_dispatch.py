import datetime as dt
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from prefect import flow
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.runtime import flow_run
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Crashed, Pending, Running

from core.corpus.partition import Seal
from core.gpus import Gpu, host_of
from core.run_record import Outcome, RunRecord, RunRequest
from core.settings import Settings
from core.storage.store import Store
from deployments.deploy import deploy
from flows.dispatch import Coordinator
from models.catalogue import ModelEntry, add_model
from reports.site.build import INDEX, ROOT
from reports.site.history import STATE
from tasks.prefect.tracing import name_of_run
from tests.flows.support.deployed import api, begin_run, children_of, parts_of
from tests.servers import PrefectServer
from warehouse.land.losses import open_warehouse
from warehouse.read.publish import publish


@pytest.fixture(scope="module")
def client(prefect_server: PrefectServer) -> Iterator[SyncPrefectClient]:
    with api(prefect_server) as client:
        deploy(prefect_server.url)
        client.delete_deployment(client.read_deployment_by_name("crawl/govuk").id)
        yield client


@pytest.fixture
def quick(settings: Settings) -> Settings:
    return settings.model_copy(update={"watch_interval_s": 0.02})


@pytest.fixture
def begin(store: Store) -> Callable[..., RunRecord]:
    return lambda run, *sources: begin_run(store, run, sources)


@flow(name="watching")
def look(record: RunRecord, settings: Settings, times: int = 1, pause_s: float = 0.0) -> UUID:
    coordinator = Coordinator(record, settings)
    for number in range(times):
        time.sleep(pause_s if number else 0)
        coordinator.look()
    return UUID(flow_run.id)


def crash(client: SyncPrefectClient, record: RunRecord) -> list[FlowRun]:
    runs = parts_of(client, record.run)
    for run in runs:
        assert run.state
        if not run.state.is_final():
            client.set_flow_run_state(run.id, Crashed(message="killed"), force=True)
    return runs


def test_a_part_that_crashes_is_started_again_and_given_up_after_three(
    client: SyncPrefectClient, begin: Callable[..., RunRecord], quick: Settings
) -> None:
    record = begin("crashing", "arxiv")
    for number in (1, 2, 3):
        look(record, quick, times=number + 1)
        runs = crash(client, record)
        assert len(runs) == number
    assert all("tidemark-run:crashing" in run.tags for run in runs)
    assert runs[0].parameters == {
        "source": "arxiv", "first": "2024-01", "last": "2024-02", "run": "crashing",
    }  # fmt: skip
    assert record.missing("crawl") == ["arxiv"]
    look(record, quick, times=4)
    [hole] = record.outcomes("crawl")["arxiv"].holes
    assert hole.startswith("crawl arxiv: 3 flow runs have not done it")
    assert hole.endswith("Crashed: killed")
    assert len(parts_of(client, record.run)) == 3


def test_stages_follow_each_other_as_child_runs(
    client: SyncPrefectClient, begin: Callable[..., RunRecord], quick: Settings
) -> None:
    record = begin("staged", "arxiv", "wikipedia_new")
    record.settle("crawl", "arxiv", Outcome(done=2))
    parent = client.read_flow_run(look(record, quick, times=2))
    assert [run.parameters["source"] for run in children_of(client, parent)] == ["wikipedia_new"]
    record.settle("crawl", "wikipedia_new", Outcome(done=2))
    parent = client.read_flow_run(look(record, quick))
    [score] = children_of(client, parent)
    assert score.parameters == {"model": "control:zstd", "run": "staged"}
    record.settle("score", "control:zstd", Outcome(done=4))
    parent = client.read_flow_run(look(record, quick))
    assert [run.parameters for run in children_of(client, parent)] == [{"run": "staged"}]
    record.finish("page")
    parent = client.read_flow_run(look(record, quick))
    assert children_of(client, parent) == []


def test_a_run_with_nothing_new_needs_no_report(
    client: SyncPrefectClient, begin: Callable[..., RunRecord], quick: Settings
) -> None:
    with open_warehouse(quick) as warehouse:
        warehouse.upsert_sources([])
    time.sleep(0.02)  # clocks of files are coarse
    publish(quick)
    for run, site in (("due", False), ("idle", True)):
        if site:
            Store(quick.home).write_bytes(f"{ROOT}/{STATE}", b"{}")
        record = begin(run, "arxiv")
        record.settle("crawl", "arxiv", Outcome(done=2))
        record.settle("score", "control:zstd", Outcome(done=4, holes=("a cell",)))
        children = children_of(client, client.read_flow_run(look(record, quick)))
        assert len(children) == (not site)
    result = record.result()
    assert result is not None
    assert (result.cells, result.holes) == (4, ("a cell",))
    assert result.report == Store(quick.home).url(INDEX)


def test_runs_that_were_scheduled_at_once_have_names_of_their_own(store: Store) -> None:
    # Of version 7, whose first half is the time.
    ids = [f"01a20365-d4a6-7{n}1b-9f{n}0-5a2b7c{n}d00{n}e" for n in range(3)]
    assert len({name_of_run("monthly", each) for each in ids}) == 3


def test_a_second_coordinator_starts_nothing_twice(
    client: SyncPrefectClient, begin: Callable[..., RunRecord], quick: Settings
) -> None:
    record = begin("doubled", "arxiv")
    look(record, quick)
    look(record, quick, times=2)
    assert len(parts_of(client, record.run)) == 1


def test_a_source_that_is_not_deployed_is_given_up(
    client: SyncPrefectClient, begin: Callable[..., RunRecord], quick: Settings
) -> None:
    record = begin("undeployed", "arxiv", "govuk")
    look(record, quick)
    [hole] = record.outcomes("crawl")["govuk"].holes
    assert hole == "crawl govuk: there is no deployment crawl/govuk; run `tidemark deploy`"
    assert record.missing("crawl") == ["arxiv"]


def test_a_sealed_source_needs_no_child_run(
    client: SyncPrefectClient, begin: Callable[..., RunRecord], quick: Settings, seal: Any
) -> None:
    record = begin("sealed", "arxiv", "wikipedia_new")
    for month in record.request().months:
        seal("wikipedia_new", month)
    seal("arxiv", "2024-01")
    parent = client.read_flow_run(look(record, quick))
    [child] = children_of(client, parent)
    assert (child.name, child.parameters["source"]) == ("crawl arxiv", "arxiv")
    assert child.parent_task_run_id
    assert client.read_task_run(child.parent_task_run_id).name == "crawl arxiv"
    assert record.missing("crawl") == ["arxiv"]
    assert record.outcomes("crawl")["wikipedia_new"] == Outcome(done=2)


def test_runs_that_no_worker_takes_or_begins(
    client: SyncPrefectClient,
    begin: Callable[..., RunRecord],
    quick: Settings,
    caplog: pytest.LogCaptureFixture,
) -> None:
    record = begin("untaken", "arxiv")
    look(record, quick, times=3, pause_s=0.7)
    warnings = [line for line in caplog.messages if "no worker of the pool crawl" in line]
    assert len(warnings) == 1
    [run] = parts_of(client, record.run)
    client.set_flow_run_state(run.id, Pending(), force=True)
    look(record, quick, times=4, pause_s=1.3)
    states = [each.state for each in parts_of(client, record.run) if each.state]
    assert sorted(state.name for state in states) == ["Crashed", "Scheduled"]
    assert any(line.startswith("ended crawl arxiv: Crashed. a worker") for line in caplog.messages)
    assert "left: 1 source to crawl, 1 model to score" in caplog.messages


def test_models_go_to_the_pools_of_their_size_and_slow_ones_get_further_runs(
    client: SyncPrefectClient, store: Store, quick: Settings, seal: Callable[..., Seal]
) -> None:
    for name, parameters in (("big", 70), ("slow", 30), ("small", 1)):
        entry = ModelEntry(name=name, location=f"a/{name}", parameters=parameters * 10**9)
        add_model(entry, quick)
    for source in ("arxiv", "govuk"):
        seal(source, "2024-01")
    gpus = [Gpu(number=n, uuid=str(n), name="", memory_bytes=80 * 2**30) for n in range(2)]
    record = begin_run(store, "pools", ["arxiv", "govuk"], ["small", "slow", "big", "control:xz"])
    for source in ("arxiv", "govuk"):
        record.settle("crawl", source, Outcome(done=1))

    def started() -> list[tuple[str, str | None, bool]]:
        runs = sorted(parts_of(client, "pools"), key=lambda run: str(run.expected_start_time))
        facts = [(run.parameters, run.work_pool_name) for run in runs]
        return [(given["model"], pool, given.get("helps", False)) for given, pool in facts]

    with host_of(gpus, "auto").announced(store):
        look(record, quick, times=2)
        assert started() == [("big", "gpu-all", False)]
        [big] = parts_of(client, "pools")
        client.set_flow_run_state(big.id, Running(), force=True)
        look(record, quick, times=2)
        assert started() == [
            ("big", "gpu-all", False),
            ("slow", "gpu", False),
            ("slow", "gpu", True),
            ("small", "gpu", False),
            ("control:xz", "gpu", False),
        ]
        record.settle("score", "slow", Outcome(done=2))
        look(record, quick, times=1)
    [idle] = [run for run in parts_of(client, "pools") if run.parameters.get("helps")]
    assert idle.state and idle.state.is_cancelled(), "its model is done"


def test_models_that_answer_questions_have_child_runs_that_the_server_accepts(
    client: SyncPrefectClient, store: Store, quick: Settings
) -> None:
    given = {"first": "2024-01", "last": "2024-01", "sources": None, "protocol": None}
    now = dt.datetime.now(dt.UTC)
    for stage, parameters in (("answer", given), ("solve", {"puzzles": None})):
        record = RunRecord(store, stage)
        request = {"run": stage, "started_at": now, "months": (), "sources": (), "protocol": ""}
        asked = {**parameters, "options": {}}
        record.begin(
            RunRequest(**request, models=("gpt2",), stages=(stage,), parameters=asked)  # type: ignore[arg-type]
        )
        look(record, quick, times=2)
        [run] = parts_of(client, stage)
        assert run.work_pool_name == "gpu"
        assert run.parameters == {**asked, "models": ["gpt2"], "run": stage}
        record.settle(stage, "gpt2", Outcome(done=1, items=7))  # type: ignore[arg-type]
        look(record, quick)
        assert record.finish("").cells == 1


def test_models_behind_servers_share_one_run_that_is_given_up_for_all(
    client: SyncPrefectClient, store: Store, quick: Settings
) -> None:
    served = {"kind": "api", "location": "http://127.0.0.1:1", "served_name": "m"}
    for name in ("first", "second"):
        add_model(ModelEntry(name=name, **served), quick)  # type: ignore[arg-type]
    record, given = RunRecord(store, "apis"), {"puzzles": None, "options": {}}
    record.begin(
        RunRequest(
            run="apis", started_at=dt.datetime.now(dt.UTC), months=(), sources=(), protocol="",
            models=("first", "gpt2", "second"), stages=("solve",), parameters=given,
        )
    )  # fmt: skip
    look(record, quick, times=2)
    runs = {run.work_pool_name: run for run in parts_of(client, "apis")}
    models = {pool: run.parameters["models"] for pool, run in runs.items()}
    assert models == {"api": ["first", "second"], "gpu": ["gpt2"]}
    record.settle("solve", "first", Outcome(done=1))
    record.settle("solve", "gpt2", Outcome(done=1))
    look(record, quick)
    assert len(parts_of(client, "apis")) == 2, "the same run asks the second model"
    for number in (1, 2, 3):
        look(record, quick, times=number + 1)
        crash(client, record)
    look(record, quick, times=5)
    outcomes = record.outcomes("solve")
    assert outcomes["first"].holes == (), "what was done stays"
    [hole] = outcomes["second"].holes
    assert hole.startswith("solve first, second: 3 flow runs have not done it")


@flow(name="waiting")
def wait(record: RunRecord, settings: Settings, server: PrefectServer) -> str:
    def come_back() -> None:
        server.start()
        record.finish("page")

    coordinator = Coordinator(record, settings)
    coordinator.look()
    server.stop(signal.SIGKILL)
    threading.Timer(1.0, come_back).start()
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 0}):  # else Prefect waits before us
        return coordinator.wait().report


def test_a_server_that_is_away_is_waited_for(
    client: SyncPrefectClient,
    begin: Callable[..., RunRecord],
    settings: Settings,
    prefect_server: PrefectServer,
    caplog: pytest.LogCaptureFixture,
) -> None:
    record = begin("waiting", "arxiv")
    patient = settings.model_copy(update={"watch_interval_s": 0.5})
    assert wait(record, patient, prefect_server) == "page"
    assert any(line.startswith("waiting, for ") for line in caplog.messages)
