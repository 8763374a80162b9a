"""The objects of the warehouse, made from the ``.sql`` files of this room.

``tables/<table>.sql``, ``macros/<macro>.sql`` and ``views/<mart>/<view>.sql`` (or a table macro)
create one object each; ``landing/<statement>.sql`` and ``checks/<check>.sql`` hold what Python runs
with bound parameters; ``migrations/<version>.sql`` changes tables of the version before.
"""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml

SCHEMA_VERSION = 3
_ROOM = Path(__file__).parent
# Python's own reader takes seconds for a hundred descriptions.
_YAML: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True)
class ViewDescription:
    """What the ``.yml`` beside a view says.

    Attributes:
        description: one sentence.
        grain: the columns that tell its rows apart.
        reads: tables, views and macros that it reads.
        columns: by name, in order: description, unit and tests (not_null, min, max).
        is_internal: for other views to read, not for analysts.
    """

    description: str
    grain: tuple[str, ...]
    reads: tuple[str, ...]
    columns: dict[str, dict[str, Any]]
    is_internal: bool


@functools.cache
def describe_view(file: Path) -> ViewDescription:
    """Read the ``.yml`` beside the ``.sql`` file of a view."""
    fields = _read_yaml(file.with_suffix(".yml"))
    return ViewDescription(
        description=fields["description"],
        grain=tuple(fields["grain"]),
        reads=tuple(fields["reads"]),
        columns=fields["columns"],
        is_internal=fields.get("internal", False),
    )


def is_macro(file: Path) -> bool:
    """Whether a file of ``views/`` makes a table macro."""
    return "create or replace macro" in file.read_text(encoding="utf-8")


@functools.cache
def describe_columns() -> dict[str, dict[str, dict[str, Any]]]:
    """Return description and unit of every column of every table."""
    described: dict[str, dict[str, dict[str, Any]]] = _read_yaml(_ROOM / "tables" / "columns.yml")
    return described


def _read_yaml(file: Path) -> Any:
    return yaml.load(file.read_text(encoding="utf-8"), Loader=_YAML)  # noqa: S506 - a safe loader


@functools.cache
def read_sql(folder: str, name: str) -> str:
    """Return the text of one statement, e.g. ``read_sql("landing", "insert_losses")``."""
    return (_ROOM / folder / f"{name}.sql").read_text(encoding="utf-8")


@functools.cache
def list_tables() -> tuple[str, ...]:
    """Return the names of all tables."""
    return tuple(sorted(file.stem for file in (_ROOM / "tables").glob("*.sql")))


@functools.cache
def list_macros() -> tuple[str, ...]:
    """Return the names of the scalar macros that views use; what one uses comes before it."""
    texts = {
        file.stem: file.read_text(encoding="utf-8") for file in (_ROOM / "macros").glob("*.sql")
    }
    uses = {
        name: {other for other in texts if other != name and f"{other}(" in text}
        for name, text in sorted(texts.items())
    }
    return tuple(TopologicalSorter(uses).static_order())


@functools.cache
def list_views() -> dict[str, Path]:
    """Return the file of every view and table macro by name; what one reads comes before it."""
    files = {file.stem: file for file in sorted((_ROOM / "views").glob("*/*.sql"))}
    reads = {name: set(describe_view(file).reads) & files.keys() for name, file in files.items()}
    return {name: files[name] for name in TopologicalSorter(reads).static_order()}


@functools.cache
def list_leaf_views() -> dict[str, Path]:
    """Return the views that no other view reads: who reads these reads all.

    Table macros are not among them: a view of the same name without ``_at`` reads each.
    """
    views = list_views()
    read = {name for file in views.values() for name in describe_view(file).reads}
    return {
        name: file for name, file in views.items() if name not in read and not name.endswith("_at")
    }


@functools.cache
def list_checks(folder: str = "checks") -> tuple[str, ...]:
    """Return the names of the integrity checks of a folder."""
    return tuple(sorted(file.stem for file in (_ROOM / folder).glob("*.sql")))


@functools.cache
def digest_definitions() -> str:
    """Return a digest of the files that every object, and its reference figures, is made from."""
    files = sorted(
        file
        for folder in ("tables", "macros", "views", "reference")
        for file in (_ROOM / folder).rglob("*")
        if file.suffix in {".sql", ".yml", ".csv"}
    )
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.relative_to(_ROOM).as_posix().encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()
