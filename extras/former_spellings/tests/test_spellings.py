"""Former spellings of commands and options: they work, and are noted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from cli.main import app
from extras.former_spellings.spellings import list_commands, list_options, respell
from tests.test_docs import commands

Tidemark = Callable[..., Any]
COMMANDS = list_commands()


@pytest.mark.parametrize("former", [each for each in COMMANDS if each != "version"])
def test_a_former_command_is_the_present_one(former: str, tidemark: Tidemark) -> None:
    assert COMMANDS[former] in commands()
    assert former not in commands()
    # `tidemark land --help` is the help of the present group.
    option = "--nope" if former == "land" else "--help"
    ran = tidemark(*former.split(), option)
    expected = tidemark(*COMMANDS[former].split(), option)
    assert (ran.code, ran.out) == (expected.code, expected.out)
    note = f"note: `tidemark {former}` is `tidemark {COMMANDS[former]}` now"
    assert note in ran.err
    assert "note: " not in expected.err


def test_the_former_command_of_the_version_is_an_option(tidemark: Tidemark) -> None:
    former = tidemark("version").expect(0, "is `tidemark --version` now")
    assert former.out == tidemark("--version").expect(0).out


def test_former_losses_land(
    tidemark: Tidemark, losses_file: Callable[..., Path], home: Path
) -> None:
    file = losses_file("mine", num_rows=6)
    ran = tidemark("--home", home, "land", "--replace", file)
    ran.expect(0, "is `tidemark land losses` now", out="1 of 1 file landed\n")


@pytest.mark.parametrize(
    "line",
    ["land", "land --help", "land losses f", "--home land sql x", "", "--help"],
)
def test_a_present_command_is_left_alone(line: str) -> None:
    respelled = respell(line.split())
    assert respelled.arguments == line.split()
    assert respelled.notes == []


@pytest.mark.parametrize(
    ("command", "former", "present"),
    [
        (command, each.former, each.present)
        for each in list_options()
        for command in sorted(each.commands)
    ],
)
def test_a_former_option_is_the_present_one(command: str, former: str, present: str) -> None:
    words = command.split()
    group: Any = get_command(app)
    for word in words:
        group = group.commands[word]
    spellings = {spelling for parameter in group.params for spelling in parameter.opts}
    assert present in spellings

    given = ["--home", "x", *words, former, "2024-01", "--to", "2024-02"]
    respelled = respell(given)
    assert respelled.arguments == [present if word == former else word for word in given]
    [note] = respelled.notes
    assert note.startswith(f"note: `{former}` is `{present}` now")
    joined = respell([*words, f"{former}=2024-01", "--to=2024-02"])
    assert joined.arguments == [*words, f"{present}=2024-01", "--to=2024-02"]


@pytest.mark.smoke
def test_one_month_is_no_former_spelling() -> None:
    given = ["crawl", "--month", "2024-01"]
    assert respell(given).arguments == given
    assert respell(given).notes == []


def test_a_former_window_is_used(tidemark: Tidemark) -> None:
    ran = tidemark("crawl", "--month", "2024-02", "--to", "2024-01")
    ran.expect(2, "note: `--month` is `--from` now", "ends (2024-01) before it begins (2024-02)")
