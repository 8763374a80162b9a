"""Each extra can be deleted: the rest does not need it."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cli.terminal.registry import Commands
from core.plugins import import_parts, list_extras
from extras import REGISTERED
from tests.forks import run_process
from tests.tiers import few

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "cli", "core", "crawlers", "deployments", "flows", "instruments", "models", "reports",
    "simulator", "tasks", "warehouse",
)  # fmt: skip
CHECK = ROOT / "tests" / "without_extra.py"
# The rooms are installed in place; without this, an import of a deleted extra would find it there.
NOT_IN_PLACE = """import sys
sys.meta_path = [each for each in sys.meta_path if "editable" not in str(each).lower()]
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
    (folder / "sitecustomize.py").write_text(NOT_IN_PLACE)
    return folder


def python_in(tree: Path, *arguments: object) -> "subprocess.CompletedProcess[str]":
    environment = {"PATH": os.defpath, "HOME": str(tree), "PYTHONPATH": str(tree)}
    return run_process(sys.executable, "-P", *arguments, cwd=tree, env=environment)


def commands_of(name: str) -> list[str]:
    tables: list[Commands] = [
        part.COMMANDS for part in import_parts("commands") if part.__name__.split(".")[1] == name
    ]
    return [command for table in tables for panel in table.values() for command in panel]


def messages_of(path: Path) -> list[str]:
    """Return the strings of a module that are no docstrings; of another file, its paragraphs."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return [" ".join(each.split()) for each in re.split(r"\n\s*\n|\n(?=- )|</p>", text)]
    tree = ast.parse(text)
    is_no_message = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            is_no_message.add(id(node.value))
        elif isinstance(node, ast.JoinedStr):
            is_no_message |= {id(part) for part in node.values}
    found = []
    for node in ast.walk(tree):
        if id(node) in is_no_message:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = [each.value for each in node.values if isinstance(each, ast.Constant)]
            found.append("".join(map(str, parts)))
    return found


def unnamed_extras(message: str, owners: dict[str, str], own: str) -> list[str]:
    """Return the commands of other extras that a message advises without the extra's name."""
    commands = "|".join(sorted(owners, key=len, reverse=True))
    found = re.findall(rf"tidemark ({commands})\b", message)
    rest = re.sub(rf"tidemark (?:{commands})\b", "", message)
    return [each for each in found if owners[each] != own and owners[each] not in rest]


def test_a_message_that_names_a_command_of_an_extra_names_the_extra() -> None:
    """The command is missing where the extra is deleted, and the message stays."""
    owners = {command: name for name in list_extras() for command in commands_of(name)}
    paths = [
        path
        for room in (*ROOMS, "extras")
        for suffix in ("py", "yml", "j2")
        for path in (ROOT / room).rglob(f"*.{suffix}")
        if "tests" not in path.parts
    ]
    assert len(paths) > 500
    found = []
    for path in paths:
        place = path.relative_to(ROOT)
        own = place.parts[1] if place.parts[0] == "extras" else ""
        for message in messages_of(path):
            unnamed = unnamed_extras(message, owners, own)
            found += [f"{place}: {command}" for command in unnamed]
    assert found == []


def test_an_extra_that_is_not_named_is_found() -> None:
    owners = {"land rates": "imported_results", "xray": "xray"}
    assert unnamed_extras("run `tidemark land rates`", owners, "") == ["land rates"]
    assert unnamed_extras("run `tidemark xray`", owners, "") == ["xray"]
    assert unnamed_extras("run `tidemark xray` (extra `xray`)", owners, "") == []
    assert unnamed_extras("run `tidemark xray`", owners, "xray") == []


@pytest.mark.parametrize("name", few(list_extras(), 1))
def test_registries_and_commands_work_without_an_extra(name: str, tmp_path: Path) -> None:
    has_views = (ROOT / "extras" / name / "views").exists()
    done = python_in(tree_without(name, tmp_path), CHECK, name, has_views)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("^score ", done.stdout, re.MULTILINE)
    for command in commands_of(name):
        assert not re.search(rf"^{command} ", done.stdout, re.MULTILINE), command


@pytest.mark.parametrize("name", list_extras())
def test_an_extra_has_a_page_and_tests(name: str) -> None:
    folder = ROOT / "extras" / name
    assert (folder / "README.md").read_text(encoding="utf-8").startswith("# ")
    tests = "".join(path.read_text() for path in (folder / "tests").rglob("test_*.py"))
    assert "pytest.mark.smoke" in tests, "`make test` runs at least one test of each extra"


def test_no_page_links_to_an_extra() -> None:
    pages = [ROOT / "README.md", ROOT / "extras" / "README.md", *(ROOT / "docs").rglob("*.md")]
    links = re.compile(r"\]\([./]*extras/\w+/")
    assert [page.name for page in pages if links.search(page.read_text(encoding="utf-8"))] == []


def test_links_of_an_extras_page_lead_somewhere() -> None:
    broken = []
    for page in (ROOT / "extras").rglob("*.md"):
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in link and not (page.parent / link).exists():
                broken.append(f"{page}: {link}")
    assert broken == []


def test_each_extra_is_in_the_list() -> None:
    listed = re.findall(
        r"^\| `(\w+)` \|", (ROOT / "extras" / "README.md").read_text(), re.MULTILINE
    )
    assert listed == list(REGISTERED)


def test_nothing_outside_an_extra_imports_it() -> None:
    """Nothing in the kernel and no test, benchmark or other extra imports an extra."""
    found = []
    folders = [ROOT / name for name in (*ROOMS, "benchmarks", "extras", "tests", "tools")]
    statement = re.compile(r"^\s*(?:from|import) extras\.(\w+)", re.MULTILINE)
    for path in (path for folder in folders for path in folder.rglob("*.py")):
        place = path.relative_to(ROOT)
        own = place.parts[1] if place.parts[0] == "extras" else ""
        for other in statement.findall(path.read_text(encoding="utf-8")):
            if other != own:
                found.append(f"{place} imports extras.{other}")
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize("name", list_extras())
def test_the_quick_tests_pass_without_an_extra(name: str, tmp_path: Path) -> None:
    """Delete an extra from a copy of the tree; import all modules, and run the quick tests."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    files = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in filter(None, files.split("\0")):
        if (ROOT / file).exists() and not file.startswith(f"extras/{name}/"):
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, tmp_path / file)
    (tmp_path / "sitecustomize.py").write_text(NOT_IN_PLACE)
    quick = "not (server or process or torch or matrix or slow or long)"
    done = python_in(tmp_path, "-m", "pytest", "-q", "-m", quick, "tests", "extras")
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr
