"""Commands of extras and of other packages."""

import importlib
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cli.terminal import registry
from core import plugins

TABLE = """
def greet_command() -> None:
    "Say hello."
    print("hello")

COMMANDS = {"Other instruments": {"greet": greet_command, "check greetings": greet_command}}
"""


@pytest.fixture(autouse=True)
def _no_cache() -> Iterator[None]:
    """Search for extras anew in each test."""
    for find in (plugins.import_parts, plugins.list_entry_points):
        find.cache_clear()
    yield
    for find in (plugins.import_parts, plugins.list_entry_points):
        find.cache_clear()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Make a package `extras` in place of the repository's, with two names and one folder."""
    before = {name: sys.modules.pop(name) for name in _modules_of_extras()}
    greeter = tmp_path / "extras" / "greeter"
    greeter.mkdir(parents=True)
    (greeter.parent / "__init__.py").write_text('REGISTERED = ("greeter", "deleted")')
    (greeter / "__init__.py").touch()
    (greeter / "commands.py").write_text(TABLE)
    (greeter.parent / "deleted").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield greeter.parent
    for name in _modules_of_extras():
        del sys.modules[name]
    sys.modules.update(before)


def _modules_of_extras() -> list[str]:
    return [name for name in sys.modules if name == "extras" or name.startswith("extras.")]


def command_line() -> typer.Typer:
    app = typer.Typer()
    registry.add_commands(app, {"Trust": {"check": typer.Typer()}})
    for table in registry.list_tables():
        registry.add_commands(app, table)
    return app


def test_commands_of_an_extra_are_there(packages: Path) -> None:
    for command in (["greet"], ["check", "greetings"]):
        assert CliRunner().invoke(command_line(), command).output == "hello\n"


def test_an_extra_without_commands_adds_none(packages: Path) -> None:
    (packages / "greeter" / "commands.py").unlink()
    importlib.invalidate_caches()
    assert list(registry.list_tables()) == []


def test_without_extras_nothing_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "find_spec", lambda name: None)
    assert list(registry.list_tables()) == []


def test_commands_of_another_package_are_there(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    point = EntryPoint("greeter", "extras.greeter.commands", "tidemark.commands")
    (packages / "__init__.py").write_text("REGISTERED = ()")
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    assert CliRunner().invoke(command_line(), ["greet"]).output == "hello\n"


def test_a_kind_of_an_unknown_verb_is_refused() -> None:
    with pytest.raises(KeyError, match="no group of commands 'nope'"):
        registry.add_commands(typer.Typer(), {"Trust": {"nope x": lambda: None}})
