"""What all tests share: no traffic beyond loopback, no settings from outside."""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from prefect.events.worker import EventsWorker
from prefect.settings import PREFECT_API_URL, temporary_settings

from core.settings import Settings
from core.storage import Store
from simulator.server import Web, serve_sites
from simulator.sites.hub import Site

from .databases import made_once
from .servers import PrefectServer

# Before torch is imported: tests run side by side on two cores, and spinning threads starve both.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # noqa: TID251

# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("tidemark", deadline=None)
hypothesis.settings.load_profile("tidemark")

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--live", action="store_true", help="run tests that reach real sites")
    parser.addoption("--gpu", action="store_true", help="run tests that need a CUDA device")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for mark in ("live", "gpu"):
        if not config.getoption(f"--{mark}"):
            skip = pytest.mark.skip(reason=f"needs --{mark}")
            for item in items:
                if mark in item.keywords:
                    item.add_marker(skip)


@pytest.fixture(autouse=True)
def only_loopback(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every connection beyond this machine fail, and say which test tried it."""
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
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):  # noqa: TID251
        if name.startswith("TIDEMARK_"):
            monkeypatch.delenv(name)


@pytest.fixture(scope="session", autouse=True)
def one_fresh_database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with made_once(tmp_path_factory.mktemp("fresh") / "writer.duckdb"):
        yield


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings whose data root is this test's own folder, and whose crawlers do not wait."""
    return Settings(home=str(tmp_path / "home"), request_interval_s=0, device="cpu")


@pytest.fixture
def store(settings: Settings) -> Store:
    return Store(settings.home)


@dataclass(frozen=True)
class Hub:
    """A simulated hub, without models yet, and an empty cache."""

    site: Site
    web: Web
    cache: Path

    @property
    def sites(self) -> dict[str, str]:
        """For the setting of that name."""
        return {"hub": self.web.urls["hub"]}

    @property
    def paths(self) -> list[str]:
        """What was asked for so far, without the questions about files (HEAD)."""
        return [path for _, method, path in self.web.requests if method == "GET"]


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub on loopback, a cache of this test's own, and no token."""
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
def shared() -> Iterator[Path]:
    """The project's shared data, where this checkout has it beside it."""
    if not SHARED.exists():
        pytest.skip(f"no shared data at {SHARED}")
    yield SHARED


@pytest.fixture(scope="session")
def prefect_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a Prefect server's fresh database is kept, for all processes of this test run."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "prefect"  # noqa: TID251


@pytest.fixture(scope="session")
def prefect_background(
    tmp_path_factory: pytest.TempPathFactory, prefect_template: Path
) -> Iterator[PrefectServer]:
    """A server for all tests of this process that only need flows to run somewhere."""
    with running(tmp_path_factory.mktemp("background"), prefect_template) as server:
        yield server


@pytest.fixture(scope="module")
def prefect_api(prefect_background: PrefectServer) -> Iterator[None]:
    """Where flows run, as by hand: Prefect has a server, and tidemark is told of none.

    Not Prefect's own test harness: it migrates a database each time, and at its end may wait for
    minutes for events to a server of other tests that is gone.
    """
    with temporary_settings({PREFECT_API_URL: prefect_background.url}):
        yield


@pytest.fixture(scope="module")
def prefect_server(
    tmp_path_factory: pytest.TempPathFactory, prefect_template: Path
) -> Iterator[PrefectServer]:
    """A real server, for the tests of one module."""
    with running(tmp_path_factory.mktemp("server"), prefect_template) as server:
        yield server


@contextmanager
def running(folder: Path, template: Path, database: str = "") -> Iterator[PrefectServer]:
    """Run a Prefect server on SQLite, or on the database of an address."""
    settings = {"PREFECT_API_DATABASE_CONNECTION_URL": database} if database else {}
    server = PrefectServer(folder, template, **settings)
    server.start()
    yield server
    # What this process still has for it would keep the next server's events waiting.
    EventsWorker.drain_all(timeout=60, at_exit=False)
    server.stop()
