import datetime as dt
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterName
from prefect.flow_engine import run_flow
from prefect.states import Scheduled

from core.corpus.partition import Seal
from core.errors import FutureMonth, UnknownName
from core.month import Month
from core.run_record import Outcome, list_runs
from core.settings import Settings
from core.storage.store import Store
from flows.crawl import crawl
from flows.monthly import monthly
from flows.report import report
from flows.score import ScoreOutcome, score
from instruments.running.run_options import RunOptions
from simulator.server import Fault, Web, serve
from simulator.world import World
from tasks.prefect.storage_keys import using
from tests.flows.support.deployed import begin_run
from warehouse.read.query import query

SOURCES = ["arxiv", "wikipedia_new"]
MODELS = ["control:gzip", "control:zstd"]


pytestmark = pytest.mark.usefixtures("prefect_api")


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(0, Month("2024-01"), Month("2024-03"), stories_per_month=6)) as web:
        yield web


@pytest.fixture
def simulated(settings: Settings, web: Web) -> Iterator[Settings]:
    simulated = settings.model_copy(update={"sites": web.urls})
    with using(simulated):
        yield simulated
    web.faults.clear()


def test_a_failing_source_is_a_hole_that_the_next_run_fills(
    simulated: Settings, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Changed, not busy: nothing is retried, so the test need not wait.
    for key in ("arxiv", "arxiv_oai"):  # the list, and its fallback
        web.faults.append(Fault("status", key, "/(api/query|oai)", 99, 200, body=b"<html/>"))
    summary = monthly(month="2024-01", sources=SOURCES, models=["control:zstd"])
    web.faults.clear()
    crawls = [hole for hole in summary.holes if hole.startswith("crawl")]
    assert [hole.partition(": ")[0] for hole in crawls] == ["crawl arxiv 2024-01"]
    assert str(summary).startswith("partial, ")
    assert query(simulated, "select distinct source from monthly_loss").to_pylist() == [
        {"source": "wikipedia_new"}
    ]
    [record] = list_runs(Store(simulated.home))
    result = record.result()
    assert result and result.holes == tuple(summary.holes)
    assert (result.partitions, result.cells, result.report) == (1, 1, summary.report)
    again = monthly(month="2024-01", sources=SOURCES, models=["control:zstd"])
    assert (again.cells, again.holes) == (1, [])
    store = Store(simulated.home)
    written = store.list_stamped("warehouse.duckdb") | store.list_stamped("report/**")
    monkeypatch.setattr("flows.run.check_numerics", lambda models, _: list(models))
    idle = monthly(month="2024-01", sources=SOURCES, models=["control:zstd"])
    assert (idle.cells, idle.holes, idle.report) == (0, [], again.report)
    assert store.list_stamped("warehouse.duckdb") | store.list_stamped("report/**") == written


def test_stages_by_hand_end_in_states_that_list_holes(simulated: Settings, web: Web) -> None:
    models = ("control:zstd", "/no/such/model")
    record = begin_run(Store(simulated.home), "by hand", ["arxiv"], models)
    crawling: dict[str, Any] = {"source": "arxiv", "first": "2024-01", "last": "2024-02"}
    for key in ("arxiv", "arxiv_oai"):  # the list, and its fallback
        web.faults.append(Fault("status", key, "/(api/query|oai)", 99, 200, body=b"<html/>"))
    state = crawl(**crawling, return_state=True)
    web.faults.clear()
    assert (state.name, state.is_completed()) == ("Completed (partial)", True)
    assert state.message and state.message.startswith("2 holes:\ncrawl arxiv 2024-01: ")
    assert crawl(**crawling, run="by hand") == Outcome(done=2)
    for _ in (1, 2):  # what has landed counts, whichever run has landed it
        for model in models:
            score(model, run="by hand")
        outcomes = record.outcomes("score")
        assert (outcomes["control:zstd"].done, outcomes["control:zstd"].holes) == (2, ())
    assert record.missing("score") == []
    summary = report(run="by hand")
    [hole] = summary.holes
    assert (summary.partitions, summary.cells) == (2, 2)
    assert hole.startswith("score /no/such/model: ")
    assert record.result() is not None


def test_wrong_requests_start_nothing(simulated: Settings) -> None:
    with pytest.raises(UnknownName, match="nosuch"):
        monthly(month="2024-01", sources=["nosuch"])
    with pytest.raises(UnknownName, match="nosuch"):
        monthly(month="2024-01", sources=SOURCES, models=["nosuch"])
    with pytest.raises(FutureMonth):
        monthly(month="2999-01")
    assert Store(simulated.home).list("*") == []


def test_cells_that_are_done_are_skipped_without_a_task_run_each(
    simulated: Settings, seal: Callable[..., Seal]
) -> None:
    for month in ("2024-01", "2024-02", "2024-03"):
        seal("notes", month)

    def score_as(name: str) -> tuple[ScoreOutcome, list[str]]:
        state = score.with_options(flow_run_name=name)("control:gzip", return_state=True)
        deadline = time.monotonic() + 60
        while True:
            runs = client.read_task_runs(
                flow_run_filter=FlowRunFilter(name=FlowRunFilterName(any_=[name]))
            )
            names = sorted(run.name for run in runs if run.state and run.state.is_completed())
            if any("publish" in each for each in names) or time.monotonic() > deadline:
                return state.result(), names
            time.sleep(0.1)

    with get_client(sync_client=True) as client:
        outcome, names = score_as("first")
        assert outcome.landed == 3
        assert [name for name in names if name.startswith("score")] == [
            f"score control:gzip on notes 2024-0{month} under default" for month in (1, 2, 3)
        ]
        outcome, names = score_as("again")
        assert (outcome.landed, outcome.holes) == (0, [])
        assert not [name for name in names if name.startswith("score")]


def test_a_run_that_is_late_does_the_month_of_its_schedule(simulated: Settings) -> None:
    scheduled = dt.datetime(2024, 3, 3, 3, tzinfo=dt.UTC)
    with get_client(sync_client=True) as client:
        runs = []
        for month in (0, 1):
            at = scheduled.replace(month=scheduled.month + month)
            run = client.create_flow_run(
                monthly,
                parameters={"sources": SOURCES[:1], "models": ["control:gzip"]},
                state=Scheduled(scheduled_time=at),
            )
            run_flow(monthly, flow_run=run, parameters=run.parameters)
            runs.append(client.read_flow_run(run.id))
    assert [run.name for run in runs] == ["monthly 2024-02", "monthly 2024-03"]
    assert [run.state.message.count("\n") for run in runs if run.state] == [0, 0]
    months = [record.request().months for record in list_runs(Store(simulated.home))]
    assert sorted(months) == [("2024-02",), ("2024-03",)]


def test_a_scheduled_run_of_half_months_does_the_last_one(simulated: Settings) -> None:
    at = dt.datetime(2024, 2, 24, 3, tzinfo=dt.UTC)
    given = {"sources": ["arxiv:half-month"], "models": ["control:gzip"]}
    with get_client(sync_client=True) as client:
        run = client.create_flow_run(monthly, parameters=given, state=Scheduled(scheduled_time=at))
        run_flow(monthly, flow_run=run, parameters=run.parameters)
        assert client.read_flow_run(run.id).name == "monthly 2024-02a"
    rows = query(simulated, "select source, month from period_loss").to_pylist()
    assert rows == [{"source": "arxiv:half-month", "month": dt.date(2024, 2, 1)}]


def test_options_reach_every_part_of_a_run(simulated: Settings) -> None:
    options = RunOptions(protocol="disjoint-512", max_document_bytes=200)
    chosen = {"sources": SOURCES[:1], "models": ["control:gzip"]}
    summary = monthly(month="2024-01", options=options, **chosen)
    [record] = list_runs(Store(simulated.home))
    assert record.request().options == options.given()
    # The parts of a deployed run read the options from the record.
    outcome = crawl(SOURCES[0], "2024-02", run=record.run)
    for hole in (summary.holes[0], outcome.holes[0]):
        assert "'too_long': 6" in hole
