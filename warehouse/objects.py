"""The objects of a database: made as their files say, and brought forward from former versions."""

from __future__ import annotations

import duckdb

from core.errors import WarehouseError
from warehouse.comments import comment_script
from warehouse.lake import is_lake
from warehouse.own_cells import NO_PROVENANCE
from warehouse.published_figures import refresh_published_figures, refresh_tag_groups
from warehouse.schema import (
    SCHEMA_VERSION,
    digest_definitions,
    list_macros,
    list_tables,
    list_views,
    read_sql,
)

_VERSION = "select version, definitions from schema_version"


def create_objects(connection: duckdb.DuckDBPyConnection) -> None:
    """Create the tables that are missing, and every macro and view as its file says.

    Tables of a former version are migrated; objects that no file makes any more are dropped.
    Nothing is done where the objects are those of our files already. Call it in a transaction.

    Raises:
        WarehouseError: the file was written by a later version of tidemark.
    """
    if _has_current_objects(connection):
        return
    version = _read_version(connection)
    if version > SCHEMA_VERSION:
        raise WarehouseError(
            f"the warehouse has schema version {version}, this tidemark knows {SCHEMA_VERSION}; "
            "use the newer tidemark, or another TIDEMARK_HOME"
        )
    for former in range(version, SCHEMA_VERSION):
        connection.execute(read_sql("migrations", str(former + 1)))
    for table in list_tables():
        connection.execute(read_sql("tables", table))
    _create_macros_and_views(connection)
    if not is_lake(connection):  # its catalogue would keep every version of every comment
        connection.execute(comment_script())
    if version < 3:
        connection.execute(read_sql("migrations", "3_partitions"))
    if version == 2:
        connection.execute(read_sql("migrations", "3_cells"))
    if version == 1:
        _derive_cells(connection)
    refresh_published_figures(connection)
    refresh_tag_groups(connection)
    connection.execute(
        "update schema_version set version = ?, definitions = ?",
        [SCHEMA_VERSION, digest_definitions()],
    )


def _has_current_objects(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the objects are those of our files already."""
    return _read_version(connection) == SCHEMA_VERSION and (
        _read_definitions(connection) == digest_definitions()
    )


def _has_version(connection: duckdb.DuckDBPyConnection) -> bool:
    text = read_sql("migrations", "count_version_tables")
    [(num_tables,)] = connection.execute(text).fetchall()
    return bool(num_tables)


def _read_version(connection: duckdb.DuckDBPyConnection) -> int:
    """Return the version of the tables; that of a new database is ours."""
    if not _has_version(connection):
        return SCHEMA_VERSION
    [(version,)] = connection.execute("select max(version) from schema_version").fetchall()
    return int(version)


def _read_definitions(connection: duckdb.DuckDBPyConnection) -> str | None:
    if not _has_version(connection):
        return None
    [(definitions,)] = connection.execute("select definitions from schema_version").fetchall()
    return str(definitions)


def _create_macros_and_views(connection: duckdb.DuckDBPyConnection) -> None:
    for statement in connection.execute(read_sql("migrations", "list_views_and_macros")).fetchall():
        connection.execute(statement[0])
    for macro in list_macros():
        connection.execute(read_sql("macros", macro))
    for view, file in list_views().items():
        connection.execute(read_sql(f"views/{file.parent.name}", view))


def _derive_cells(connection: duckdb.DuckDBPyConnection) -> None:
    """Make the sums and replicates of the cells of version 1 as landing makes them."""
    connection.execute(read_sql("landing", "read_landed"))
    connection.execute(read_sql("landing", "number_cells"))
    connection.execute(read_sql("landing", "group_documents"))
    connection.execute(read_sql("migrations", "2_touched"))
    connection.execute(read_sql("landing", "group_clusters"))
    connection.register("provenance", NO_PROVENANCE)
    connection.execute(read_sql("landing", "insert_cells"))
    connection.unregister("provenance")
    connection.execute(read_sql("landing", "empty_cell_replicates"))
    connection.execute(read_sql("landing", "seed_clusters"))
    connection.execute(read_sql("landing", "insert_replicates"))
    connection.execute("drop table former_cells")
