"""The objects of the warehouse, made from the ``.sql`` files of this room.

``tables/<table>.sql`` and ``views/<mart>/<view>.sql`` (or a table macro) create one object each;
``landing/<statement>.sql`` and ``checks/<check>.sql`` hold what Python runs with bound parameters.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import duckdb
import yaml

from core.errors import WarehouseError

SCHEMA_VERSION = 1
_ROOM = Path(__file__).parent


@dataclass(frozen=True)
class ViewDescription:
    """What the ``.yml`` beside a view says.

    Attributes:
        description: one sentence.
        grain: the columns that tell its rows apart.
        reads: tables, views and macros that it reads.
        columns: by name, in order: description, unit and tests (not_null, min, max).
    """

    description: str
    grain: tuple[str, ...]
    reads: tuple[str, ...]
    columns: dict[str, dict[str, Any]]


def describe_view(file: Path) -> ViewDescription:
    """Read the ``.yml`` beside the ``.sql`` file of a view."""
    fields = yaml.safe_load(file.with_suffix(".yml").read_text(encoding="utf-8"))
    return ViewDescription(
        description=fields["description"],
        grain=tuple(fields["grain"]),
        reads=tuple(fields["reads"]),
        columns=fields["columns"],
    )


@functools.cache
def read_sql(folder: str, name: str) -> str:
    """Return the text of one statement, e.g. ``read_sql("landing", "insert_losses")``."""
    return (_ROOM / folder / f"{name}.sql").read_text(encoding="utf-8")


@functools.cache
def list_tables() -> tuple[str, ...]:
    """Return the names of all tables."""
    return tuple(sorted(file.stem for file in (_ROOM / "tables").glob("*.sql")))


@functools.cache
def list_views() -> dict[str, Path]:
    """Return the file of every view and table macro by name; what one reads comes before it."""
    files = {file.stem: file for file in sorted((_ROOM / "views").glob("*/*.sql"))}
    reads = {name: set(describe_view(file).reads) & files.keys() for name, file in files.items()}
    return {name: files[name] for name in TopologicalSorter(reads).static_order()}


@functools.cache
def list_checks() -> tuple[str, ...]:
    """Return the names of the integrity checks."""
    return tuple(sorted(file.stem for file in (_ROOM / "checks").glob("*.sql")))


def create_objects(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that are missing, and every view as its file says.

    Raises:
        WarehouseError: the file was written by a later version of tidemark.
    """
    for table in list_tables():
        connection.execute(read_sql("tables", table))
    [(version,)] = connection.execute("select max(version) from schema_version").fetchall()
    if version > SCHEMA_VERSION:
        raise WarehouseError(
            f"the warehouse has schema version {version}, this tidemark knows {SCHEMA_VERSION}; "
            "use the newer tidemark, or another TIDEMARK_HOME"
        )
    for view, file in list_views().items():
        connection.execute(read_sql(file.parent.relative_to(_ROOM).as_posix(), view))
