"""Former spellings of commands and options, which work for one release with a note on stderr.

No help shows them. To end a spelling, delete its line. The module ``commands`` of an extra may have
``FORMER`` and ``FORMER_OPTIONS``, as ``COMMANDS`` and ``OPTIONS`` here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cli.terminal.registry import FormerOption
from core.plugins import import_parts

COMMANDS = {
    "canary": "check numerics",
    "import-html": "import html",
    "import-texts": "import texts",
    "land": "land losses",
    "version": "--version",
}
# Words after `tidemark land` with which it is the present command; extras add theirs.
_PRESENT_AFTER_LAND = {"losses", "-h", "--help"}

OPTIONS = (
    FormerOption(
        "--month",
        "--from",
        frozenset({"crawl", "forecast answer", "forecast crawl", "score", "status"}),
        beside="--to",
    ),
    FormerOption("--field", "--column", frozenset({"import texts"})),
)  # fmt: skip


@dataclass(frozen=True)
class CommandLine:
    """Arguments in their present spelling, and a note for each former spelling."""

    arguments: list[str]
    notes: list[str]


def list_commands() -> dict[str, str]:
    """Return the present spelling of each former command, of extras too."""
    commands = dict(COMMANDS)
    for part in import_parts("commands"):
        commands |= getattr(part, "FORMER", {})
    return commands


def list_options() -> list[FormerOption]:
    """Return the former spellings of options, of extras too."""
    options = list(OPTIONS)
    for part in import_parts("commands"):
        options.extend(getattr(part, "FORMER_OPTIONS", ()))
    return options


def respell(arguments: Sequence[str]) -> CommandLine:
    """Return the arguments of `tidemark` with former spellings replaced."""
    start = _find_command(arguments)
    options = list(arguments[:start])
    words = list(arguments[start:])
    notes = []
    former = _former_command(words)
    if former is not None:
        present = list_commands()[former]
        words[: len(former.split())] = present.split()
        notes.append(_note(f"tidemark {former}", f"tidemark {present}"))
    for option in list_options():
        if not _begins_with_any(words, option.commands):
            continue
        if option.beside is not None and not _is_given(words, option.beside):
            continue
        if _is_given(words, option.former):
            words = [_respell_option(word, option) for word in words]
            notes.append(_note(option.former, option.present))
    return CommandLine(options + words, notes)


def _find_command(arguments: Sequence[str]) -> int:
    """Return the index of the command: the first argument that is no option of `tidemark`."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        has_value = arguments[index] == "--home"
        index += 2 if has_value else 1
    return index


def _former_command(words: Sequence[str]) -> str | None:
    """Return the former command that the words begin with; None if it is a present one."""
    for former in list_commands():
        if not _begins_with_any(words, {former}):
            continue
        is_present = former == "land" and (len(words) == 1 or words[1] in _list_words_after_land())
        return None if is_present else former
    return None


def _list_words_after_land() -> set[str]:
    """Return the words that may follow ``land`` today."""
    words = set(_PRESENT_AFTER_LAND)
    for part in import_parts("commands"):
        for commands in part.COMMANDS.values():
            words |= {name.removeprefix("land ") for name in commands if name.startswith("land ")}
    return words


def _begins_with_any(words: Sequence[str], commands: set[str] | frozenset[str]) -> bool:
    return " ".join(words[:1]) in commands or " ".join(words[:2]) in commands


def _is_given(words: Sequence[str], option: str) -> bool:
    return any(word == option or word.startswith(f"{option}=") for word in words)


def _respell_option(word: str, option: FormerOption) -> str:
    name, equals, value = word.partition("=")
    return f"{option.present}{equals}{value}" if name == option.former else word


def _note(former: str, present: str) -> str:
    return f"note: `{former}` is `{present}` now; the next release will not know the former"
