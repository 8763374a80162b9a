import asyncio
import dataclasses
import json
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
import websockets
from requests.adapters import HTTPAdapter

from tests.commands import TIDEMARK
from tests.deployments.support.compose_file import ComposeError
from tests.deployments.support.stack import Process, stack
from tests.forks import run_process
from tests.loopback import wait_for

PASSWORD = "s3cret-of-prefect"
AUTH = f"tidemark:{PASSWORD}"
READER = ("reader", "s3cret of the report")
SNAPSHOT = bytes(range(256)) * 4096
REPORT, PREFECT = "report.test", "prefect.test"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, Process]]:
    """The stack, with a CPU worker, a password on the report, and PostgreSQL's with odd letters."""
    if shutil.which("caddy") is None:
        pytest.skip("needs Caddy: deployments/install-caddy.sh")
    hashed = subprocess.run(
        ["caddy", "hash-password", "--plaintext", READER[1]], check=True, capture_output=True
    ).stdout.decode()
    variables = {
        "COMPOSE_PROFILES": "cpu",
        "POSTGRES_PASSWORD": "pg's pass@word/",
        "PREFECT_AUTH": AUTH,
        "REPORT_SITE": REPORT,
        "PREFECT_SITE": PREFECT,
        "REPORT_ACCESS": "password",
        "REPORT_USER": READER[0],
        "REPORT_PASSWORD_HASH": hashed.strip(),
    }
    with tempfile.TemporaryDirectory(prefix="tidemark-stack-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # PostgreSQL's user has to get in
        try:
            with stack(folder, variables) as running:
                report = running["report"].folders["/data"] / "report"
                report.mkdir()
                (report / "index.html").write_text("<!doctype html><title>page</title>")
                (report.parent / "warehouse.duckdb").write_bytes(SNAPSHOT)
                yield running
        except ComposeError as error:
            if "is not installed" in str(error):
                pytest.skip(str(error))
            raise


class _AtProxy(HTTPAdapter):
    """Connects to the proxy's address for any name, as if DNS knew the name."""

    def __init__(self, name: str) -> None:
        self._name = name
        super().__init__()

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        options |= {"server_hostname": self._name, "assert_hostname": self._name}
        super().init_poolmanager(*arguments, **options)


def authority(running: dict[str, Process]) -> str:
    return str(running["proxy"].folders["/data"] / "caddy/pki/authorities/local/root.crt")


def ask(running: dict[str, Process], name: str, path: str, **options: Any) -> requests.Response:
    with requests.Session() as session:
        session.trust_env = False
        session.verify = authority(running)
        session.mount("https://", _AtProxy(name))
        headers = {"Host": name, **options.pop("headers", {})}
        url = f"https://{running['proxy'].address}{path}"
        return session.get(url, headers=headers, timeout=30, **options)


def test_every_service_is_healthy(running: dict[str, Process]) -> None:
    watched = {name for name, process in running.items() if process.service.health}
    assert watched == {
        "postgres", "prefect-server", "crawl-worker", "cpu-worker", "report", "metrics", "proxy",
    }  # fmt: skip
    assert {name for name in watched if not running[name].is_healthy()} == set()


def test_the_workers_serve_their_pools(running: dict[str, Process]) -> None:
    url = running["crawl-worker"].environment["PREFECT_API_URL"]

    def list_states(pool: str) -> list[str]:
        workers = f"{url}/work_pools/{pool}/workers/filter"
        answer = requests.post(workers, auth=("tidemark", PASSWORD), timeout=30)
        return [worker["status"] for worker in answer.json()]

    for pool in ("crawl", "gpu"):
        # A worker registers after it has started.
        wait_for(lambda pool=pool: list_states(pool), pause_s=0.5)
        assert list_states(pool) == ["ONLINE"]


def test_the_report_is_behind_tls_and_a_password(running: dict[str, Process]) -> None:
    for wrong in (None, (READER[0], "wrong"), ("other", READER[1])):
        refused = ask(running, REPORT, "/", auth=wrong)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith("Basic")
        assert "page" not in refused.text
        assert ask(running, REPORT, "/warehouse.duckdb", auth=wrong).status_code == 401
    page = ask(running, REPORT, "/", auth=READER)
    assert (page.status_code, page.text) == (200, "<!doctype html><title>page</title>")
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    with pytest.raises(requests.exceptions.SSLError):
        requests.get(f"https://{running['proxy'].address}/", timeout=30)


def test_the_snapshot_comes_through_the_proxy_in_parts_too(running: dict[str, Process]) -> None:
    whole = ask(running, REPORT, "/warehouse.duckdb", auth=READER)
    assert whole.content == SNAPSHOT
    part = {"Range": "bytes=1000-1999", "If-Range": whole.headers["ETag"]}
    answer = ask(running, REPORT, "/warehouse.duckdb", auth=READER, headers=part)
    assert (answer.status_code, answer.content) == (206, SNAPSHOT[1000:2000])
    known = {"If-None-Match": whole.headers["ETag"]}
    answer = ask(running, REPORT, "/warehouse.duckdb", auth=READER, headers=known)
    assert (answer.status_code, answer.content) == (304, b"")


def test_metrics_are_there_for_this_host(running: dict[str, Process]) -> None:
    answer = requests.get(f"http://{running['metrics'].address}:9464/metrics", timeout=60)
    # What this module has as a snapshot is no database.
    assert "tidemark_up 0.0" in answer.text.splitlines()


def test_plain_http_leads_to_tls(running: dict[str, Process]) -> None:
    for name in (REPORT, PREFECT):
        answer = requests.get(
            f"http://{running['proxy'].address}/x", headers={"Host": name}, timeout=30,
            allow_redirects=False,
        )  # fmt: skip
        assert (answer.status_code, answer.headers["Location"]) == (308, f"https://{name}/x")


def test_the_prefect_server_wants_its_password_behind_the_proxy_too(
    running: dict[str, Process],
) -> None:
    assert ask(running, PREFECT, "/api/ready").status_code == 200
    for wrong in (None, ("tidemark", "wrong")):
        assert ask(running, PREFECT, "/api/admin/version", auth=wrong).status_code == 401
    answer = ask(running, PREFECT, "/api/admin/version", auth=("tidemark", PASSWORD))
    assert (answer.status_code, answer.json()[:2]) == (200, "3.")
    settings = ask(running, PREFECT, "/ui-settings").json()
    assert settings["api_url"] == f"https://{PREFECT}/api"
    page = ask(running, PREFECT, "/", headers={"Accept": "text/html"})
    assert (page.status_code, "<div id=" in page.text) == (200, True)


@pytest.mark.parametrize(("secret", "answer"), [(AUTH, "auth_success"), ("x:y", "Invalid token")])
def test_websockets_come_through_the_proxy(
    secret: str, answer: str, running: dict[str, Process]
) -> None:
    async def login() -> str:
        async with websockets.connect(
            f"wss://{PREFECT}/api/events/out",
            host=running["proxy"].address,
            port=443,
            ssl=ssl.create_default_context(cafile=authority(running)),
            subprotocols=[websockets.Subprotocol("prefect")],
            proxy=None,
        ) as socket:
            await socket.send(json.dumps({"type": "auth", "token": secret}))
            try:
                return str(json.loads(await socket.recv())["type"])
            except websockets.ConnectionClosed as closed:
                return str(closed.rcvd and closed.rcvd.reason)

    assert asyncio.run(login()) == answer


@pytest.mark.parametrize(
    ("auth", "command"),
    [("", ["run", "--month", "2025-06"]), ("tidemark:not-this-one", ["deploy"])],
)
def test_who_has_not_the_right_password_is_told_what_to_do(
    auth: str, command: list[str], running: dict[str, Process], tmp_path: Path
) -> None:
    environment = running["deploy"].environment | {"PREFECT_API_AUTH_STRING": auth}
    done = run_process(TIDEMARK, *command, env=environment, cwd=tmp_path)
    assert done.returncode in {1, 2}
    message = done.stdout + done.stderr
    assert "PREFECT_API_AUTH_STRING" in message
    assert "Traceback" not in message
    assert "not-this-one" not in message
    assert len(message.splitlines()) <= 2


def test_the_report_may_be_open(running: dict[str, Process], tmp_path: Path) -> None:
    """The same Caddyfile in a proxy of its own, without a password."""
    addresses = {name: process.address for name, process in running.items()}
    addresses["proxy"] = addresses["proxy"].rpartition(".")[0] + ".200"
    service = running["proxy"].service
    is_open = service.environment | {"REPORT_ACCESS": "open"}
    open_proxy = Process(dataclasses.replace(service, environment=is_open), tmp_path, addresses)
    open_proxy.start()
    try:
        open_proxy.await_health()
        assert ask(running | {"proxy": open_proxy}, REPORT, "/").status_code == 200
    finally:
        open_proxy.stop()
