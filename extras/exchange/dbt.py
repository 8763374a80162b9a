"""Export of a dbt ``sources.yml`` for the public views, so that models of dbt can read them.

A schema of the database is a source of dbt: ``tidemark`` has the views of ``main``,
``tidemark_papers`` those of ``papers``. https://docs.getdbt.com/reference/source-properties
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import yaml

from core.settings import Settings
from core.version import own_version
from reports.exports.figures import exported_views, other_version
from reports.exports.files import exporting, write_manifest
from warehouse.database.schema import SNAPSHOT, ViewDescription
from warehouse.read.query import local_snapshot, opened

_KIND = "dbt"
_FILE = "sources.yml"
_ABOUT = (
    f"Views of tidemark's {SNAPSHOT}, read-only: attach the file as `{{database}}`, which is its "
    "name if it is a profile's `path`."
)
DATABASE = SNAPSHOT.partition(".")[0]  # what DuckDB calls it


def export_dbt(settings: Settings, output: Path, database: str = DATABASE) -> int:
    """Write ``sources.yml`` with the snapshot's views, and return their number.

    ``database`` is the name under which dbt's profile has the file. An earlier export in the folder
    is replaced.

    Raises:
        UsageError: there is no snapshot, or ``output`` exists and is no export.
        WarehouseError: the snapshot has another schema version.
        StorageError: writing failed; the earlier export is kept.
    """
    views = exported_views()
    with local_snapshot(settings) as path, opened(path, threads=1) as connection:
        types = _types(connection)
        tables: dict[str, list[dict[str, object]]] = {}
        for name, view in views.items():
            found = types.get((view.schema, name), {})
            if list(found) != list(view.columns):
                raise other_version(name)
            tables.setdefault(view.schema, []).append(_table(name, view, found))
    sources = [
        {
            "name": "tidemark" if schema == "main" else f"tidemark_{schema}",
            "description": _ABOUT.format(database=database),
            "database": database,
            "schema": schema,
            "tables": listed,
        }
        for schema, listed in sorted(tables.items())
    ]
    with exporting(output, _KIND) as folder:
        text = yaml.safe_dump(
            {"version": 2, "sources": sources}, sort_keys=False, allow_unicode=True
        )
        (folder / _FILE).write_text(text, encoding="utf-8")
        write_manifest(folder, _KIND, {"tidemark": own_version()})
    return len(views)


def _types(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], dict[str, str]]:
    """Return the types of columns by schema and name of the relation."""
    rows = connection.execute(
        "select schema_name, table_name, column_name, data_type from duckdb_columns() "
        "where database_name = current_database() order by schema_name, table_name, column_index"
    ).fetchall()
    found: dict[tuple[str, str], dict[str, str]] = {}
    for schema, table, column, kind in rows:
        found.setdefault((schema, table), {})[column] = kind
    return found


def _table(name: str, view: ViewDescription, types: dict[str, str]) -> dict[str, object]:
    """Return a view with its columns, as a source of dbt."""
    columns: list[dict[str, str]] = []
    for column, facts in view.columns.items():
        about = facts["description"]
        if facts.get("unit"):
            about = f"{about} [{facts['unit']}]".lstrip()
        columns.append({"name": column, "description": about, "data_type": types[column]})
    return {"name": name, "description": view.summary, "columns": columns}
