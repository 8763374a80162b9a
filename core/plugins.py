"""Find modules, folders and entry points of extras and of other projects' packages.

An extra is a folder of ``extras/`` that is named in ``extras.REGISTERED``. An extra whose folder is
missing adds nothing. A package of another project states an entry point, in the group
``tidemark.sources`` for example.
"""

from __future__ import annotations

import importlib
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType


def list_extras() -> list[str]:
    """Return the names of the installed extras, in the order of ``REGISTERED``."""
    if not _is_there("extras"):
        return []
    registered: tuple[str, ...] = importlib.import_module("extras").REGISTERED
    return [name for name in registered if _is_there(f"extras.{name}")]


@cache
def import_parts(part: str) -> tuple[ModuleType, ...]:
    """Import the module ``part``, such as ``sources``, of each extra that has one."""
    names = [f"extras.{name}.{part}" for name in list_extras()]
    return tuple(importlib.import_module(name) for name in names if _is_there(name))


@cache
def list_folders(part: str) -> tuple[Path, ...]:
    """Return the folder ``part``, such as ``entries``, of each extra that has one."""
    found = []
    for name in list_extras():
        for folder in importlib.import_module(f"extras.{name}").__path__:
            if (Path(folder) / part).is_dir():
                found.append(Path(folder) / part)
    return tuple(found)


@cache
def list_entry_points(registry: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of the group ``tidemark.<registry>``, ordered by name."""
    found = entry_points(group=f"tidemark.{registry}")
    return tuple(sorted(found, key=lambda point: point.name))


def _is_there(module: str) -> bool:
    # A deleted package may leave a folder without code, which has no origin.
    spec = find_spec(module)
    return spec is not None and spec.origin is not None
