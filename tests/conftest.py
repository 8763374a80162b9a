"""Rules for all tests: no traffic beyond loopback, no settings from the environment."""

import atexit
import gc
import ipaddress
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from filelock import FileLock

from core.settings import Settings
from core.storage.store import Store
from simulator.server import Web, serve_sites
from simulator.sites.hub import Site
from tests.databases import made_once
from tests.servers import PrefectServer, shared_server
from tests.tiers import marks_of
from warehouse.read.publish import publish

# Before torch is imported: tests run side by side on two cores, and spinning threads starve both.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # noqa: TID251

# An example's time depends on the machine's load, and a test must not depend on chance.
hypothesis.settings.register_profile("tidemark", deadline=None, derandomize=True)
hypothesis.settings.load_profile("tidemark")

# Files of more than half a minute each, longest first.
LONGEST = (
    "tests/crawlers/test_every_source.py",
    "tests/warehouse/test_views.py",
    "tests/flows/test_month.py",
    "tests/reports/site/test_browser.py",
    "tests/deployments/test_deploy.py",
    "tests/cli/test_query.py",
    "tests/models/scoring/test_golden.py",
)
# Of a server that runs for many minutes and is seldom asked: its services would use a second of
# processor time every half minute.
WITHOUT_SERVICES = {
    f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false"
    for name in (
        "CANCELLATION_CLEANUP", "CLEANUP_RECONCILER", "FOREMAN", "LATE_RUNS", "PAUSE_EXPIRATIONS",
        "REPOSSESSOR", "SCHEDULER", "TRIGGERS",
    )
}  # fmt: skip
SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--live", action="store_true", help="run tests that reach real sites")
    parser.addoption("--gpu", action="store_true", help="run tests that need a CUDA device")
    parser.addoption("--demo", metavar="HOME", help="a complete demo of seed 0, for its tests")
    parser.addoption(
        "--list-above",
        type=float,
        metavar="S",
        help="list the tests that need more than S seconds of processor time",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if isinstance(item, pytest.Function):
            for mark in sorted(marks_of(item)):
                item.add_marker(mark)
    # With `--dist loadfile` the last file decides when a run ends.
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.nodeid.partition("::")[0], len(places)))
    for mark in ("live", "gpu"):
        if not config.getoption(f"--{mark}"):
            skip = pytest.mark.skip(reason=f"needs --{mark}")
            for item in items:
                if mark in item.keywords:
                    item.add_marker(skip)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while modules are imported: that took a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        # A full collection of garbage would visit all modules and tests, and take a second here, of
        # a test, and of each of the five collections with which pytest ends.
        gc.freeze()
        gc.enable()
        atexit.register(gc.unfreeze)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Note a test's processor time, without fixtures and children, for lists and JUnit files."""
    began_s = time.process_time()
    try:
        yield
    finally:
        item.user_properties.append(("processor_s", time.process_time() - began_s))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """List what `make test-fast` should not hold; a slow machine lists more, and nothing fails."""
    limit_s = config.getoption("--list-above")
    if limit_s is None:
        return
    lines = []
    for report in terminalreporter.getreports("passed"):
        used_s = dict(report.user_properties).get("processor_s", 0)
        if report.when == "call" and used_s > limit_s:
            lines.append((used_s, report.nodeid))
    if lines:
        terminalreporter.section(f"above {limit_s:g} s of processor time: cheaper, or `long`?")
    for used_s, name in sorted(lines, reverse=True):
        terminalreporter.line(f"{used_s:.1f} s  {name}")


