"""Months on a real server with a worker of each pool."""

import datetime as dt
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun
from prefect.states import Scheduled

from core.month import Month
from core.settings import Settings
from core.storage.store import Store
from deployments.deploy import deploy
from instruments.running.run_options import RunOptions
from simulator.server import Fault, Web, serve
from simulator.world import World
from tests.conftest import WITHOUT_SERVICES, running
from tests.flows.support.deployed import api, children_of, ended, start, worker_environment
from tests.servers import PrefectServer
from tests.tiers import needs_extra
from warehouse.database.writer import connected
from warehouse.read.query import query

pytestmark = pytest.mark.timeout(3600)
SOURCES = ["arxiv", "wikipedia_new"]
MODELS = ["control:zstd", "control:gzip"]
JANUARY = {"month": "2024-01", "sources": SOURCES, "models": MODELS}


@pytest.fixture(scope="module")
def prefect_server(
    tmp_path_factory: pytest.TempPathFactory, prefect_template: Path
) -> Iterator[PrefectServer]:
    """A server of its own, for its workers take all runs."""
    folder = tmp_path_factory.mktemp("server")
    with running(folder, prefect_template, **WITHOUT_SERVICES) as server:
        yield server


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(0, Month("2024-01"), Month("2024-04"), stories_per_month=6)) as web:
        yield web


@pytest.fixture(scope="module")
def client(
    prefect_server: PrefectServer, web: Web, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SyncPrefectClient]:
    home = tmp_path_factory.mktemp("month")
    with connected(Settings(home=str(home))):
        pass  # a copy of an empty database, which a flow run would take ten seconds to make
    with api(prefect_server) as client, ExitStack() as stack:
        deploy(prefect_server.url)
        environment = worker_environment(home, web, every_s=2)
        for pool in ("crawl", "gpu"):
            stack.enter_context(prefect_server.worker(pool, **environment))
        client.home = home  # type: ignore[attr-defined]
        yield client


@pytest.fixture
def settings(client: SyncPrefectClient) -> Settings:
    home: Path = client.home  # type: ignore[attr-defined]
    return Settings(home=str(home))


def do(client: SyncPrefectClient, name: str, **parameters: Any) -> tuple[FlowRun, list[str]]:
    """Start a run; return it at its end, and the names of the flow runs that it started."""
    run = ended(client, start(name, **parameters))
    return run, [child.name for child in children_of(client, run)]


@needs_extra("arxiv")
def test_a_failing_source_is_a_hole(
    client: SyncPrefectClient, settings: Settings, web: Web
) -> None:
    # Changed, not busy: nothing is retried, so the test need not wait.
    for key in ("arxiv", "arxiv_oai"):  # the list, and its fallback
        web.faults.append(Fault("status", key, "/(api/query|oai)", 99, 200, body=b"<html/>"))
    run, children = do(client, "monthly/monthly", **JANUARY)
    web.faults.clear()
    assert run.state and run.state.name == "Completed (partial)"
    assert run.state.message and run.state.message.startswith("1 hole:\ncrawl arxiv 2024-01: ")
    rows = query(settings, "select source, model from monthly_loss order by all").to_pylist()
    assert [row["source"] for row in rows] == ["wikipedia_new"] * 2
    assert children and set(children) == {"score 2 models on gpu"}


@pytest.mark.slow  # tests/instruments/test_runs.py has it without a server
def test_the_next_run_fills_a_hole_and_one_more_does_nothing(
    client: SyncPrefectClient, settings: Settings
) -> None:
    run, children = do(client, "monthly/monthly", **JANUARY)
    assert run.state and run.state.name == "Completed", run.state
    assert children and set(children) == {"score 2 models on gpu"}

    store = Store(settings.home)
    written = store.list_stamped("warehouse.duckdb") | store.list_stamped("report/**")
    run, children = do(client, "monthly/monthly", **JANUARY)
    assert run.state and run.state.name == "Completed"
    assert run.state.message and ", 0 cells, report " in run.state.message
    assert children == [], "nothing is started for models that lack nothing"
    assert store.list_stamped("warehouse.duckdb") | store.list_stamped("report/**") == written


