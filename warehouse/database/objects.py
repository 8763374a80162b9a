"""Creation of the tables, macros, views and comments of a database.

Tables of former versions are migrated by the extra ``former_formats``.
"""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager, ExitStack

import duckdb

from core.errors import WarehouseError
from core.plugins import import_parts
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


def create_objects(connection: duckdb.DuckDBPyConnection) -> None:
    """Create missing tables, and create or replace all macros and views.

    Tables of a former version are migrated. Macros and views without a file are dropped. Nothing
    changes if the digest of the files, stored in the database, equals the present digest. The
    caller must have begun a transaction.

    The database must not be of a later version of tidemark (``faults.require_known``).

    Raises:
        WarehouseError: the database is of a former version, and the extra that migrates is missing.
    """
    found = read_version(connection)
    if found.version == SCHEMA_VERSION and found.definitions == digest_definitions():
        return
    with ExitStack() as stack:
        if found.version < SCHEMA_VERSION:
            stack.enter_context(_migrating(connection, found.version))
        _create_tables(connection)
        _create_macros_and_views(connection)
        connection.execute("\n".join(list_comments()))
        compute_views(connection)
    refresh_reference(connection)
    connection.execute(
        "update internal.schema_version "
        "set version = ?, definitions = ?, tidemark = ?, catalogue = ?",
        [SCHEMA_VERSION, digest_definitions(), code_version(), digest_catalogue(connection)],
    )


def digest_catalogue(connection: duckdb.DuckDBPyConnection) -> str:
    """Return a digest of the columns of all tables and views, and of the parameters of macros.

    While the digest equals the one that ``create_objects`` stored, all views can be read, since
    DuckDB bound them at creation. A snapshot and the writer's database have equal digests.
    """
    found = connection.execute(read_sql("migrations", "list_catalogue"), {"kept": MATERIALISED})
    return hashlib.sha256(repr(found.fetchall()).encode()).hexdigest()


def _migrating(connection: duckdb.DuckDBPyConnection, version: int) -> AbstractContextManager[None]:
    """Return a context in which rows of a former schema version move to the present tables."""
    for part in import_parts("migrations"):
        migrating: AbstractContextManager[None] = part.migrating(connection, version)
        return migrating
    raise WarehouseError(
        f"the database has schema version {version}; the extra former_formats, which is missing, "
        f"makes version {SCHEMA_VERSION} of it: put the extra back, then run the same command again"
    )


def _create_tables(connection: duckdb.DuckDBPyConnection) -> None:
    for schema in list_schemas()[1:]:  # the first is ``main``, which always exists
        connection.execute(f"create schema if not exists {schema}")
    connection.execute(read_sql("migrations", "5_leftovers"))
    for table in list_tables():
        connection.execute(read_sql("tables", table))


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
