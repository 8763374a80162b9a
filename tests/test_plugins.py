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
from tests.commands import in_one_process
from tests.crawlers.toy.site import Site
from tests.forks import ROOT, run_process
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
    options = ["--no-compile", "--no-cache-dir", "--disable-pip-version-check"]
    subprocess.run([*install, *options, "--target", str(target), str(wheel)], check=True)
    return target


def test_a_source_installed_by_pip_is_crawled_and_scored_by_a_backend_installed_by_pip(
    installed: Path, tmp_path: Path
) -> None:
    with connected(Settings(home=str(tmp_path / "data"))):
        pass  # a copy of an empty database, which the process would take ten seconds to make
    (tmp_path / "data" / "catalogue.yaml").write_text(ENTRY)
    question = "select bits_per_byte from monthly_loss where model = 'charge'"
    commands = [
        ["crawl", "--source", "toy", "--month", str(MONTH), "--limit", "4"],
        ["score", "--model", "charge", "--source", "toy"],
        ["sql", question, "--format", "csv"],
    ]
    with serve_sites([Site(World(3, MONTH - 1, MONTH))]) as web:
        environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "PYTHONPATH": f"{installed}:{ROOT}",
            "TIDEMARK_HOME": str(tmp_path / "data"),
            "TIDEMARK_SITES__TOY": web.urls["toy"],
            "TIDEMARK_REQUEST_INTERVAL_S": "0",
        }
        python, option, code, asked = in_one_process(commands)
        code += "print('torch' in sys.modules)"
        done = run_process(python, option, code, asked, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("toy 2024-03: 4 documents\n")
    assert re.findall(r"│ charge │ govuk  │ 2024-03-01 │ (\S+) ", PAGE) == ["2"]
    assert done.stdout.endswith("bits_per_byte\n2.0\nFalse\n"), "it needs no torch"
