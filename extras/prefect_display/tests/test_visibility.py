import json
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from core.corpus.partition import Seal
from core.settings import Settings
from extras.prefect_display.events import encode
from extras.prefect_display.tests.collector import Received, collecting
from tests.forks import run_process
from tests.loopback import wait_for
from tests.servers import ROOT, PrefectServer
from warehouse.database.writer import connected

# Its first test starts a server and a process with flows: minutes, on a machine that is busy.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]

HOSTILE = "<img src=x onerror=alert(1)> [a](b) *"
RUN = """
    from prefect import flow
    from flows.report import report
    from flows.work import work

    @flow(flow_run_name="everything")
    def everything():
        work(models=["control:zstd"])
        report()

    if __name__ == "__main__":
        everything()
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("visibility")


@pytest.fixture
def settings(home: Path) -> Settings:
    return Settings(home=str(home / "home"))


def run(server: PrefectServer, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    script = home / "everything.py"
    script.write_text(textwrap.dedent(RUN))
    environment = {**server.environment, "TIDEMARK_HOME": str(home / "home"), **more}
    return run_process(sys.executable, script, env=environment, cwd=ROOT)


def ask(server: PrefectServer, path: str, **body: Any) -> Any:
    return server.ask("POST", path, body)


@pytest.fixture(scope="module")
def spans() -> list[Received]:
    return []


@pytest.fixture
def done(
    prefect_server: PrefectServer, home: Path, seal: Callable[..., Seal], spans: list[Received]
) -> Iterator[dict[str, Any]]:
    if not (home / "home").exists():
        for source, month in (("sand", "2024-01"), ("sand", "2024-02"), (HOSTILE, "2024-01")):
            seal(source, month)
        with connected(Settings(home=str(home / "home"))):
            pass  # a copy of an empty database, which the process would take ten seconds to make
        with collecting() as (endpoint, received):
            more = {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
            more["TIDEMARK_REPORT_URL"] = "https://report.example/t/"
            ended = run(prefect_server, home, **more)
        assert ended.returncode == 0, ended.stderr
        assert "Traceback" not in ended.stderr
        spans += received
    ours = {"key": {"like_": "tidemark-%"}}  # results of tasks, of any test, are artifacts too
    found = ask(prefect_server, "artifacts/filter", artifacts=ours)
    yield {each["key"]: each for each in found}


def test_the_cells_are_a_table(done: dict[str, Any]) -> None:
    (table,) = (each for each in done.values() if each["type"] == "table")
    assert table["key"].startswith("tidemark-cells-control-zstd-")
    assert table["description"] == r"3 cells of control\:zstd."
    rows = json.loads(table["data"])
    assert len(rows) == 3
    assert "control:zstd/sand/2024-02/default" in [row["cell"] for row in rows]
    assert all(row["documents"] == 3 and row["bits per byte"] > 0 for row in rows)
    assert table["flow_run_id"]


def test_the_report_is_a_link(done: dict[str, Any]) -> None:
    assert done["tidemark-report"]["data"] == "[the site](https://report.example/t/)"


def test_assets_have_their_lineage(prefect_server: PrefectServer, done: dict[str, Any]) -> None:
    events = materialized(prefect_server)
    upstream = {
        event["resource"]["prefect.resource.id"]: {
            each["prefect.resource.id"]
            for each in event["related"]
            if each["prefect.resource.role"] == "asset"
        }
        for event in events
    }
    months = ["sand/2024-01", "sand/2024-02", f"{encode(HOSTILE)}/2024-01"]
    cells = {f"tidemark://losses/control:zstd/{month}/default" for month in months}
    for month in months:
        cell = f"tidemark://losses/control:zstd/{month}/default"
        assert upstream[cell] == {f"tidemark://corpus/{month}"}
    assert upstream["tidemark://warehouse/chunk_losses"] == cells
    assert upstream["tidemark://warehouse/snapshot"] == {"tidemark://warehouse/chunk_losses"}
    assert upstream["tidemark://report"] == {"tidemark://warehouse/snapshot"}
    facts = {event["resource"]["prefect.resource.id"]: event["payload"] for event in events}
    cell = f"tidemark://losses/control:zstd/{months[0]}/default"
    assert facts[cell]["num_tokens"] > 0
    assert len(facts[cell]["partition_digest"]) == 64


def materialized(server: PrefectServer) -> list[dict[str, Any]]:
    """Return materialisation events; the server stores them some time after receipt."""
    name = "prefect.asset.materialization.succeeded"
    chosen = {"event": {"name": [name]}}
    events: list[dict[str, Any]] = []

    def has_the_last() -> bool:
        events[:] = ask(server, "events/filter", filter=chosen, limit=50)["events"]
        ids = [each["resource"]["prefect.resource.id"] for each in events]
        return "tidemark://report" in ids

    wait_for(has_the_last, pause_s=0.3)
    return events


def test_logs_have_the_ids_of_cells(prefect_server: PrefectServer, done: dict[str, Any]) -> None:
    logs = ask(prefect_server, "logs/filter", limit=200)
    scored = [each for each in logs if each["message"].startswith("scored control:zstd on sand")]
    assert {each["level"] for each in scored} == {20}
    assert len(scored) == 2
    assert all("tokens/s" in each["message"] and each["task_run_id"] for each in scored)
    messages = {each["message"] for each in logs}
    assert "landed control:zstd: 3 new of 3 cells" in messages
    assert "score control:zstd: 3 of 3, 0 failed" in messages


def test_the_cells_are_spans_below_the_run(done: dict[str, Any], spans: list[Received]) -> None:
    [first] = (each for each in spans if each.name == "everything")
    assert first.parent == ""
    assert {each.trace for each in spans} == {first.trace}
    by_id = {each.id: each for each in spans}
    cells = [each for each in spans if each.name.startswith("score control:zstd on sand")]
    assert len(cells) == 2
    for cell in cells:
        names = [each.name for each in above(cell, by_id)]
        assert names == ["score control:zstd on gpu", "everything"]
    others = {"land control:zstd", "publish the warehouse", "write the site"}
    assert others <= {each.name for each in spans}


def above(span: Received, by_id: dict[str, Received]) -> list[Received]:
    chain = []
    while span.parent:
        span = by_id[span.parent]
        chain.append(span)
    return chain
