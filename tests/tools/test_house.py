"""The checks of ``make check`` find the faults that they are for, and none here."""

from pathlib import Path

import pytest

from tools import limits, walks, words
from tools.cycles import cycles_of
from tools.files import is_product
from tools.house import CHECKS
from tools.reliable_tests import source_faults


@pytest.mark.parametrize(
    ("line", "is_fault"),
    [
        ("assert time.monotonic() - began < 3", True),
        ("took = time.monotonic() - began\n    assert took < 3", True),
        ("assert 0.5 <= time.monotonic() - began", False),
        ("time.sleep(0.5)\n    assert done", True),
        ("x = random.random()", True),
        ("x = random.Random().random()", True),
        ("x = random.Random(7).random()", False),
        ("assert sum(nats) == loss", True),
        ("assert sum(nats) == pytest.approx(loss)", False),
        ("assert math.log(x) == y", True),
        ("assert sum(counts) == num", False),
        ("assert scores[1] == scores[5]", True),
        ("threading.Timer(1, end).start()\n    began = time.monotonic()", True),
        ("began = time.monotonic()\n    threading.Timer(1, end).start()", False),
        ("assert ended.wait(30)", True),
        ("assert ended.wait(600)", False),
        ("while not file.exists():\n        time.sleep(0.1)", True),
        ("while not file.exists() and not future.done():\n        time.sleep(0.1)", False),
        ("for path in store.list('claims/*'):\n        store.read_bytes(path)", True),
        ("for path in store.list('losses/*'):\n        store.read_bytes(path)", False),
        ("pool.submit(f)\n    for path in folder.glob('*'):\n        path.read_text()", True),
        ("probe.bind(('127.0.0.1', 0))\n    port = probe.getsockname()[1]", True),
        ("server.bind(('127.0.0.1', 0))\n    server.listen()", False),
        ("size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss", True),
        ("pool = ProcessPoolExecutor(4)", True),
    ],
)
def test_unreliable_tests_are_found(line: str, is_fault: bool) -> None:
    assert bool(source_faults("x.py", f"def test():\n    {line}\n")) == is_fault


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ('"""Whether it is."""\n', "x.py:1: begin with a verb or a noun: 'Whether it is.'"),
        (f'"""Say {"so " * 25}."""\n', "x.py:1: 27 words in a sentence"),
        ("raise KeyError('which rivals it')\n", "x.py:1: 'rivals'"),
        ("x = 1  # as ever\n", "x.py:1: 'as ever'"),
        ('"""Return a number."""\n', ""),
    ],
)
def test_words_that_are_not_plain_are_found(source: str, fault: str) -> None:
    found = words.source_faults("x.py", source)
    assert [text.startswith(fault) for text in found] == ([True] if fault else [])


def test_what_is_too_large_is_found() -> None:
    long = "def f():\n" + "    x = 1\n" * 60
    [fault] = limits.file_faults("x.py", f'"""Have a function."""\n{long}')
    assert fault.startswith("x.py:2: f has 61 lines, at most 60")
    assert limits.file_faults("x.py", f'"""Have lines."""\n{long[:-10]}') == []
    faults = limits.file_faults("x.py", "x = 1\n" * 401)
    assert [fault.split(":")[2].split(",")[0] for fault in faults] == [
        " no docstring says what the module is", " 401 lines",
    ]  # fmt: skip
    many = [Path(f"core/m{number}.py") for number in range(21)]
    assert limits.folder_faults(many[:20]) == []
    assert limits.folder_faults(many)[0].startswith("core: 21 modules, at most 20")


def test_cycles_are_found_with_all_their_folders() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "f": {"a"}}
    assert cycles_of(graph) == [frozenset("abc")]
    assert cycles_of({"a": {"b"}, "b": {"c"}}) == []


def test_a_walk_names_files_that_exist_and_states_their_number() -> None:
    head = "## Walks\n\n| item | files | way |\n|---|---|---|\n"
    row = "| text | 2 | `crawlers/<source>.py`, `core/settings.py` │ |\n"
    assert walks.page_faults(head + row) == []
    [fault] = walks.page_faults(head + row.replace("| 2 |", "| 3 |"))
    assert "3 files stated, 2 listed" in fault
    [fault] = walks.page_faults(head + row.replace("settings", "no_settings"))
    assert "there is no core/no_settings.py" in fault
    assert "no walk" in walks.page_faults("## Rooms\n")[0]


def test_extras_are_product_and_their_tests_are_not() -> None:
    assert is_product(Path("extras/lake/publish.py"))
    for name in ("extras/lake/tests/test_x.py", "tests/x.py", "tools/house.py", "x.py"):
        assert not is_product(Path(name))


def test_each_check_is_listed_with_a_docstring() -> None:
    for name in CHECKS:
        module = __import__(name, fromlist=["faults"])
        assert module.__doc__
        assert callable(module.faults)
