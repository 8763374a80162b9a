"""Each extra can be deleted: the rest does not need it."""

import re
import sys
from pathlib import Path

import pytest

from core.plugins import list_extras
from tests.forks import run_process

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "cli", "core", "crawlers", "deployments", "flows", "instruments", "models", "reports", "scylla",
    "simulator", "tasks", "warehouse",
)  # fmt: skip
SMOKE = """
import sys
from typer.testing import CliRunner
from cli.main import app
from core.plugins import list_extras
from core.settings import Settings
from crawlers.questions.contract import list_question_sources, load_question_crawler
from crawlers.registry import list_all_sources, load_crawler
from models.backends import list_backends
from models.catalogue import list_models
from scylla.puzzle import find_puzzles
from simulator.server import site_kinds

deleted = sys.argv[1]
assert deleted not in list_extras()
sources = [load_crawler(name) for name in list_all_sources()]
questions = [load_question_crawler(name) for name in list_question_sources()]
assert len(sources) > 10 and len(questions) > 2
assert len(list(site_kinds())) > 10
kinds = {each.kind for each in list_backends()}
assert {each.kind for each in list_models(Settings())} <= kinds
assert len(find_puzzles()) >= 20
done = CliRunner().invoke(app, ["--help"])
assert done.exit_code == 0, done.output
print(done.output)
assert not [name for name in sys.modules if name.startswith(f"extras.{deleted}.")]
"""


def tree_without(name: str, folder: Path) -> Path:
    """Make a tree of links to the rooms, and to all extras but one."""
    for room in ROOMS:
        (folder / room).symlink_to(ROOT / room)
    (folder / "extras").mkdir()
    (folder / "extras" / "__init__.py").symlink_to(ROOT / "extras" / "__init__.py")
    for other in list_extras():
        if other != name:
            (folder / "extras" / other).symlink_to(ROOT / "extras" / other)
    return folder


@pytest.mark.parametrize("name", list_extras())
def test_registries_and_commands_work_without_an_extra(name: str, tmp_path: Path) -> None:
    tree = tree_without(name, tmp_path)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "PYTHONPATH": str(tree)}
    done = run_process(sys.executable, "-c", SMOKE, name, cwd=tree, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    for command in commands_of(name):
        assert not re.search(rf"^\W*{command} ", done.stdout, re.MULTILINE), command


def commands_of(name: str) -> list[str]:
    file = ROOT / "extras" / name / "commands.py"
    if not file.exists():
        return []
    commands = __import__(f"extras.{name}.commands", fromlist=["COMMANDS"]).COMMANDS
    return [command for panel in commands.values() for command in panel]


@pytest.mark.parametrize("name", list_extras())
def test_an_extra_has_a_page_and_tests(name: str) -> None:
    folder = ROOT / "extras" / name
    assert (folder / "README.md").read_text(encoding="utf-8").startswith("# ")
    assert list((folder / "tests").rglob("test_*.py"))


def test_no_page_links_to_an_extra() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    linked = [page for page in pages if "](../extras/" in page.read_text(encoding="utf-8")]
    assert linked == []


def test_no_test_or_benchmark_outside_extras_imports_one() -> None:
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    importing = [
        path
        for path in files
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.lstrip().startswith(("from extras", "import extras"))
    ]
    assert importing == []
