"""Packages of other projects, installed by pip, add sources and backends."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from core.month import Month
from core.settings import Settings
from simulator.server import serve_sites
from simulator.world import World
from tests.crawlers.toy.site import Site
from tests.forks import ROOT
from warehouse.database.writer import connected

MONTH = Month("2024-03")
ENTRY_POINTS = """[tidemark.sources]
toy = letters_of_a_town

[tidemark.backends]
two_bits = two_bits:BACKEND
"""
TOY = ROOT / "tests" / "crawlers" / "toy" / "crawler.py"
PAGE = (ROOT / "docs" / "add-a-backend.md").read_text(encoding="utf-8")
[BACKEND] = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
[ENTRY] = re.findall(r"```yaml\n(# catalogue.yaml under.*?\n.*kind: two_bits.*\n)```", PAGE)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel of a crawler and of a backend, and install it with pip, without network."""
    folder = tmp_path_factory.mktemp("stranger")
    wheel = folder / "letters_of_a_town-1-py3-none-any.whl"
    facts = "letters_of_a_town-1.dist-info"
    files = {
        "letters_of_a_town.py": TOY.read_text(encoding="utf-8"),
        "two_bits.py": BACKEND,
        f"{facts}/METADATA": "Metadata-Version: 2.1\nName: letters-of-a-town\nVersion: 1\n",
        f"{facts}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{facts}/entry_points.txt": ENTRY_POINTS,
    }
    listed = "".join(f"{name},,\n" for name in [*files, f"{facts}/RECORD"])
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in {**files, f"{facts}/RECORD": listed}.items():
            archive.writestr(name, text)
    install = [sys.executable, "-m", "pip", "install", "--no-index", "--no-deps", "--quiet"]
    target = folder / "packages"
    subprocess.run([*install, "--target", str(target), str(wheel)], check=True)
    return target


def tidemark(installed: Path, home: Path, *arguments: str, **more: str) -> str:
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "PYTHONPATH": f"{installed}:{ROOT}",
        "TIDEMARK_HOME": str(home / "data"),
        **more,
    }
    command = [sys.executable, "-c", "from cli.main import main; main()", *arguments]
    done = subprocess.run(
        command, cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_source_installed_by_pip_is_crawled_and_scored_by_a_backend_installed_by_pip(
    installed: Path, tmp_path: Path
) -> None:
    with serve_sites([Site(World(3, MONTH - 1, MONTH))]) as web:
        sites = {"TIDEMARK_SITES__TOY": web.urls["toy"], "TIDEMARK_REQUEST_INTERVAL_S": "0"}
        asked = ("crawl", "--source", "toy", "--month", str(MONTH), "--limit", "4")
        assert "toy 2024-03: 4 documents" in tidemark(installed, tmp_path, *asked, **sites)
    (tmp_path / "data" / "catalogue.yaml").write_text(ENTRY)
    with connected(Settings(home=str(tmp_path / "data"))):
        pass  # a copy of an empty database, which the process would take ten seconds to make
    tidemark(installed, tmp_path, "score", "--model", "charge", "--source", "toy")
    question = "select bits_per_byte from monthly_loss where model = 'charge'"
    answer = tidemark(installed, tmp_path, "sql", question, "--format", "csv")
    assert answer.split() == ["bits_per_byte", "2.0"]
