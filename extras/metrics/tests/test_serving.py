import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import requests
import yaml
from prometheus_client.parser import text_string_to_metric_families
from typer.testing import CliRunner

from cli.main import app
from core.errors import UsageError

ROOT = Path(__file__).resolve().parents[3]
TIDEMARK = [sys.executable, "-u", "-c", "from cli.main import main; main()"]


@pytest.mark.smoke
def test_a_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = CliRunner().invoke(app, ["metrics", "--port", port])
    assert isinstance(done.exception, UsageError)
    assert port in str(done.exception)


def test_figures_are_served_until_it_is_ended(tmp_path: Path) -> None:
    sealed = tmp_path / "corpus/source=a/month=2024-03/manifest.json"
    sealed.parent.mkdir(parents=True)
    sealed.write_text('{"status": "partial"}')
    command = [*TIDEMARK, "--home", str(tmp_path), "metrics", "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as exporter:
        assert exporter.stdout is not None
        url = exporter.stdout.readline().strip()
        assert re.fullmatch("http://127.0.0.1:[0-9]+/metrics", url)
        page = requests.get(url, timeout=600).text
        assert 'tidemark_partitions{source="a",status="partial"} 1.0' in page.splitlines()
        exporter.send_signal(signal.SIGTERM)
        assert exporter.wait(timeout=600) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus"]  # nothing was written
    named = {family.name for family in text_string_to_metric_families(page)}
    text = (ROOT / "docs/monitoring.md").read_text(encoding="utf-8")
    assert [name for name in named if f"`{name}`" not in text] == []
    assert set(re.findall(r"tidemark_[a-z_]+", rules(text))) <= named


def rules(text: str) -> str:
    [block] = [each for each in re.findall("```yaml\n(.*?)```", text, re.DOTALL) if "expr" in each]
    alerts = yaml.safe_load(block)["groups"][0]["rules"]
    return "\n".join(alert["expr"] for alert in alerts)
