import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard
from prefect.blocks.system import Secret
from prefect.client.orchestration import get_client
from prefect.settings import PREFECT_API_URL, temporary_settings
from pydantic import SecretStr

from core.errors import SourceUnavailable
from core.month import Month
from core.settings import Settings
from extras.shared_sites import server_sites
from extras.shared_sites.server_sites import add_block_tokens, hold_slot, slot
from simulator.server import Request, Response, Web, serve
from simulator.world import World
from tests.forks import run_process
from tests.loopback import serving
from tests.servers import ROOT, PrefectServer
from warehouse.database.writer import connected

TOKEN = "Zq9-x_W73-s3cr3t"
OTHER = "another-s3cr3t-token"


@pytest.fixture
def api(
    prefect_background: PrefectServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    url = prefect_background.url
    monkeypatch.setenv("PREFECT_API_URL", url)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "client"))
    with temporary_settings({PREFECT_API_URL: url}):
        yield url


_ASKS = """
import sys
from core.settings import Settings
from crawlers.web.fetcher import Fetcher
from tasks.prefect.sites import take_slot

home, first, url = sys.argv[1:]
settings = Settings(home=home, sites={"slow": url})
fetcher = Fetcher(settings, settings.sites, 0.5, turnstile=take_slot)
for number in range(int(first), int(first) + 5):
    fetcher.get("slow", f"/page/{number}")
"""


@pytest.mark.slow
def test_machines_share_the_pace_of_a_host(api: str, tmp_path: Path) -> None:
    """Each process has a scratch folder of its own, as on another machine."""
    times: list[tuple[float, float]] = []

    def answer(_: Request) -> Response:
        came = time.monotonic()
        time.sleep(0.1)
        times.append((came, time.monotonic()))
        return Response(body=b"page")

    with serving(answer) as url:
        machines = [
            subprocess.Popen(
                [sys.executable, "-c", _ASKS, str(tmp_path / str(n)), str(n * 5), url],
                cwd=ROOT,
                stderr=subprocess.PIPE,
                text=True,
            )
            for n in range(2)
        ]
        for machine in machines:
            _, errors = machine.communicate(timeout=280)
            assert machine.returncode == 0, errors
        name = f"tidemark-host-{url.removeprefix('http://')}"
    times.sort()
    assert len(times) == 10
    pairs = list(zip(times, times[1:], strict=False))
    assert min(late[0] - early[0] for early, late in pairs) >= 0.45
    assert min(late[0] - early[1] for early, late in pairs) > 0
    with get_client(sync_client=True) as client:
        limit = client.read_global_concurrency_limit_by_name(name)
    assert (limit.limit, limit.active_slots, limit.active) == (1, 0, True)


@pytest.mark.slow
def test_a_limit_that_somebody_else_holds_is_not_waited_for_for_ever(
    api: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with hold_slot("held.example"), monkeypatch.context() as patch:
        patch.setattr(server_sites, "LOCK_WAIT_S", 1.0)
        with (
            pytest.raises(SourceUnavailable, match="no slot of the limit tidemark-host-held"),
            hold_slot("held.example"),
        ):
            pytest.fail("it is not our turn")
    with hold_slot("held.example"):
        pass


@pytest.mark.smoke
def test_an_error_within_a_turn_is_not_the_servers(api: str) -> None:
    with pytest.raises(ZeroDivisionError), hold_slot("held.example"):
        raise ZeroDivisionError
    with hold_slot("held.example"):
        pass


@pytest.mark.long
def test_a_server_that_is_gone_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        with pytest.raises(SourceUnavailable, match="PREFECT_API_URL"), hold_slot("some.example"):
            pytest.fail("it is not our turn")
        with pytest.raises(SourceUnavailable, match="PREFECT_API_URL"):
            add_block_tokens(["arxiv"], settings)


def test_tokens_come_from_secret_blocks(api: str, settings: Settings) -> None:
    Secret(value=SecretStr(TOKEN)).save("tidemark-arxiv-oai", overwrite=True)
    sites = ["arxiv", "arxiv_oai"]
    found = add_block_tokens(sites, settings)
    assert found.tokens == {"arxiv_oai": SecretStr(TOKEN)}
    own = settings.model_copy(update={"tokens": {"arxiv_oai": SecretStr(OTHER)}})
    assert add_block_tokens(sites, own).tokens == own.tokens
    assert settings.tokens == {}


@pytest.fixture
def web() -> Iterator[Web]:
    with serve(World(0, Month("2024-01"), Month("2024-01"), stories_per_month=3)) as running:
        yield running


@pytest.mark.slow
def test_a_run_on_a_server_shows_no_token(
    api: str, prefect_background: PrefectServer, web: Web, tmp_path: Path
) -> None:
    Secret(value=SecretStr(TOKEN)).save("tidemark-wikipedia", overwrite=True)
    sites = {f"TIDEMARK_SITES__{key.upper()}": url for key, url in web.urls.items()}
    environment = {
        **os.environ,  # noqa: TID251
        **sites,
        "TIDEMARK_HOME": str(tmp_path / "home"),
        "TIDEMARK_TOKENS__ARXIV": OTHER,
        "TIDEMARK_REQUEST_INTERVAL_S": "0",
        "PREFECT_LOGGING_LEVEL": "DEBUG",
        "PREFECT_LOGGING_TO_API_ENABLED": "true",
        "PYTHONPATH": str(ROOT),
    }
    with connected(Settings(home=str(tmp_path / "home"))):
        pass  # a copy of an empty database, which the process would take ten seconds to make
    run = [sys.executable, "-c", "from cli.main import main; main()", "run", "--month", "2024-01"]
    run += ["-s", "wikipedia_new", "-m", "control:zstd"]
    done = run_process(*run, env=environment, cwd=tmp_path, timeout=280)
    assert done.returncode == 0, done.stderr
    assert "complete: 1 partition" in done.stdout
    texts = [done.stdout.encode(), done.stderr.encode()]
    for path in [*tmp_path.rglob("*"), *prefect_background.folder.rglob("*")]:
        if path.is_file():
            data = path.read_bytes()
            texts.append(zstandard.decompress(data) if path.suffix == ".zst" else data)
    assert len(texts) > 10
    for token in (TOKEN, OTHER):
        assert not any(token.encode() in text for text in texts)


_HOLDS_A_SLOT = """
import time
from tasks.prefect.sites import take_slot
with take_slot("held.example"):
    print("held", flush=True)
    time.sleep(3600)
"""


@pytest.mark.slow
def test_a_slot_is_free_again_after_its_holder_and_the_server_were_killed(
    prefect_server: PrefectServer,
) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDS_A_SLOT],
        env=prefect_server.environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder, contextlib.ExitStack() as stack:
        stack.callback(holder.kill)
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        prefect_server.stop(signal.SIGKILL)
    prefect_server.start()
    with (
        temporary_settings({PREFECT_API_URL: prefect_server.url}),
        slot("tidemark-host-held.example", wait_s=500),  # the lease is of a minute
    ):
        pass
