import datetime as dt
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from core.cells.failures import CellFailure, note_failure
from core.corpus.partition import Partition, Seal
from core.month import Month
from core.settings import Settings
from core.storage.store import Store, path_part
from crawlers.imports.texts import ImportOptions, import_texts
from instruments.losses import plan_scoring, write_losses
from tests.commands import Ran
from tests.loopback import free_port
from tests.servers import PrefectServer

Tidemark = Callable[..., Ran]
WINDOW = ("--from", "2024-01", "--to", "2024-05")


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(home=str(home), device="cpu")


@pytest.fixture
def store(settings: Settings) -> Store:
    return Store(settings.home)


def seal(store: Store, month: str, folder: Path, **keys: Any) -> Seal:
    file = folder / "texts.json"
    texts = [f"{month} {number}: {'sand and tide, ' * 20}" for number in range(3)]
    file.write_text(json.dumps(texts))
    sealed = import_texts(file, Partition("hackernews", Month(month)), store, ImportOptions())
    manifest = {**sealed.manifest, **keys}
    store.write_bytes(f"{sealed.folder}/manifest.json", json.dumps(manifest).encode())
    return sealed


@pytest.fixture
def half_done(store: Store, settings: Settings, tmp_path: Path) -> None:
    first = seal(store, "2024-01", tmp_path)
    seal(store, "2024-02", tmp_path, status="partial")
    held = {**first.manifest, "status": "held", "held_because": ["far too small"]}
    path = "corpus/source=hackernews/month=2024-03/held/manifest.json"
    store.write_bytes(path, json.dumps(held).encode())
    plan = plan_scoring("control:zstd", ["default"], None, [Month("2024-01")], settings)
    write_losses(plan.pending, plan.entry, settings)
    for name in ("model", "source=hackernews/month=2024-01/x"):
        failure = CellFailure(
            run="1", cell="x", reason="no memory", error="ModelError", may_pass=True, attempts=1,
            failed_at=dt.datetime(2024, 4, 1, tzinfo=dt.UTC),
        )  # fmt: skip
        note_failure(store, f"losses/model={path_part('control:gzip')}/{name}", failure)


def test_an_empty_root_is_no_error(tidemark: Tidemark, home: Path) -> None:
    ran = tidemark("status")
    assert ran.code == 0 and "published: nothing yet" in ran.out
    assert not home.exists()


def test_files_tell_what_is_done_running_failed_and_missing(
    tidemark: Tidemark, half_done: None, store: Store
) -> None:
    path = store.list("losses/**/*.parquet")[0].replace("2024-01", "2024-02")
    claim = {"name": path, "host": "there", "pid": 1, "started": None}
    store.write_bytes("claims/abc.1.json", json.dumps(claim).encode())
    other = {**claim, "name": Partition("hackernews", Month("2024-05")).path}
    store.write_bytes("claims/def.1.json", json.dumps(other).encode())
    models = '["control:zstd", "control:gzip"]'
    found = json.loads(tidemark("status", *WINDOW, "--json", models=models).out)
    states = ("sealed", "partial", "held", "missing", "crawling")
    months = {f"2024-0{number}": state for number, state in enumerate(states, 1)}
    assert found["partitions"] == {"hackernews": months}
    zstd, gzip = found["models"]
    assert (zstd["model"], zstd["num_sealed"], zstd["num_done"], zstd["num_pending"]) == (
        "control:zstd", 2, 1, 1,
    )  # fmt: skip
    assert zstd["running"] == ["hackernews 2024-02"] and zstd["pending_s"] > 0
    assert (gzip["num_done"], gzip["num_failed"], gzip["pending_s"]) == (0, 2, None)
    assert gzip["failed"] == ["x: no memory"] * 2
    assert found["server"] is None


def test_odd_files_are_passed_over(tidemark: Tidemark, half_done: None, store: Store) -> None:
    [cell] = store.list("losses/**/*.parquet")
    folder, _, file = cell.rpartition("/")
    for odd in (
        "corpus/source=hackernews/month=2024-01/version=abc/manifest.json",
        "claims/damaged.json",
        f"{folder.replace('2024-01', '2024-1x')}/{file}",
        f"{folder.replace('2024-01', '2024-02')}/default-512-{file.partition('-')[2]}",
    ):
        store.write_bytes(odd, b"{")
    ran = tidemark("status", "--json", models='["control:zstd"]')
    assert ran.code == 0, ran.err
    zstd = json.loads(ran.out)["models"][0]
    assert (zstd["num_sealed"], zstd["num_done"]) == (2, 1)


