"""Commands of extras and of other projects' packages.

An extra has its commands in ``extras/<name>/commands.py``, and a package of another project names
such a module as an entry point of the group ``tidemark.commands``. The module has a table
``COMMANDS``: functions or groups, by panel of the help and name. A name of two words, such as
``check losses``, adds a command to a group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import typer

from core.plugins import import_parts, list_entry_points

Commands = Mapping[str, Mapping[str, Callable[..., None] | typer.Typer]]
# `tidemark shell` passes the arguments after -- to the DuckDB client.
_CONTEXTS: dict[str, dict[str, bool]] = {"shell": {"allow_extra_args": True}}


@dataclass(frozen=True)
class FormerOption:
    """A former spelling of an option of some commands."""

    former: str
    present: str
    commands: frozenset[str]  # in their present spelling
    beside: str | None = None  # the former option is replaced only if this option is given, too


def add_commands(app: typer.Typer, panels: Commands) -> None:
    """Add the commands of a table to the command line."""
    for panel, commands in panels.items():
        for name, command in commands.items():
            group, _, verb = name.rpartition(" ")
            parent = _find_group(app, group) if group else app
            shown_in = None if group else panel
            if isinstance(command, typer.Typer):
                parent.add_typer(command, name=verb, rich_help_panel=shown_in)
            else:
                context = _CONTEXTS.get(name)
                add = parent.command(verb, rich_help_panel=shown_in, context_settings=context)
                add(command)


def _find_group(app: typer.Typer, name: str) -> typer.Typer:
    for group in app.registered_groups:
        if group.name == name and group.typer_instance is not None:
            return group.typer_instance
    raise KeyError(f"no group of commands {name!r}")


def list_tables() -> Iterator[Commands]:
    """Yield the tables of commands of extras that are there, then those of other packages."""
    for module in import_parts("commands"):
        yield module.COMMANDS
    for point in list_entry_points("commands"):
        yield point.load().COMMANDS
