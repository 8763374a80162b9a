"""Deployed runs of forecasts and puzzles, each pool's workers with what only their work needs.

Then runs that fail, with secrets planted everywhere, and a search for the secrets.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest
from prefect.blocks.system import Secret
from prefect.client.orchestration import SyncPrefectClient
from prefect.client.schemas.objects import FlowRun

from core.plugins import list_extras
from core.settings import Settings
from core.storage.store import Store
from simulator.server import Fault, Web, serve
from simulator.sites import github_api, openai_api
from simulator.world import World
from tests.commands import FIRST, LAST, TIDEMARK
from tests.conftest import running
from tests.crawlers.questions.scene import permit, tokens_of
from tests.flows.support.apis import write_entry
from tests.flows.support.deployed import api, children_of, ended, start, worker_environment
from tests.flows.support.planted import places_of, texts_of, watched_processes
from tests.loopback import free_port, wait_for
from tests.servers import PostgreSQL, PrefectServer
from tests.tiers import needs_extra
from warehouse.read.query import query

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

GITHUB = {"TIDEMARK_TOKENS__GITHUB_API": github_api.TOKEN}
KEYS = {"TIDEMARK_API_KEYS__SIM": openai_api.KEY}
STORE = {
    "AWS_ACCESS_KEY_ID": "AKIAPLANTEDPLANTED00",
    "AWS_SECRET_ACCESS_KEY": "planted/secret+of=the+object/store",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    "AWS_MAX_ATTEMPTS": "1",
}
WEBHOOK = "http://hooks:planted-password-of-the-webhook@127.0.0.1:9/T0Planted"
DATABASE_PASSWORD = "planted-password-of-the-database"
SECRETS = {
    **GITHUB, **KEYS, "a wrong key": openai_api.KEY[::-1],
    "the store's key": STORE["AWS_ACCESS_KEY_ID"],
    "the store's secret": STORE["AWS_SECRET_ACCESS_KEY"],
    "the webhook": "planted-password-of-the-webhook",
    "the database": DATABASE_PASSWORD,
}  # fmt: skip


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    with serve(World(0, FIRST, LAST, stories_per_month=3)) as web:
        yield web


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, web: Web) -> Path:
    home = tmp_path_factory.mktemp("deployed") / "home"
    write_entry(home, web, openai_api.MODEL)
    permit(Store(str(home)), "metaculus")
    return home


@pytest.fixture(scope="module")
def database() -> Iterator[PostgreSQL]:
    with TemporaryDirectory(prefix="tidemark-") as name:
        Path(name).chmod(0o755)  # PostgreSQL runs as another user
        database = PostgreSQL(Path(name) / "postgresql", free_port())
        yield database
        database.kill()


@pytest.fixture(scope="module")
def server(
    database: PostgreSQL, tmp_path_factory: pytest.TempPathFactory, prefect_template: Path
) -> Iterator[PrefectServer]:
    folder = tmp_path_factory.mktemp("server")
    url = database.url.replace("tidemark@", f"tidemark:{DATABASE_PASSWORD}@")
    with running(folder, prefect_template, url) as server:
        environment = dict(server.environment)
        if "alarms" in list_extras():
            environment["TIDEMARK_NOTIFY_URL"] = WEBHOOK
        subprocess.run([TIDEMARK, "deploy"], env=environment, cwd=folder, check=True)
        yield server


@pytest.fixture(scope="module")
def client(server: PrefectServer, web: Web) -> Iterator[SyncPrefectClient]:
    with api(server) as client:
        if token := tokens_of(web).get("metaculus"):
            Secret(value=token).save("tidemark-metaculus", overwrite=True)
        yield client


@pytest.fixture(scope="module")
def environment(home: Path, web: Web) -> dict[str, str]:
    return {**worker_environment(home, web, every_s=2), "TIDEMARK_PUZZLE_ITEMS": "16",
            "TIDEMARK_DEVICE": "cpu", "PREFECT_LOGGING_LEVEL": "DEBUG"}  # fmt: skip


def pools_of(client: SyncPrefectClient, run: FlowRun) -> dict[tuple[str, ...], str | None]:
    children = children_of(client, run)
    return {tuple(child.parameters["models"]): child.work_pool_name for child in children}


@needs_extra("scheduled_questions")
def test_forecasts_and_puzzles_of_models_in_all_pools_are_published(
    client: SyncPrefectClient,
    server: PrefectServer,
    environment: dict[str, str],
    tiny_model: Path,
    home: Path,
) -> None:
    tiny = str(tiny_model)
    asked = {"sources": ["manifold"], "first": "2024-03"}
    with contextlib.ExitStack() as workers:
        for pool, own in (("crawl", {}), ("gpu", {}), ("api", KEYS)):
            workers.enter_context(server.worker(pool, **environment, **own))
        run = start("forecast/forecast", models=["sim", tiny], **asked)
        state = ended(client, run).state
        assert state and state.name == "Completed", state
        assert pools_of(client, run) == {("sim",): "api", (tiny,): "gpu"}

        puzzles = start("scylla/scylla", models=["scripted:valley", "sim"], puzzles=["two_sum"])
        state = ended(client, puzzles).state
        assert state and state.message
        expected = {("scripted:valley",): "gpu", ("sim",): "api"}
        assert pools_of(client, puzzles) == expected, state.message
    settings = Settings(home=str(home))
    landed = query(
        settings, "select model, protocol, num_all_questions as n from forecast_accuracy"
    )
    assert {(row["model"], row["protocol"]) for row in landed.to_pylist()} == {
        ("sim", "generate"), (tiny_model.name, "letter-rotated"),
    }  # fmt: skip
    assert len(set(landed["n"].to_pylist())) == 1, "all were asked all questions"
    shown = query(settings, "select distinct model from internal.scylla_accuracy_details")
    assert "scripted:valley" in shown["model"].to_pylist()
    page = (home / "report" / "forecasts.html").read_text()
    assert tiny_model.name in page and "<td>manifold</td>" in page
    assert "scripted:valley" in (home / "report" / "puzzles.html").read_text()


def logs_of(server: PrefectServer) -> str:
    return "".join(path.read_text() for path in server.folder.glob("worker-*.log"))


@needs_extra("scheduled_questions")
@needs_extra("alarms")
@needs_extra("question_sites")
@needs_extra("shared_sites")
@needs_extra("github")
def test_runs_that_fail_show_no_secret(
    client: SyncPrefectClient,
    server: PrefectServer,
    database: PostgreSQL,
    environment: dict[str, str],
    web: Web,
    home: Path,
    tmp_path: Path,
) -> None:
    token = tokens_of(web)["metaculus"]
    site = web.sites["openai_api"]
    assert isinstance(site, openai_api.Site)
    shutil.rmtree(home / "answers", ignore_errors=True)  # so that the API is asked again
    failing = {**environment, **GITHUB, **STORE}
    with watched_processes() as arguments, server.worker("crawl", **failing):
        runs = [
            start("backfill/backfill", first="2024-03", last="2024-03", sources=["github_new"]),
            start("forecast/forecast", sources=["metaculus"], first="2024-02", models=["sim"]),
        ]
        with (
            server.worker("gpu", **failing),
            server.worker("api", **failing, TIDEMARK_API_KEYS__SIM=openai_api.KEY[::-1]),
        ):
            states = [ended(client, run).state for run in runs]  # the API repeats the wrong key
        repeated = f"Invalid token {token}".encode()
        web.faults.append(Fault("status", "metaculus", "/", 99, 401, body=repeated))
        num_asked = len(site.requests)
        site.pause_s = 0.5
        killed = start("forecast/forecast", sources=None, first="2024-03", models=["sim"])
        with server.worker("api", **failing, **KEYS) as worker:
            wait_for(lambda: len(site.requests) > num_asked)
            for process in psutil.Process(worker.pid).children(recursive=True):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
            site.pause_s = 0.0
            site.mishaps += ["repeat_key"]
            states.append(ended(client, killed).state)
    elsewhere = {**failing, "TIDEMARK_HOME": "s3://nowhere/root"}
    with watched_processes() as more, server.worker("crawl", **elsewhere):
        start("report/report")  # it is retried for minutes
        wait_for(lambda: "keeps failing or is not reached" in logs_of(server), pause_s=0.1)
    # The work that was killed is started again, and ends well after the repeated key.
    assert [state and state.name == "Completed" for state in states[1:]] == [False, True], states
    assert not site.mishaps

    dump = tmp_path / "dump.sql"
    database.dump(dump)
    texts = [
        ("process lists", "\n".join(arguments | more)), ("states", str(states)),
        *texts_of(tmp_path), *texts_of(server.folder), *texts_of(home),
    ]  # fmt: skip
    whole = dump.read_text()
    assert "it refuses the key" in whole, "it is searched"
    secrets = {**SECRETS, "metaculus": token}
    found = {name: places_of(secret, texts) for name, secret in secrets.items()}
    assert not any(found.values()), found