@pytest.fixture(autouse=True)
def only_loopback(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "live" in request.keywords:
        return
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in {socket.AF_INET, socket.AF_INET6}:
            host = str(address[0])
            if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
                pytest.fail(f"the test tried to connect to {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def clean_environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = "TIDEMARK_CONTACT" if "live" in request.keywords else None
    for name in list(os.environ):  # noqa: TID251
        if name.startswith("TIDEMARK_") and name != kept:
            monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def one_fresh_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with made_once(shared_folder(tmp_path_factory) / "writer.duckdb"):
        yield


def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that all processes of the run share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base  # noqa: TID251


def once(folder: Path, make: Callable[[], object]) -> None:
    """Call ``make``, which fills a shared folder, unless a process of this run did."""
    made = folder.with_name(f"{folder.name}.made")
    with FileLock(f"{folder}.lock"):
        if not made.exists():
            make()
            made.touch()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=str(tmp_path / "home"), request_interval_s=0, device="cpu")


@pytest.fixture
def store(settings: Settings) -> Store:
    return Store(settings.home)


@dataclass(frozen=True)
class Hub:
    site: Site
    web: Web
    cache: Path

    @property
    def sites(self) -> dict[str, str]:
        return {"hub": self.web.urls["hub"]}

    @property
    def paths(self) -> list[str]:
        return [path for _, method, path in self.web.requests if method == "GET"]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    cache = tmp_path / "hub-cache"
    cache.mkdir()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(cache))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    site = Site()
    with serve_sites([site]) as web:
        yield Hub(site, web, cache)


@pytest.fixture(scope="session")
def demo(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """The demo of seed 0, made once by a run of tests, or that of ``--demo``. Only read it."""
    home = request.config.getoption("--demo")
    if home is None:
        home = str(shared_folder(tmp_path_factory) / "demo")
        with FileLock(f"{home}.lock"):  # a second run reuses finished work
            command = [Path(sys.executable).with_name("tidemark"), "demo", "--home", home]
            subprocess.run(command, check=True, capture_output=True)
    return Settings(home=home)


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """An empty warehouse, published once by all processes of the run. Only read it."""
    home = shared_folder(tmp_path_factory) / "empty"
    settings = Settings(home=str(home))
    once(home, lambda: publish(settings))
    return settings


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    if not SHARED.exists():
        pytest.skip(f"no shared data at {SHARED}")
    yield SHARED


@pytest.fixture(scope="session")
def prefect_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a fresh database for Prefect servers, shared by all processes of the run."""
    return shared_folder(tmp_path_factory) / "prefect"


@pytest.fixture(scope="session")
def prefect_background(
    tmp_path_factory: pytest.TempPathFactory, prefect_template: Path
) -> Iterator[PrefectServer]:
    """A server without services for all processes of the run, which only add to it."""
    from prefect.events.worker import EventsWorker

    folder = shared_folder(tmp_path_factory) / "background"
    with shared_server(folder, prefect_template, **WITHOUT_SERVICES) as server:
        yield server
        EventsWorker.drain_all(timeout=60, at_exit=False)


@pytest.fixture(scope="module")
def prefect_api(prefect_background: PrefectServer) -> Iterator[None]:
    """Run flows as by hand: Prefect has a server, and tidemark is told of none.

    Prefect's test harness migrates a database each time, and may wait minutes for a server gone.
    """
    # Prefect is imported where it is used: it takes seconds, and most tests run without it.
    from prefect.settings import PREFECT_API_URL, temporary_settings

    with temporary_settings({PREFECT_API_URL: prefect_background.url}):
        yield


@pytest.fixture(scope="module")
def prefect_server(
    tmp_path_factory: pytest.TempPathFactory, prefect_template: Path
) -> Iterator[PrefectServer]:
    with running(tmp_path_factory.mktemp("server"), prefect_template) as server:
        yield server


@contextmanager
def running(
    folder: Path, template: Path, database: str = "", **settings: str
) -> Iterator[PrefectServer]:
    from prefect.events.worker import EventsWorker

    if database:
        settings["PREFECT_API_DATABASE_CONNECTION_URL"] = database
    server = PrefectServer(folder, template, **settings)
    server.start()
    yield server
    # Unsent events for this server would delay those for the next one.
    EventsWorker.drain_all(timeout=60, at_exit=False)
    server.stop()
