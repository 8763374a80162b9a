"""Names, SQL texts and order of creation of tables, macros and views, from ``.sql`` files.

``tables/<schema>/<table>.sql``, ``macros/<macro>.sql`` and ``views/<mart>/<view>.sql`` create one
object each; files of ``views/`` may create a table macro. An extra may have a folder ``views/``,
too. Schema ``main`` is for analysts, and so is a schema of an extra, such as ``papers`` with views
that reproduce a table of a paper. Schema ``internal`` holds bookkeeping tables and intermediate
views; schema ``old`` holds aliases of views under their former names.
``land/*.sql`` and ``checks/`` hold statements that Python runs with bound parameters.
Files of ``migrations/`` list the objects of a database, and change them.
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass
from graphlib import TopologicalSorter
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.plugins import list_folders

if TYPE_CHECKING:
    import duckdb

SCHEMA_VERSION = 5
# Tables with rows in snapshots only.
ESTIMATES = (
    "cutoff_estimates",
    "forecast_effects",
    "month_shortfalls",
    "panel_differences",
    "panel_difficulty",
    "panel_effects",
    "question_effects",
    "shared_figures",
)
MATERIALISED = "materialised"  # schema of a snapshot, with the rows of some views
SNAPSHOT = "warehouse.duckdb"  # path of the published snapshot under the data root
WRITER = "writer.duckdb"  # path of the database that landing writes, under the scratch folder
_ROOM = Path(__file__).parents[1]
_HEADING = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_SECTION = re.compile(r"^-{10} ", re.MULTILINE)
_RELATION = re.compile(r"\b(?:from|join)\s+(?:\w+\.)?(\w+)")
_CREATED = re.compile(
    r"create or replace (?:view|macro) (?:(?P<schema>\w+)\.)?\w+(?P<parameters>\([^)]*\))?"
)


@dataclass(frozen=True)
class ViewCode:
    """The facts that the ``.sql`` file of a view states."""

    schema: str  # main, internal or that of an extra
    parameters: str  # of a table macro, such as ``(split_on)``; empty for a view
    reads: frozenset[str]  # tables, views and table macros in the view's SQL


@dataclass(frozen=True)
class ViewDescription:
    """The description of a view, from its ``.yml``, its ``.sql`` and ``views/columns.yml``."""

    description: str  # one sentence
    grain: tuple[str, ...]  # columns that identify a row
    columns: dict[str, dict[str, Any]]  # description, unit and tests by name
    schema: str  # main, internal or that of an extra
    readers: tuple[str, ...]  # files of the repository that query the view
    parameters: str  # of a table macro, such as ``(split_on)``; empty for a view

    @property
    def is_internal(self) -> bool:
        """True for a view of schema ``internal``, which analysts do not read."""
        return self.schema == "internal"

    @property
    def summary(self) -> str:
        """Description, grain, and a warning if some rows are means over others."""
        text = f"{self.description} One row per {', '.join(self.grain)}."
        if self.is_internal or "scope" not in self.columns:
            return text
        return f"{text} Select one scope before you average or count rows."


@functools.cache
def read_view_code(file: Path) -> ViewCode:
    """Return the facts that a view's ``.sql`` file states; its ``.yml`` is not read."""
    text = file.read_text(encoding="utf-8")
    code = "\n".join(line.partition("--")[0] for line in text.splitlines())
    created = _CREATED.search(code)
    if created is None:
        raise ValueError(f"{file}: expected `create or replace view` or `create or replace macro`")
    reads = frozenset(_RELATION.findall(code)) & _relations()
    return ViewCode(created["schema"] or "main", created["parameters"] or "", reads)


@functools.cache
def describe_view(file: Path) -> ViewDescription:
    """Return the description of the view that a ``.sql`` file creates.

    Descriptions and units of columns come from ``views/columns.yml`` by column name, unless the
    ``.yml`` file of the view has its own. If it only lists the names of columns, their facts are
    those of ``<view>_details``, or of the macro ``<view>_at``.
    """
    fields = _read_yaml(file.with_suffix(".yml"))
    code = read_view_code(file)
    return ViewDescription(
        description=fields["description"],
        grain=tuple(fields["grain"]),
        columns=_facts_of_columns(file),
        schema=code.schema,
        readers=tuple(fields.get("readers", ())),
        parameters=code.parameters,
    )


