"""Comparison of a new snapshot with the published one, which it would replace.

A warehouse that was lost and created again has few rows. If it were published, it would replace the
only other copy of the missing rows.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

import duckdb

from core.errors import CheckFailed
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.faults import find_fault
from warehouse.database.schema import SNAPSHOT, find_schema
from warehouse.read.query import connect_to_read, local_snapshot

_SHOWN = 5  # the number of missing models or months in a message


@dataclass(frozen=True)
class Extent:
    """The number of losses, and the models and months, of a snapshot."""

    num_losses: int  # rows of chunk_losses
    models: frozenset[str]
    months: frozenset[dt.date]  # first days


def require_no_shrinking(settings: Settings, new: duckdb.DuckDBPyConnection) -> None:
    """Check that a new snapshot has at least half of the losses, models and months published.

    ``new`` is a connection to the file that is to be published.
    Nothing is checked if nothing is published, or if the published snapshot cannot be read.

    Raises:
        CheckFailed: the message names the missing rows, models and months.
    """
    if not Store(settings.home).exists(SNAPSHOT):
        return
    with local_snapshot(settings) as path:
        try:
            with connect_to_read(path) as connection:
                former = read_extent(connection)
        except duckdb.Error:  # damaged: a new snapshot is the remedy
            return
        lacks = _missing(former, read_extent(new))
        if lacks and find_fault(path):
            return
    if lacks:
        raise CheckFailed(
            f"not published: the new snapshot would lack {'; '.join(lacks)}. The former snapshot "
            "stays. If the rows are lost by accident, run `tidemark rebuild` (extra "
            "`repair`), which lands all cells again; if this is wanted, run `tidemark publish "
            "--shrink`"
        )


def read_extent(connection: duckdb.DuckDBPyConnection) -> Extent:
    """Return the extent of a database of any schema version."""
    schema = find_schema(connection, "chunk_losses")
    if schema is None:
        return Extent(0, frozenset(), frozenset())
    [(num_losses,)] = connection.execute(
        f"select count(*) from {schema}.chunk_losses"  # noqa: S608 - a name of ours
    ).fetchall()
    cell_schema = find_schema(connection, "landed_cells")  # None in early versions
    table = f"{cell_schema}.landed_cells" if cell_schema else f"{schema}.chunk_losses"
    keys = connection.execute(
        f"select distinct model, month from {table}"  # noqa: S608 - a name of ours
    ).fetchall()
    models = frozenset(str(model) for model, _ in keys)
    months = frozenset(month for _, month in keys if month is not None)
    return Extent(int(num_losses), models, months)


def _missing(former: Extent, new: Extent) -> list[str]:
    """Return a description of each quantity of which more than half is missing."""
    lacks = []
    if new.num_losses * 2 < former.num_losses:
        num_missing = former.num_losses - new.num_losses
        lacks.append(f"{num_missing:,} of {former.num_losses:,} losses")
    if len(former.models & new.models) * 2 < len(former.models):
        missing = sorted(former.models - new.models)
        lacks.append(f"{len(missing):,} of {len(former.models):,} models ({_some(missing)})")
    if len(former.months & new.months) * 2 < len(former.months):
        gone = [f"{month:%Y-%m}" for month in sorted(former.months - new.months)]
        lacks.append(f"{len(gone):,} of {len(former.months):,} months ({_some(gone)})")
    return lacks


def _some(names: list[str]) -> str:
    more = ", …" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
