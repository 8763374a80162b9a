"""Migration of a database of schema versions 1 to 4; statements are in ``land/migrations.sql``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import duckdb

from warehouse.database.statements import Statements


@contextmanager
def migrating(connection: duckdb.DuckDBPyConnection, version: int) -> Iterator[None]:
    """Make the rows of a former version those of the tables that the ``with`` block creates."""
    statements = Statements(connection)
    if version == 1:
        statements.run("rename_cells_of_1")
    if version <= 2:
        statements.run("rename_tables_of_2")
    yield
    if version <= 3:
        for (statement,) in statements.run("list_moves"):
            connection.execute(statement)
    if version <= 2:
        statements.run("insert_former_partitions")
        statements.run("touch_former_cells")
    if version == 2:
        statements.run("insert_former_cells")
    _derive_cells(statements, version)


def _derive_cells(statements: Statements, version: int) -> None:
    """Compute sums by kind of document; for version 1, also sums and replicates per cell."""
    for statement in ("read_landed", "number_cells", "group_documents"):
        statements.run(statement)
    if version == 1:
        statements.run("keep_provenance")
        statements.delete_touched("cell_replicates")
        for statement in ("group_clusters", "insert_cells", "seed_clusters", "insert_replicates"):
            statements.run(statement)
        statements.run("drop_provenance")
    statements.run("insert_cell_kinds")
