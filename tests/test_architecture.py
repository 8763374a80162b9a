import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from crawlers.registry import OPEN, QUESTIONS
from tests.tiers import few

ROOT = Path(__file__).resolve().parents[1]
ROOMS = (
    "cli", "core", "crawlers", "deployments", "flows", "instruments", "models", "reports",
    "simulator", "tasks", "warehouse",
)  # fmt: skip
MODULES = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.py"))
BACKENDS = ("api", "compressors", "fake")


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


@cache  # a tree is compared as an object
def imports_of(tree: ast.Module) -> set[str]:
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


@pytest.mark.long
def test_no_backend_imports_another(trees: dict[Path, ast.Module]) -> None:
    for name in BACKENDS:
        others = {f"models.{other}" for other in BACKENDS if other != name}
        assert not imports_of(trees[ROOT / "models" / f"{name}.py"]) & others


def declared_in(folder: str, marker: str) -> list[str]:
    return [
        f"{folder}.{path.stem}".replace("/", ".")
        for path in sorted((ROOT / folder).glob("*.py"))
        if f"\n{marker}" in path.read_text(encoding="utf-8")
    ]


def test_no_source_imports_another_and_nothing_below_imports_a_source(
    trees: dict[Path, ast.Module],
) -> None:
    found = {
        "texts": declared_in("crawlers", "INFO = SourceInfo("),
        "questions": declared_in("crawlers/questions", "INFO = QuestionSourceInfo("),
    }
    sources = {source for modules in found.values() for source in modules}
    assert sources == {*OPEN, *QUESTIONS}
    for path in sorted((ROOT / "crawlers").rglob("*.py")):
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        others = sources - {module}
        assert not imports_of(trees[path]) & others, module


def test_the_environment_is_read_in_one_module(trees: dict[Path, ast.Module]) -> None:
    readers = {
        path
        for path, tree in trees.items()
        if re.search(r"environ|getenv", path.read_text(encoding="utf-8"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    }
    assert readers == {ROOT / "core" / "environment.py"}


# Which modules may import an HTTP client, and why: docs/adr/0053-http-clients.md.
HTTP_CLIENTS = {
    "requests": {
        "cli.server", "crawlers.web.connections",
        "crawlers.web.download", "crawlers.web.exchange", "crawlers.web.fetcher",
        "crawlers.web.ranges", "crawlers.web.urls", "extras.browser_questions.browser.session",
        "extras.import_sets.addresses",
        "extras.remote_scoring.client", "extras.serve_model.serving", "models.servers.chat",
        "models.servers.http",
    },
    "urllib3": {"crawlers.web.connections", "models.servers.chat"},
    "httpx": {"deployments.deploy", "extras.prefect_display.settling", "flows.rounds"},
    "httpx2": {"models.weights.hub"},
    "aiohttp": {"extras.object_store.client"},
    "urllib.request": {"deployments.answers"},
    "http.client": {"crawlers.web.connections"},
    "pycurl": set(), "niquests": set(), "httpcore": set(),
}  # fmt: skip


def test_http_clients_are_imported_where_they_are_named(trees: dict[Path, ast.Module]) -> None:
    found: dict[str, set[str]] = {name: set() for name in HTTP_CLIENTS}
    extras = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in (ROOT / "extras").rglob("*.py")
        if "tests" not in path.relative_to(ROOT).parts
    }
    for path, tree in (trees | extras).items():
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for name in imports_of(tree):
            for client in HTTP_CLIENTS:
                if name == client or name.startswith(f"{client}."):
                    found[client].add(module)
    assert found == {
        client: {name for name in modules if (ROOT / f"{name.replace('.', '/')}.py").exists()}
        for client, modules in HTTP_CLIENTS.items()
    }


def test_the_client_s_libraries_are_required_by_name() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = {re.split(r"[<>=\[!~ ]", each)[0] for each in project["dependencies"]}
    used = {name for name, modules in HTTP_CLIENTS.items() if modules and "." not in name}
    assert used <= required


def test_a_wheel_has_the_files_that_code_reads() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packed = {
        path
        for package, patterns in config["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    command = [
        "git",
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
        *ROOMS,
        "extras",
    ]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in listed.split("\0") if name]
    assert len(files) > 500
    without = {".py", ".md", ".sqlfluff"}
    missing = [
        path
        for path in files
        if path.exists() and path.suffix not in without and path.name not in without
        and "tests" not in path.parts and path not in packed
    ]  # fmt: skip
    assert missing == []


def test_no_room_names_the_hub(trees: dict[Path, ast.Module]) -> None:
    """The libraries of Hugging Face know it, and a setting may name another."""
    address = "https://huggingface.co"
    named = {
        path.relative_to(ROOT).as_posix()
        for path, tree in trees.items()
        if address in path.read_text(encoding="utf-8")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and node.value == address
    }
    assert named == set()


def test_every_source_has_a_test() -> None:
    folder = ROOT / "tests" / "crawlers" / "sources"
    names = [module.rpartition(".")[2] for module in OPEN]
    assert [name for name in names if not (folder / f"test_{name}.py").exists()] == []


@pytest.mark.parametrize("rooms", few([(("core", "warehouse"),), (ROOMS,)], 1), ids=len)
def test_importing_does_no_io(rooms: tuple[str, ...], tmp_path: Path) -> None:
    paths = [path.relative_to(ROOT).with_suffix("") for path in MODULES if path.stem != "__init__"]
    names = [".".join(path.parts) for path in paths if path.parts[0] in rooms]
    code = "import importlib\n" + "\n".join(f"importlib.import_module({n!r})" for n in names)
    environment = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True)
    # Prefect makes its own folder when imported; everything else is ours.
    assert [p.name for p in tmp_path.iterdir() if p.name != ".prefect"] == []
