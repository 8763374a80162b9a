"""Creation of the tables, macros, views and comments of a database.

Tables of former versions are migrated.
"""

from __future__ import annotations

import hashlib

import duckdb

from core.version import code_version
from warehouse.database.comments import list_comments
from warehouse.database.materialised import compute_views, keep_rows, list_materialised
from warehouse.database.reference import refresh_reference
from warehouse.database.schema import (
    MATERIALISED,
    SCHEMA_VERSION,
    digest_definitions,
    list_aliases,
    list_macros,
    list_schemas,
    list_tables,
    list_views,
    read_sql,
    read_version,
    read_view,
)
from warehouse.database.statements import Statements


def create_objects(connection: duckdb.DuckDBPyConnection) -> None:
    """Create missing tables, and create or replace all macros and views.

    Tables of a former version are migrated. Macros and views without a file are dropped. Nothing
    changes if the digest of the files, stored in the database, equals the present digest. The
    caller must have begun a transaction.

    The database must not be of a later version of tidemark (``faults.require_known``).
    """
    found = read_version(connection)
    if found.version == SCHEMA_VERSION and found.definitions == digest_definitions():
        return
    _create_tables(connection, found.version)
    _create_macros_and_views(connection)
    connection.execute("\n".join(list_comments()))
    compute_views(connection)
    if found.version < 5:
        _derive_cells(connection, found.version)
    refresh_reference(connection)
    connection.execute(
        "update internal.schema_version "
        "set version = ?, definitions = ?, tidemark = ?, catalogue = ?",
        [SCHEMA_VERSION, digest_definitions(), code_version(), digest_catalogue(connection)],
    )


def digest_catalogue(connection: duckdb.DuckDBPyConnection) -> str:
    """Return a digest of the columns of all tables and views, and of the parameters of macros.

    While it is the one that ``create_objects`` stored, all views can be read: DuckDB has bound them
    at their creation. The digest of a snapshot is that of the writer's database.
    """
    found = connection.execute(read_sql("migrations", "list_catalogue"), {"kept": MATERIALISED})
    return hashlib.sha256(repr(found.fetchall()).encode()).hexdigest()


def _create_tables(connection: duckdb.DuckDBPyConnection, version: int) -> None:
    for step in range(version + 1, 4):
        connection.execute(read_sql("migrations", str(step)))
    for schema in list_schemas()[1:]:
        connection.execute(f"create schema if not exists {schema}")
    connection.execute(read_sql("migrations", "5_reasons"))
    for table in list_tables():
        connection.execute(read_sql("tables", table))
    if version < 4:
        for (statement,) in connection.execute(read_sql("migrations", "4_tables")).fetchall():
            connection.execute(statement)
    if version < 3:
        connection.execute(read_sql("migrations", "3_partitions"))
    if version == 2:
        connection.execute(read_sql("migrations", "3_cells"))


def _create_macros_and_views(connection: duckdb.DuckDBPyConnection) -> None:
    """Create all macros and views again; the materialised views are empty tables first.

    DuckDB binds a view at its creation, with all views that it reads, directly or through others.
    With the materialised views as tables, this takes a third of the time.
    """
    connection.execute(f"drop schema if exists {MATERIALISED} cascade")  # of a snapshot
    for statement in connection.execute(read_sql("migrations", "list_views_and_macros")).fetchall():
        connection.execute(statement[0])
    for macro in list_macros():
        connection.execute(read_sql("macros", macro))
    connection.execute(f"create schema {MATERIALISED}")
    materialised = list_materialised()
    for view in list_views():
        connection.execute(read_view(view))
        if view in materialised:
            keep_rows(connection, view, "limit 0")
    for alias in list_aliases():
        connection.execute(alias)


def _derive_cells(connection: duckdb.DuckDBPyConnection, version: int) -> None:
    """Compute sums by kind of document; for version 1, also sums and replicates per cell."""
    statements = Statements(connection)
    for statement in ("read_landed", "number_cells", "group_documents"):
        statements.run(statement)
    if version == 1:
        connection.execute(read_sql("migrations", "2_touched"))
        statements.delete_touched("cell_replicates")
        for statement in ("group_clusters", "insert_cells", "seed_clusters", "insert_replicates"):
            statements.run(statement)
        connection.execute("drop table provenance")
    statements.run("insert_cell_kinds")
