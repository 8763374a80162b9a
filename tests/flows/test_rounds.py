"""The flow runs of workers that a run starts, on a real server without workers."""

import datetime as dt
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

import httpx
import pytest
from prefect import flow
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.filters import FlowFilter, FlowFilterName
from prefect.client.schemas.objects import FlowRun
from prefect.runtime import flow_run
from prefect.settings import PREFECT_CLIENT_MAX_RETRIES, temporary_settings
from prefect.states import Cancelled, Cancelling, Completed, Crashed, Running, State

from core.settings import Settings
from deployments.deploy import deploy
from flows.rounds import ListPending, Pending, Rounds
from instruments.pools import Pool
from tests.flows.support.deployed import api, children_of
from tests.servers import PrefectServer

pytestmark = pytest.mark.timeout(3600)

OF_WORK = FlowFilter(name=FlowFilterName(any_=["work"]))
NEVER = dt.datetime.min.replace(tzinfo=dt.UTC)


@pytest.fixture(scope="module")
def client(prefect_background: PrefectServer) -> Iterator[SyncPrefectClient]:
    with api(prefect_background) as client:
        deploy(prefect_background.url)
        yield client


@pytest.fixture
def quick(settings: Settings) -> Settings:
    return settings.model_copy(update={"watch_interval_s": 0.2})


@flow(name="watching")
def watch(left: ListPending, settings: Settings, retries: int = 5) -> tuple[UUID, list[str]]:
    rounds = Rounds(left, {"run": "watching"}, settings)
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: retries}):
        rounds.drain(lambda: True)
    return UUID(flow_run.id), rounds.problems


@contextmanager
def ending(
    client: SyncPrefectClient, become: Callable[[FlowRun], State[None] | None]
) -> Iterator[None]:
    """Give flow runs of ``work`` new states, as workers do, within the ``with`` block."""
    is_over = threading.Event()

    def act() -> None:
        while not is_over.wait(0.2):
            with suppress(httpx.HTTPError):  # the server may be away
                look()

    def look() -> None:
        for run in client.read_flow_runs(flow_filter=OF_WORK):
            is_work = run.parameters.get("run") == "watching"
            if is_work and run.state and not run.state.is_final():
                state = become(run)
                if state is not None:
                    client.set_flow_run_state(run.id, state, force=True)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def models_of(client: SyncPrefectClient, parent: UUID) -> list[tuple[str, list[str]]]:
    """Return pool and models of the started flow runs, in order."""
    children = children_of(client, client.read_flow_run(parent))
    in_order = sorted(children, key=lambda run: run.created or NEVER)
    return [(run.parameters["pool"], run.parameters["models"]) for run in in_order]


def test_work_that_crashes_is_started_again_and_given_up_after_three_rounds(
    client: SyncPrefectClient, quick: Settings
) -> None:
    left = Pending({"a": frozenset({"1"}), "b": frozenset({"1", "2"}), "c": frozenset()})

    def crash(run: FlowRun) -> State[None]:
        return Crashed(message="killed")

    with ending(client, crash):
        parent, problems = watch(lambda _: {"gpu": left}, quick)
    assert problems == ["work on gpu: 3 rounds of flow runs did not help"]
    assert models_of(client, parent) == [
        ("gpu", ["a", "b", "c"]),
        ("gpu", ["a", "b", "c"]),
        ("gpu", ["a"]),
        ("gpu", ["b"]),
    ]


@pytest.mark.parametrize(
    ("state", "expected"), [(Cancelling(), "Cancelled"), (Running(), "Scheduled")]
)
def test_a_cancelled_run_cancels_its_flow_runs_at_once(
    client: SyncPrefectClient, quick: Settings, state: State[None], expected: str
) -> None:
    parents: list[UUID] = []

    def list_pending(_: Collection[str]) -> dict[Pool, Pending]:
        if not parents:
            parents.append(UUID(flow_run.id))
        elif children_of(client, client.read_flow_run(parents[0])):
            client.set_flow_run_state(parents[0], state, force=True)
            raise KeyboardInterrupt  # as a signal does
        return {"gpu": Pending({"a": frozenset({"1"})})}

    with pytest.raises(KeyboardInterrupt):
        watch(list_pending, quick)
    [work] = children_of(client, client.read_flow_run(parents[0]))
    assert work.state
    assert work.state.name == expected
    client.delete_flow_run(work.id)  # else the next test ends it


