"""The plan of the house holds: who imports whom is checked by lint-imports, the rest here."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from crawlers.contract import list_sources

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "core",
    "crawlers",
    "flows",
    "models",
    "reports",
    "scylla",
    "simulator",
    "tasks",
    "warehouse",
)
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
SCORERS = {"causal_lm", "compressors", "fake", "remote", "rwkv"}


def imports_of(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def test_import_contracts_hold() -> None:
    lint = Path(sys.executable).parent / "lint-imports"
    done = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("source", list_sources())
def test_a_crawler_never_imports_another(source: str) -> None:
    others = {f"crawlers.{name}" for name in list_sources() if name != source}
    assert not imports_of(ROOT / "crawlers" / f"{source}.py") & others


@pytest.mark.parametrize("scorer", sorted(SCORERS))
def test_a_scorer_never_imports_another(scorer: str) -> None:
    others = {f"models.{name}" for name in SCORERS - {scorer}}
    assert not imports_of(ROOT / "models" / f"{scorer}.py") & others


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_the_environment_is_read_in_settings_alone(path: Path) -> None:
    reads = {
        node.attr
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    }
    assert not reads or path == ROOT / "core" / "settings.py"


@pytest.mark.parametrize("source", list_sources())
def test_every_source_has_a_test(source: str) -> None:
    assert (ROOT / "tests" / "crawlers" / f"test_{source}.py").exists()


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


def test_importing_does_no_io(tmp_path: Path) -> None:
    names = [
        ".".join(p.relative_to(ROOT).with_suffix("").parts) for p in MODULES if p.stem != "__init__"
    ]
    code = "import importlib\n" + "\n".join(f"importlib.import_module({n!r})" for n in names)
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    # Prefect makes its own folder when imported; everything else is ours.
    assert [p.name for p in tmp_path.iterdir() if p.name != ".prefect"] == []
