import contextlib
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
import requests
from typer.testing import CliRunner

from cli import worker
from cli.main import app
from core.errors import UsageError
from core.gpus import list_gpus
from core.month import Month
from simulator.server import serve
from simulator.world import World

ROOT = Path(__file__).resolve().parents[2]
TIDEMARK = [sys.executable, "-u", "-c", "from cli.main import main; main()"]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_simulated_web_is_served_until_it_is_ended(end: signal.Signals, tmp_path: Path) -> None:
    options = ["simulate", "--from", "2024-01", "--to", "2024-02", "--port", "0"]
    command = [*TIDEMARK, "--home", str(tmp_path), *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as simulator:
        assert simulator.stdout is not None
        first = simulator.stdout.readline()
        [url] = re.findall("http://127.0.0.1:[0-9]+/", first)
        assert "2024-01 to 2024-02, seed 0" in first
        lines = list(iter(simulator.stdout.readline, "Ctrl-C ends it.\n"))
        page = requests.get(url, timeout=600).text
        assert all(line.strip() in page for line in lines)
        [wikipedia] = [line.partition("=")[2].strip() for line in lines if "WIKIPEDIA=" in line]
        assert requests.get(f"{wikipedia}/robots.txt", timeout=600).status_code == 200
        simulator.send_signal(end)
        assert simulator.wait(timeout=600) == 0
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=600)


def free_ports(count: int) -> int:
    """Return the first of ``count`` free ports, below those that the system gives away itself."""
    for first in range(20_000, 32_000, count):
        with contextlib.ExitStack() as sockets, contextlib.suppress(OSError):
            for port in range(first, first + count):
                sockets.enter_context(socket.socket()).bind(("127.0.0.1", port))
            return first
    pytest.fail("no free ports between 20000 and 32000")


def test_simulated_sites_have_the_same_ports_at_each_start() -> None:
    world = World(0, Month("2024-01"), Month("2024-01"))
    first_port = free_ports(100)
    for _ in range(2):
        with serve(world, first_port=first_port) as web:
            ports = {int(url.rpartition(":")[2]) for url in web.urls.values()}
            assert ports == set(range(first_port, first_port + len(ports)))


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = ["simulate", "--from", "2024-01", "--to", "2024-01", "--port", port]
        done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, UsageError)
    assert port in str(done.exception)


def test_months_in_the_wrong_order_are_refused() -> None:
    done = CliRunner().invoke(app, ["simulate", "--from", "2024-03", "--to", "2024-01"])
    assert isinstance(done.exception, UsageError)


@pytest.fixture(autouse=True)
def handlers() -> object:
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


def test_a_worker_a_gpu_and_one_for_all_are_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEMARK_TEST_GPUS", "8x80")
    done = CliRunner().invoke(app, ["worker", "--gpus", "0,3", "--dry-run"])
    assert re.findall(r"^pool (\S+) .*(GPU 0|GPU 3|all GPUs) \((.*)\)$", done.output, re.M) == [
        ("gpu", "GPU 0", "simulated, 80 GiB"),
        ("gpu", "GPU 3", "simulated, 80 GiB"),
        ("gpu-all", "all GPUs", "2 GPUs"),
    ]
    done = CliRunner().invoke(app, ["worker", "--gpus", "1", "--dry-run"])
    assert "gpu-all" not in done.output


def test_without_gpus_or_a_server_the_worker_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PREFECT_API_URL", raising=False)
    for count, says in ((0, "lists no GPU; tidemark worker needs"), (2, "set PREFECT_API_URL")):
        monkeypatch.setenv("TIDEMARK_TEST_GPUS", f"{count}x80")
        done = CliRunner().invoke(app, ["worker"])
        assert isinstance(done.exception, UsageError) and says in str(done.exception)


def test_each_worker_sees_its_gpus_and_is_started_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIDEMARK_TEST_GPUS", "2x80")
    seen = tmp_path / "seen"
    script = (
        "import os\nwith open('seen', 'a') as file:\n"
        "    print(os.environ['CUDA_VISIBLE_DEVICES'], file=file)"
    )
    monkeypatch.setattr(
        worker.WorkerProcess, "command", lambda self: [sys.executable, "-c", script]
    )
    monkeypatch.setattr(worker, "PAUSE_S", 0.0)
    monkeypatch.chdir(tmp_path)
    rest, ended = time.sleep, list[bool]()

    def look(seconds: float) -> None:
        lines = seen.read_text().split() if seen.exists() else []
        if not ended and min(map(lines.count, ("GPU-0", "GPU-1", "GPU-0,GPU-1"))) > 1:
            ended.append(True)
            raise KeyboardInterrupt
        rest(0.05)

    # Not ``time.sleep`` itself: another thread would get the interrupt.
    monkeypatch.setattr(worker, "time", SimpleNamespace(sleep=look, monotonic=time.monotonic))
    worker.supervise(worker.plan_workers(list_gpus(), "here"), 8090)
    assert set(seen.read_text().split()) == {"GPU-0", "GPU-1", "GPU-0,GPU-1"}