def _facts_of_columns(file: Path) -> dict[str, dict[str, Any]]:
    """Return description, unit and tests of a view's columns; see ``describe_view``."""
    columns = _read_yaml(file.with_suffix(".yml"))["columns"]
    if isinstance(columns, list):
        longer = {f"{file.stem}_details", f"{file.stem}_at"} & list_views().keys()
        facts = _facts_of_columns(list_views()[max(longer)])  # _details rather than _at
        return {name: facts[name] for name in columns}
    shared = _read_yaml(_ROOM / "views" / "columns.yml")
    return {name: {**shared.get(name, {}), **facts} for name, facts in columns.items()}


@functools.cache
def _relations() -> frozenset[str]:
    return frozenset(list_tables()) | {file.stem for file in _view_files()}


def is_macro(file: Path) -> bool:
    """Return True if a file of ``views/`` creates a table macro."""
    return "create or replace macro" in file.read_text(encoding="utf-8")


def describe_columns() -> dict[str, dict[str, dict[str, Any]]]:
    """Return description and unit of every column, by table and column."""
    return _read_yaml(_ROOM / "tables" / "columns.yml")  # type: ignore[no-any-return]


@functools.cache
def _read_yaml(file: Path) -> Any:
    import yaml  # late, as queries do not need it

    # The C loader is faster: PyYAML's Python loader takes seconds for a hundred files.
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(file.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - a safe loader


@functools.cache
def read_sql(folder: str, name: str) -> str:
    """Return the text of a file with one statement, e.g. ``read_sql("macros", "day_of")``.

    Each name is unique within ``folder`` and its subfolders.
    """
    [file] = (_ROOM / folder).rglob(f"{name}.sql")
    return file.read_text(encoding="utf-8")


@functools.cache
def read_statements() -> dict[str, str]:
    """Return the statements of ``land/*.sql`` by the name in their heading, ``-- name: <name>``.

    Extras have such folders, too. Each name is unique in all files. The comment of a statement
    belongs to it.
    """
    statements: dict[str, str] = {}
    folders = [_ROOM / "land", *list_folders("land")]
    for file in chain.from_iterable(sorted(folder.glob("*.sql")) for folder in folders):
        _, *pieces = _HEADING.split(file.read_text(encoding="utf-8"))
        for name, text in zip(pieces[::2], pieces[1::2], strict=True):
            if name in statements:
                raise ValueError(f"{file}: the name {name} comes a second time; choose another")
            # A rule of ten hyphens begins the comment of the next section of the file.
            statements[name] = _SECTION.split(text)[0].rstrip() + "\n"
    return statements


def read_header(folder: str, name: str) -> str:
    """Return the complete sentences of a ``.sql`` file's first comment line."""
    line = read_sql(folder, name).partition("\n")[0].removeprefix("--").strip()
    return line[: line.rindex(".") + 1]


@functools.cache
def list_tables() -> dict[str, str]:
    """Return the schema of every table, by table name."""
    files = sorted((_ROOM / "tables").glob("*/*.sql"), key=lambda file: file.stem)
    return {file.stem: file.parent.name for file in files}


@functools.cache
def list_schemas() -> tuple[str, ...]:
    """Return the schemas of a database: ``main`` first, with those of extras."""
    of_views = {read_view_code(file).schema for file in _view_files()}
    return ("main", *sorted((of_views | {"internal", "old"}) - {"main"}))


def qualify(name: str) -> str:
    """Return the schema-qualified name of a relation, e.g. ``internal.sound_cells``."""
    tables = list_tables()
    if name in tables:
        return f"{tables[name]}.{name}"
    return f"{read_view_code(list_views()[name]).schema}.{name}"


def public_name(view: str) -> str:
    """Return the name by which analysts ask for a view: without a schema for ``main``."""
    return qualify(view).removeprefix("main.")


def read_old_names(folder: Path) -> dict[str, str]:
    """Return the former names of views of ``main``, each with the query that gives its rows.

    The file ``old.yml`` in a folder of views lists them. A view that only moved to another schema
    has no query there. The key of a table macro ends with the parameters: ``gap_at(split_on)``.
    """
    file = folder / "old.yml"
    if not file.exists():
        return {}
    queries: dict[str, str] = {}
    for entry in _read_yaml(file):
        if isinstance(entry, dict):
            queries |= entry
        else:
            parameters = read_view_code(list_views()[entry]).parameters
            queries[f"{entry}{parameters}"] = f"from {qualify(entry)}{parameters}"
    return queries


def list_aliases() -> tuple[str, ...]:
    """Return the statements that create the views and table macros of schema ``old``."""
    statements = []
    for folder in _view_folders():
        for name, query in read_old_names(folder).items():
            if "(" in name:
                statements.append(f"create macro old.{name} as table {query}")
            else:
                statements.append(f"create view old.{name} as {query}")
    return tuple(statements)


def find_schema(connection: duckdb.DuckDBPyConnection, table: str) -> str | None:
    """Return the schema that holds a table, or None if the database lacks it.

    Databases of versions 1 to 3 have all tables in schema ``main``.
    """
    text = read_sql("migrations", "find_schema")
    found = connection.execute(text, {"table_name": table}).fetchall()
    return str(found[0][0]) if found else None


@dataclass(frozen=True)
class DatabaseVersion:
    """The facts that a database states about its objects; former versions state fewer."""

    version: int  # of the schema
    definitions: str | None = None  # digest of the files that created the objects
    tidemark: str | None = None  # the version that created the objects
    catalogue: str | None = None  # digest of the columns of tables and views


def read_version(connection: duckdb.DuckDBPyConnection) -> DatabaseVersion:
    """Return the version facts stored in a database; an empty one has the present version."""
    schema = find_schema(connection, "schema_version")
    if schema is None:
        return DatabaseVersion(SCHEMA_VERSION)
    row = connection.table(f"{schema}.schema_version").to_arrow_table().to_pylist()[0]
    return DatabaseVersion(
        version=int(row["version"]),
        definitions=row.get("definitions"),
        tidemark=row.get("tidemark"),
        catalogue=row.get("catalogue"),
    )


@functools.cache
def list_macros() -> tuple[str, ...]:
    """Return the names of the scalar macros; a macro comes after the macros that it uses."""
    files = sorted((_ROOM / "macros").glob("*.sql"))
    uses: dict[str, set[str]] = {}
    for file in files:
        text = file.read_text(encoding="utf-8")
        uses[file.stem] = {each.stem for each in files if each != file and f"{each.stem}(" in text}
    return tuple(TopologicalSorter(uses).static_order())


def _view_folders() -> list[Path]:
    """Return the folders of views: that of the kernel first, then those of extras."""
    return [_ROOM / "views", *list_folders("views")]


def _view_files() -> list[Path]:
    files: list[Path] = []
    for folder in _view_folders():
        files += sorted(folder.glob("*/*.sql"))
    return files


def read_view(name: str) -> str:
    """Return the statement that creates a view or table macro."""
    return list_views()[name].read_text(encoding="utf-8")


@functools.cache
def list_views() -> dict[str, Path]:
    """Return files of views and table macros by name, each after the views that it reads."""
    files = {file.stem: file for file in _view_files()}
    reads = {
        name: read_view_code(file).reads & files.keys() - {name} for name, file in files.items()
    }
    return {name: files[name] for name in TopologicalSorter(reads).static_order()}


@functools.cache
def digest_definitions() -> str:
    """Return a digest of all files that define tables, macros, views and reference figures."""
    folders = [_ROOM / "tables", _ROOM / "macros", _ROOM / "reference", *_view_folders()]
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted(folder.rglob("*")):
            if file.suffix in {".sql", ".yml", ".csv"}:
                digest.update(file.relative_to(folder.parent).as_posix().encode())
                digest.update(file.read_bytes())
    return digest.hexdigest()