@pytest.mark.slow
def test_a_backfill_does_what_is_missing_with_its_options(
    client: SyncPrefectClient, settings: Settings
) -> None:
    options = RunOptions(protocol="own-context", max_document_bytes=200)
    run, children = do(
        client, "backfill/backfill", first="2024-02", last="2024-03", sources=SOURCES[:1],
        models=MODELS[:1], options=options.given(),
    )  # fmt: skip
    assert run.state and run.state.name == "Completed (partial)"
    assert run.state.message and run.state.message.count("'too_long': 6") == 2
    assert children, "workers look at all models"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deployment", "at", "given", "month"),
    [
        pytest.param(
            "monthly/monthly",
            (2024, 5, 3),
            {"sources": SOURCES[1:]},
            "2024-04",
            marks=pytest.mark.slow,
        ),
        ("monthly/monthly", (2024, 2, 24), {"sources": ["arxiv:half-month"]}, "2024-02a"),
    ],
)
def test_a_run_that_is_late_does_the_month_of_its_schedule(
    client: SyncPrefectClient,
    settings: Settings,
    deployment: str,
    at: tuple[int, int, int],
    given: dict[str, Any],
    month: str,
) -> None:
    found = client.read_deployment_by_name(deployment)
    run = client.create_flow_run_from_deployment(
        found.id,
        parameters={"models": MODELS[:1], **given},
        state=Scheduled(scheduled_time=dt.datetime(*at, tzinfo=dt.UTC)),
    )
    run = ended(client, run)
    assert run.name == f"monthly {month}"
    assert run.state and run.state.name == "Completed", run.state
    assert run.parameters["month"] == month, "it stays, if the run is started again"
    [source] = run.parameters["sources"]
    assert Store(settings.home).list(
        f"losses/*/source={source.replace(':', '%3A')}/month={month}/*"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"month": "2024-01", "sources": SOURCES, "models": ["nosuch"]}, "nosuch"),
        pytest.param({"month": "2024-01", "sources": ["nosuch"]}, "nosuch", marks=pytest.mark.slow),
        pytest.param({"month": "2999-01"}, "2999-01", marks=pytest.mark.slow),
    ],
)
def test_a_wrong_request_starts_nothing(
    client: SyncPrefectClient, given: dict[str, Any], message: str
) -> None:
    run = ended(client, start("monthly/monthly", **given))
    assert run.state and run.state.is_failed() and message in (run.state.message or "")
    assert children_of(client, run) == []


@pytest.mark.slow  # test_rounds.py and instruments/test_runs.py have its parts
def test_models_that_nobody_can_use_are_holes_after_one_round(
    client: SyncPrefectClient, settings: Settings, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "config.json").write_text("{}")
    given = {"month": "2024-01", "sources": SOURCES[1:], "models": [str(broken), *MODELS]}
    run, children = do(client, "monthly/monthly", **given)
    assert run.state and run.state.name == "Completed (partial)"
    assert run.state.message and run.state.message.startswith(f"1 hole:\nscore {broken}: ")
    assert children == ["score 3 models on gpu"]


@needs_extra("scheduled_questions")
@pytest.mark.slow
@needs_extra("question_sites")
def test_questions_are_answered_and_a_source_that_fails_is_a_hole(
    client: SyncPrefectClient, settings: Settings, web: Web, tiny_model: Path
) -> None:
    web.faults.append(Fault("status", "polymarket", "/markets", times=10_000, status=404))
    asked = {"first": "2024-02", "last": "2024-03", "models": [str(tiny_model)]}
    run, children = do(client, "forecast/forecast", **asked)
    web.faults.clear()
    assert run.state and run.state.name == "Completed (partial)"
    assert run.state.message and run.state.message.startswith("1 hole:\nquestions polymarket: ")
    assert children == [f"answer {tiny_model} on gpu"]
    landed = query(settings, "select distinct model, month from forecast_accuracy_monthly")
    assert set(landed["model"].to_pylist()) == {tiny_model.name}


@needs_extra("scheduled_questions")
@pytest.mark.slow
def test_questions_that_were_answered_are_not_asked_again(
    client: SyncPrefectClient, tiny_model: Path
) -> None:
    asked = {"first": "2024-02", "last": "2024-03", "models": [str(tiny_model)]}
    for _ in range(2):
        run, _ = do(client, "forecast/forecast", sources=["manifold"], **asked)
        assert run.state and run.state.name == "Completed"
    assert run.state and run.state.message and "2 partitions, 0 cells" in run.state.message
