"""Creation of the tables, macros, views and comments of a database.

Tables of former versions are migrated. Every table, view, macro and column has a comment, which
clients can read (``from duckdb_columns()``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import duckdb

from core.version import code_version
from warehouse.database.reference import refresh_reference
from warehouse.database.schema import (
    MATERIALISED,
    SCHEMA_VERSION,
    SCHEMAS,
    alias_of,
    describe_columns,
    describe_view,
    digest_definitions,
    is_macro,
    list_macros,
    list_old_names,
    list_tables,
    list_views,
    qualify,
    read_header,
    read_sql,
    read_statement,
    read_version,
)
from warehouse.database.statements import Statements, quoted
from warehouse.land.cells import NO_PROVENANCE


def create_objects(connection: duckdb.DuckDBPyConnection) -> None:
    """Create missing tables, and create or replace all macros and views.

    Tables of a former version are migrated. Macros and views without a file are dropped. Nothing
    changes if the digest of the files, stored in the database, equals the present digest. The
    caller must have begun a transaction.

    The database must not be of a later version of tidemark (``faults.require_known``).
    """
    version, definitions = read_version(connection)
    if (version, definitions) == (SCHEMA_VERSION, digest_definitions()):
        return
    _create_tables(connection, version)
    _create_macros_and_views(connection)
    connection.execute(comment_script())
    if version == 1:
        _derive_cells(connection)
    if version < 5:
        for statement in ("read_landed", "number_cells", "group_documents", "insert_cell_kinds"):
            connection.execute(read_statement(statement))
    refresh_reference(connection)
    connection.execute(
        "update internal.schema_version set version = ?, definitions = ?, tidemark = ?",
        [SCHEMA_VERSION, digest_definitions(), code_version()],
    )


def _create_tables(connection: duckdb.DuckDBPyConnection, version: int) -> None:
    for step in range(version + 1, 4):
        connection.execute(read_sql("migrations", str(step)))
    for schema in SCHEMAS[1:]:
        connection.execute(f"create schema if not exists {schema}")
    connection.execute(read_sql("migrations", "5_reasons"))
    connection.execute(read_sql("migrations", "add_printed_model"))
    for table in list_tables():
        connection.execute(read_sql("tables", table))
    if version < 4:
        for (statement,) in connection.execute(read_sql("migrations", "4_tables")).fetchall():
            connection.execute(statement)
    if version < 3:
        connection.execute(read_sql("migrations", "3_partitions"))
    if version == 2:
        connection.execute(read_sql("migrations", "3_cells"))
    connection.execute(read_sql("migrations", "add_maker"))


def _create_macros_and_views(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(f"drop schema if exists {MATERIALISED} cascade")  # of a snapshot
    for statement in connection.execute(read_sql("migrations", "list_views_and_macros")).fetchall():
        connection.execute(statement[0])
    for macro in list_macros():
        connection.execute(read_sql("macros", macro))
    for view, file in list_views().items():
        connection.execute(read_sql(f"views/{file.parent.name}", view))
    for view in list_old_names():
        connection.execute(alias_of(view))


def _derive_cells(connection: duckdb.DuckDBPyConnection) -> None:
    """Compute sums and bootstrap replicates per cell, which schema version 1 lacks."""
    connection.register("provenance", NO_PROVENANCE)
    for statement in ("read_landed", "number_cells", "group_documents"):
        connection.execute(read_statement(statement))
    connection.execute(read_sql("migrations", "2_touched"))
    Statements(connection).delete_touched("cell_replicates")
    for statement in ("group_clusters", "insert_cells", "seed_clusters", "insert_replicates"):
        connection.execute(read_statement(statement))
    connection.unregister("provenance")
    connection.execute("drop table former_cells")


def comment_script() -> str:
    """Return an SQL script that sets the comment of every table, view, macro and column.

    COMMENT accepts no parameters in DuckDB, so texts are inserted as quoted literals.
    """
    return "\n".join(_comments())


def _comments() -> Iterator[str]:
    for table in list_tables():
        yield comment_on("table", qualify(table), text=read_header("tables", table))
        yield from comments_of_columns(qualify(table), describe_columns()[table])
    for macro in list_macros():
        yield comment_on("macro", macro, text=read_header("macros", macro))
    for view in list_views():
        yield from comments_of_view(view)


def comments_of_view(view: str) -> Iterator[str]:
    """Yield the statements that set the comments of a view or table macro and of its columns."""
    file = list_views()[view]
    described = describe_view(file)
    text = f"{described.description} One row per {', '.join(described.grain)}."
    yield comment_on("macro table" if is_macro(file) else "view", qualify(view), text=text)
    if not is_macro(file):
        yield from comments_of_columns(qualify(view), described.columns)


def comments_of_columns(relation: str, columns: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the statements that set the comments of a relation's columns."""
    for column, facts in columns.items():
        unit = f" [{facts['unit']}]" if facts.get("unit") else ""
        target = f"{relation}.{column}"
        yield comment_on("column", target, text=f"{facts['description']}{unit}")


def comment_on(kind: str, target: str, text: str) -> str:
    """Return the SQL statement that sets the comment of ``target``.

    ``kind`` is table, view, macro, macro table or column (target ``schema.table.column``).
    """
    quoted_target = ".".join('"' + name.replace('"', '""') + '"' for name in target.split("."))
    return f"comment on {kind} {quoted_target} is {quoted(text)};"
