import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from cli import doctor
from cli.doctor import Finding, examine
from core.settings import Settings


def find(settings: Settings, what: str) -> Finding:
    [finding] = [finding for finding in examine(settings) if finding.what == what]
    return finding


def test_every_finding_that_is_not_well_says_how_to_mend_it(settings: Settings) -> None:
    findings = examine(settings)
    assert [finding.what for finding in findings] == [
        "Python", "torch", "Chromium", "git", "disk", "variables", "data root", "contact",
        "models", "warehouse", "Prefect server",
    ]  # fmt: skip
    assert all(finding.is_well or finding.mend for finding in findings)
    assert find(settings, "Python").is_well
    assert find(settings, "git").detail.startswith("git version")
    assert find(settings, "models").detail.startswith("only compressors will be scored; name")
    named = settings.model_copy(update={"models": ("pythia-70m", "control:xz")})
    assert find(named, "models").detail == "pythia-70m, control:xz"
    named = settings.model_copy(update={"models": ("nope",)})
    assert "unknown model 'nope'" in find(named, "models").detail


@pytest.mark.parametrize(
    ("setting", "value", "what", "detail", "mend"),
    [
        ("device", "cuda:99", "torch", "cuda:99", "TIDEMARK_DEVICE=auto"),
        ("chromium", Path("nowhere/chromium"), "Chromium", "does not start", "playwright install"),
        ("home", __file__, "data root", __file__, "TIDEMARK_HOME"),
    ],
)
def test_what_does_not_work_is_told(
    settings: Settings, setting: str, value: object, what: str, detail: str, mend: str
) -> None:
    finding = find(settings.model_copy(update={setting: value}), what)
    assert not finding.is_well
    assert detail in finding.detail
    assert mend in finding.mend


def test_a_missing_contact_is_told_unless_the_sites_are_simulated(settings: Settings) -> None:
    finding = find(settings, "contact")
    assert not finding.is_well
    assert "wikipedia_new" in finding.detail
    assert "TIDEMARK_CONTACT" in finding.mend
    own = settings.model_copy(update={"contact": "me@example.org"})
    assert find(own, "contact") == Finding("contact", True, "me@example.org")
    keys = "wikipedia", "wikinews", "wikimedia_dumps", "edgar", "commons", "commons_files"
    sites = dict.fromkeys(keys, "http://127.0.0.1:9")
    assert find(settings.model_copy(update={"sites": sites}), "contact").is_well


def test_what_is_missing_is_told(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    finding = find(settings, "git")
    assert (finding.is_well, finding.detail) == (False, "not found")
    assert "install git" in finding.mend
    for min_free_bytes, is_enough in ((1, True), (2**60, False)):
        monkeypatch.setattr(doctor, "MIN_FREE_BYTES", min_free_bytes)
        finding = find(settings, "disk")
        assert finding.is_well == is_enough
        assert "TIDEMARK_WORK_DIR" in finding.mend


def test_variables_that_nothing_reads_are_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TIDEMARK_SITES__ARXIV", "TIDEMARK_TEST_GPUS"):
        monkeypatch.setenv(name, "1")
    assert find(settings, "variables").is_well
    for name in ("TIDEMARK_MODLES", "TIDEMARK_ZZ"):
        monkeypatch.setenv(name, "gpt2")
    found = find(settings, "variables")
    assert found.detail == "no settings: TIDEMARK_MODLES, TIDEMARK_ZZ"
    assert found.mend.startswith("did you mean TIDEMARK_MODELS? ")


def test_a_writable_data_root_is_left_clean(settings: Settings) -> None:
    assert find(settings, "data root").is_well
    assert [path for path in Path(settings.home).rglob("*") if path.is_file()] == []


@pytest.fixture
def server() -> Iterator[str]:
    """Respond as Prefect does with a password of a:b; 404 on other paths."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            is_known = self.headers["authorization"] == "Basic YTpi"
            right = 200 if is_known or self.path == "/api/health" else 401
            self.send_response(right if self.path.startswith("/api/") else 404)
            body = b'"3.9.9"' if right == 200 else b""
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Stay silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        threading.Thread(target=web.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}"
        web.shutdown()


def test_the_server(
    settings: Settings, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password mine\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    assert find(settings, "Prefect server").is_well
    monkeypatch.setenv("PREFECT_API_URL", f"{server}/api/")
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "a:wr0ng")
    assert "set PREFECT_API_AUTH_STRING to" in find(settings, "Prefect server").detail
    assert "wr0ng" not in find(settings, "Prefect server").detail
    monkeypatch.setenv("PREFECT_API_AUTH_STRING", "a:b")
    assert find(settings, "Prefect server").is_well
    for address in (f"{server}/elsewhere", server, "http://127.0.0.1:1/api", "nonsense"):
        monkeypatch.setenv("PREFECT_API_URL", address)
        finding = find(settings, "Prefect server")
        assert not finding.is_well
        assert "PREFECT_API_URL" in finding.mend


@pytest.mark.parametrize(
    ("status", "kind", "body", "says"),
    [
        (200, "text/html", "<html>the pages</html>", "answers with text/html, not with Prefect's"),
        (200, "application/json", '{"no": "version"}', "another program answers there"),
        (200, "application/json", '"2.20.3"', "is one of Prefect 2.20.3, and this is Prefect 3."),
        (500, "text/plain", "Internal Server Error", "answers 500: see that it is well"),
        (503, "text/html", "<html>starting</html>", "answers 503: see that it is well"),
        (401, "application/json", "{}", "does not let us in (401)"),
    ],
)
def test_other_servers_are_named_by_all_who_ask(
    tidemark: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    kind: str,
    body: str,
    says: str,
) -> None:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        do_POST = do_GET  # noqa: N815 - a name of http.server

        def log_message(self, *_: Any) -> None:
            """Stay silent."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as web:
        threading.Thread(target=web.serve_forever, args=(0.02,), daemon=True).start()
        address = f"http://me:hush@127.0.0.1:{web.server_port}/api"
        monkeypatch.setenv("PREFECT_API_URL", address)
        for command in (("deploy", "--dry-run"), ("run", "--month", "2024-01", "-s", "hackernews")):
            ran = tidemark(*command)
            assert ran.code == 2
            assert says in ran.err
            assert "hush" not in ran.err
        told = " ".join(tidemark("status").out.split())
        assert "does not answer as it should: it" in told
        assert "hush" not in told
        web.shutdown()


def test_runs_explain_a_wrong_address_and_errors_of_the_server(
    settings: Settings, server: str, tidemark: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for address, code, says in (
        (f"{server}/elsewhere", 2, "answers 404: see that it is well, and that the address ends"),
        ("http://a:hush@127.0.0.1:1/api", 1, "server at http://127.0.0.1:1/api (PREFECT_API_URL)"),
    ):
        monkeypatch.setenv("PREFECT_API_URL", address)
        for command in (("run", "--month", "2024-01", "-s", "hackernews"), ("deploy", "--dry-run")):
            assert "hush" not in tidemark(*command).expect(code, says).err


def test_the_command_fails_where_something_is_not_well(
    tidemark: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = Finding("moon", False, "not full", "wait for it")
    monkeypatch.setattr(doctor, "examine", lambda _: [Finding("sun", True, "up"), bad])
    ran = tidemark("doctor").expect(1)
    for part in ("sun", "ok", "moon", "PROBLEM", "not full", "wait for it"):
        assert part in ran.out
    monkeypatch.setattr(doctor, "examine", lambda _: [Finding("sun", True, "up")])
    assert tidemark("doctor").code == 0