def test_flow_runs_beyond_one_page_of_the_server_are_watched(
    client: SyncPrefectClient, quick: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.rounds._PAGE", 1)
    monkeypatch.setattr("flows.rounds.count_free_workers", lambda *_: 2)

    def list_pending(completed: Collection[str]) -> dict[Pool, Pending]:
        return {"gpu": Pending({name: frozenset({name}) - set(completed) for name in "ab"})}

    with ending(client, lambda run: Completed()):
        parent, problems = watch(list_pending, quick)
    assert problems == []
    assert models_of(client, parent) == [("gpu", ["a", "b"])] * 2


def test_a_refused_flow_run_is_a_problem_and_no_outage(
    client: SyncPrefectClient, quick: Settings
) -> None:
    """As where the deployments are those of another version: the server checks parameters."""

    @flow(name="refused")
    def refused() -> list[str]:
        rounds = Rounds(lambda _: {"gpu": Pending({"a": frozenset("1")})}, {"run": [1]}, quick)
        rounds.drain(lambda: True)
        return rounds.problems

    [problem] = refused()
    assert problem.startswith("the server refuses to start work/gpu (409: ")
    assert problem.endswith("run `tidemark deploy`")


def test_rounds_go_on_while_they_help(client: SyncPrefectClient, quick: Settings) -> None:
    left = [5]

    def work(run: FlowRun) -> State[None]:
        left[0] -= 1
        return Crashed() if left[0] % 2 else Cancelled()

    def list_pending(_: Collection[str]) -> dict[Pool, Pending]:
        return {"gpu": Pending({"a": frozenset(map(str, range(left[0])))})}

    with ending(client, work):
        parent, problems = watch(list_pending, quick)
    assert problems == []
    assert len(models_of(client, parent)) == 5


def test_no_flow_run_is_started_for_a_cell_that_another_is_about_to_take(
    client: SyncPrefectClient, quick: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.rounds.count_free_workers", lambda *_: 4)
    looks: list[int] = []  # the numbers of pending cells that were told

    def list_pending(_: Collection[str]) -> dict[Pool, Pending]:
        looks.append(1 if len(looks) < 5 else 2)
        keys = frozenset(map(str, range(looks[-1])))
        return {"gpu": Pending({"a": keys if len(looks) < 10 else frozenset()})}

    def begin(run: FlowRun) -> State[None] | None:
        is_running = run.state is not None and run.state.is_running()
        if len(looks) < 10:
            return None if is_running else Running()
        return Completed()

    with ending(client, begin):
        parent, problems = watch(list_pending, quick)
    assert problems == []
    assert models_of(client, parent) == [("gpu", ["a"])] * 2


def test_single_gpus_are_used_once_a_model_of_all_has_begun(
    client: SyncPrefectClient, quick: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flows.rounds.PATIENCE", 10_000)  # on a busy machine, too
    begun: list[str] = []

    def begin(run: FlowRun) -> State[None] | None:
        pool = run.parameters["pool"]
        if pool == "gpu":
            begun.append(pool)
            return Completed()
        if run.state and run.state.is_running():
            return Completed() if "gpu" in begun else None
        begun.append(pool)
        return Running()

    def list_pending(completed: Collection[str]) -> dict[Pool, Pending]:
        keys = {name: frozenset({name}) - set(completed) for name in ("large", "small")}
        return {
            "gpu": Pending({"small": keys["small"]}),
            "gpu-all": Pending({"large": keys["large"]}),
        }

    with ending(client, begin):
        parent, problems = watch(list_pending, quick)
    assert problems == []
    assert begun == ["gpu-all", "gpu"]
    assert models_of(client, parent) == [("gpu-all", ["large"]), ("gpu", ["small"])]


@pytest.mark.slow
def test_a_missing_deployment_and_an_outage_cost_no_other_pool(
    quick: Settings, prefect_server: PrefectServer
) -> None:
    with api(prefect_server) as client:
        deploy(prefect_server.url)
        _lose_a_deployment_and_the_server(client, quick, prefect_server)


def _lose_a_deployment_and_the_server(
    client: SyncPrefectClient, quick: Settings, prefect_server: PrefectServer
) -> None:
    client.delete_deployment(client.read_deployment_by_name("work/api").id)

    def list_pending(completed: Collection[str]) -> dict[Pool, Pending]:
        if "a" not in completed and not outages:
            outages.append(time.monotonic())
            prefect_server.stop(signal.SIGKILL)
            threading.Timer(1.0, prefect_server.start).start()
        left = frozenset({"a"}) - set(completed)
        return {"gpu": Pending({"a": left}), "api": Pending({"b": frozenset({"b"})})}

    outages: list[float] = []
    with ending(client, lambda run: Completed()):
        parent, problems = watch(list_pending, quick, retries=0)
    assert problems == ["there is no deployment work/api; run `tidemark deploy`"]
    assert models_of(client, parent) == [("gpu", ["a"])]
