"""A new source is three new files and a line of the registry. The files are in ``toy/``."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOY = Path(__file__).parent / "toy"
FILES = {
    "crawlers/toy.py": TOY / "crawler.py",
    "simulator/sites/toy.py": TOY / "site.py",
    "tests/crawlers/sources/test_toy.py": TOY / "checks.py",
}
REGISTRY = "crawlers/registry.py"
START = "OPEN: tuple[str, ...] = (\n"
LINE = '    "crawlers.toy",\n'
# What runs here; of the tests, those of all sources and what they import.
COPIED = [
    "cli", "core", "crawlers", "deployments", "flows", "instruments", "models", "reports",
    "simulator", "tasks", "warehouse", "tests/crawlers/questions/scene.py",
    "pyproject.toml",
    *(f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py") if "test_" not in path.name),
    *(f"tests/crawlers/{path.name}" for path in Path(__file__).parent.glob("[!t]*.py")),
    "tests/crawlers/test_every_source.py", "tests/crawlers/test_live.py",
]  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("tree")
    for name in COPIED:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name)  # and what is compiled, which stays valid
        else:
            shutil.copy(ROOT / name, copy / name)
    for name, file in FILES.items():
        assert not (copy / name).exists()
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy / name)
    begin, rest = (
        (copy / REGISTRY).read_text(encoding="utf-8").split("OPEN: tuple[str, ...] = (\n", 1)
    )
    (copy / REGISTRY).write_text(
        f"{begin}OPEN: tuple[str, ...] = (\n{LINE}{rest}", encoding="utf-8"
    )
    return copy


def run(tree: Path, *command: str, **more: str) -> str:
    environment = environment_of(tree, **more)
    done = subprocess.run(
        [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment_of(tree: Path, **more: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],  # noqa: TID251
        "HOME": str(tree / "home"),
        "PYTHONPATH": str(tree),
        "PYTHONUNBUFFERED": "1",
        "TIDEMARK_HOME": str(tree / "data"),
        **more,
    }


CLI = ("-c", "from cli.main import main; main()")


@pytest.fixture(scope="module")
def toy_url(tree: Path) -> Iterator[str]:
    command = [sys.executable, *CLI, "simulate", "--port", "0", "--from", "2024-02", "--to"]
    with subprocess.Popen(
        [*command, "2024-03"], cwd=tree, env=environment_of(tree), stdout=subprocess.PIPE, text=True
    ) as simulator:
        assert simulator.stdout is not None
        lines = "".join(iter(simulator.stdout.readline, "Ctrl-C ends it.\n"))
        [url] = re.findall("export TIDEMARK_SITES__TOY=(.*)", lines)
        yield url
        simulator.send_signal(signal.SIGINT)


# Commands in one process, which imports all sources once: each with the address of the site.
COMMANDS = """
import json, os, sys
from cli.main import main
for address, arguments in json.loads(sys.argv.pop()):
    os.environ["TIDEMARK_SITES__TOY"] = address
    sys.argv[1:] = arguments
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def test_the_new_source_is_listed_crawled_and_simulated(tree: Path, toy_url: str) -> None:
    crawl = ["crawl", "--source", "toy", "--month", "2024-03", "--limit", "4"]
    listing = ["sources", "list", "--json"]
    # The second crawl asks the site nothing.
    jobs = [[toy_url, crawl], ["http://[::1]", crawl], [toy_url, listing]]
    told = run(tree, "-c", COMMANDS, json.dumps(jobs), TIDEMARK_REQUEST_INTERVAL_S="0")
    assert told.count("toy 2024-03: 4 documents") == 2
    assert "Letters of a town that does not exist" in told


@pytest.mark.slow
def test_its_own_tests_and_those_of_all_sources_run_on_it(tree: Path) -> None:
    chosen = ("-m", "not matrix", "-k", "toy")
    said = run(tree, "-m", "pytest", "-v", "-p", "no:cacheprovider", *chosen, "tests")
    for name in ("test_every_source", "test_toy", "test_live"):
        assert re.search(rf"{name}\.py::.* (PASSED|SKIPPED)", said)
    assert int(re.findall(r"(\d+) passed", said)[0]) > 10  # those of every source alone are 11


def test_nothing_else_was_edited(tree: Path) -> None:
    ours = {
        str(path.relative_to(tree)): path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file() and not {"__pycache__", "data", "home"} & {*path.relative_to(tree).parts}
    }
    changed = {
        name for name, data in ours.items()
        if not (ROOT / name).exists() or (ROOT / name).read_bytes() != data
    }  # fmt: skip
    assert changed == {*FILES, REGISTRY}