def test_a_damaged_manifest_costs_its_month_alone(
    tidemark: Tidemark, half_done: None, store: Store
) -> None:
    damaged = "corpus/source=hackernews/month=2024-02/manifest.json"
    store.write_bytes(damaged, b'{"files"')
    ran = tidemark("status", *WINDOW, models='["control:zstd"]')
    assert ran.code == 0, ran.err
    assert "hackernews  #!h.." in ran.out and "1 damaged, 1 held" in ran.out
    [problem] = [line for line in ran.out.splitlines() if line.startswith("PROBLEM: ")]
    assert damaged in problem and "from a backup, or move its folder out" in problem


def test_people_can_read_it_at_100_columns(tidemark: Tidemark, half_done: None) -> None:
    ran = tidemark("status", *WINDOW)
    assert ran.code == 0
    assert "hackernews  #ph.." in ran.out and "1 held, 2 missing, 1 partial, 1 sealed" in ran.out
    assert ran.out.count("failed: x: no memory") == 2
    lines = [line for line in ran.out.splitlines() if not line.startswith("data root: ")]
    assert max(map(len, lines)) <= 100
    window = tidemark("status", "--from", "2024-03", "--to", "2024-04").out
    assert "hackernews  h." in window


def test_neither_torch_nor_prefect_is_imported(home: Path) -> None:
    code = (
        "import sys, cli.status, cli.main; "
        "print([name for name in ('torch', 'prefect', 'transformers') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_server_that_is_away_is_one_line(
    tidemark: Tidemark, half_done: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{free_port()}/api")
    ran = tidemark("status")
    assert ran.code == 0 and "hackernews  #ph\n" in ran.out
    assert ran.out.count("it cannot be reached") == 1


def test_a_server_that_hangs_or_wants_a_password_does_not_hold_the_rest_up(
    tidemark: Tidemark, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Guarded(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            is_known = self.headers["authorization"] == "Basic YTpi"
            self.send_response(200 if is_known else 401)
            self.end_headers()
            self.wfile.write(b"[]" if is_known else b"")

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setattr("cli.server.TIMEOUT_S", 300)  # on a busy machine
    monkeypatch.setattr("cli.server.WHOLE_S", 300)
    server = HTTPServer(("127.0.0.1", 0), Guarded)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = f"http://127.0.0.1:{server.server_port}/api"
        monkeypatch.setenv("PREFECT_API_URL", url)
        assert "it wants a user and password" in tidemark("status").out
        monkeypatch.setenv("PREFECT_API_AUTH_STRING", "a:b")
        assert tidemark("status").out.strip().endswith(f"Prefect server {url}")
    finally:
        server.shutdown()
        server.server_close()
    monkeypatch.setattr("cli.server.TIMEOUT_S", 0.5)
    with HTTPServer(("127.0.0.1", 0), Guarded) as silent:  # it listens, and never answers
        monkeypatch.setenv("PREFECT_API_URL", f"http://127.0.0.1:{silent.server_port}/api")
        assert "nothing for" in tidemark("status").out


def test_a_server_tells_of_runs_and_workers(
    tidemark: Tidemark, prefect_background: PrefectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = """
import datetime as dt
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.states import Crashed, Running, Scheduled

@flow(name="of-status")
def score(): pass

with get_client(sync_client=True) as client:
    client.create_work_pool(WorkPoolCreate(name="of-status", type="process"))
    client.create_flow_run(score, name="at-work", state=Running())
    client.create_flow_run(score, name="was-killed", state=Crashed())
    flow_id = client.create_flow(score)
    now = dt.datetime.now(dt.UTC)
    deployment = client.create_deployment(flow_id, name="of-status", work_pool_name="of-status")
    for days in (-1, 3):
        client.create_flow_run_from_deployment(
            deployment, state=Scheduled(scheduled_time=now + dt.timedelta(days=days)))
"""
    environment = prefect_background.environment
    subprocess.run([sys.executable, "-c", script], env=environment, check=True)
    monkeypatch.setenv("PREFECT_API_URL", prefect_background.url)
    monkeypatch.setattr("cli.server.TIMEOUT_S", 300)  # on a busy machine
    monkeypatch.setattr("cli.server.WHOLE_S", 300)
    out = tidemark("status").out
    assert "under way: at-work, Running" in out
    assert "broken: was-killed, Crashed" in out
    assert "late: 1 of of-status" in out
    assert "next: of-status at 20" in out
    assert "pool of-status: no worker" in out


@pytest.mark.parametrize("model", ["control:xz", "control:zstd"])
def test_a_revision_with_a_hyphen_counts(
    tidemark: Tidemark, store: Store, settings: Settings, tmp_path: Path, model: str
) -> None:
    """The revision of control:xz is python-3.11, for example."""
    seal(store, "2024-01", tmp_path)
    plan = plan_scoring(model, ["default"], None, [Month("2024-01")], settings)
    write_losses(plan.pending, plan.entry, settings)
    [state] = json.loads(tidemark("status", "--json", models="[]").out)["models"]
    assert (state["model"], state["num_done"]) == (model, 1)
