"""`tidemark simulate`, started and ended as a person does."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests
from typer.testing import CliRunner

from core.errors import UsageError
from flows.cli import app

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_simulated_web_is_served_until_it_is_ended(end: signal.Signals, tmp_path: Path) -> None:
    code = "from flows.cli import main; main()"
    options = ["--home", str(tmp_path), "simulate", "--from", "2024-01", "--to", "2024-02"]
    command = [sys.executable, "-u", "-c", code, *options, "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as simulator:
        assert simulator.stdout is not None
        first = simulator.stdout.readline()
        [url] = re.findall("http://127.0.0.1:[0-9]+/", first)
        assert "2024-01 to 2024-02, seed 0" in first
        lines = list(iter(simulator.stdout.readline, "Ctrl-C ends it.\n"))
        page = requests.get(url, timeout=30).text
        assert all(line.strip() in page for line in lines)
        [wikipedia] = [line.partition("=")[2].strip() for line in lines if "WIKIPEDIA=" in line]
        assert requests.get(f"{wikipedia}/robots.txt", timeout=30).status_code == 200
        simulator.send_signal(end)
        assert simulator.wait(timeout=30) == 0
    with pytest.raises(requests.ConnectionError):
        requests.get(url, timeout=5)


def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(app, ["simulate", "--from", "2024-01", "--to", "2024-01",
                                        "--port", port])  # fmt: skip
    assert isinstance(done.exception, UsageError)
    assert f"port {port}" in str(done.exception)


def test_months_in_the_wrong_order_are_refused() -> None:
    done = CliRunner().invoke(app, ["simulate", "--from", "2024-03", "--to", "2024-01"])
    assert isinstance(done.exception, UsageError)
