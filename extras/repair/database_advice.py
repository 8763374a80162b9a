"""Advice about a writer's database or a snapshot that cannot be read.

The advice follows the case: which copies can be read is found out by reading them. No advice says
that a file is to be deleted before another copy of it was read in full.
"""

from __future__ import annotations

from pathlib import Path

from core.errors import TidemarkError
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.lock import is_writer, read_writer
from warehouse.database.repair import find_snapshot_fault, find_writer_fault
from warehouse.database.schema import SNAPSHOT, WRITER

_LAND_AGAIN = "land again what came from other people's files"


def on_writer(settings: Settings) -> str:
    """Return what to do about a writer's database that cannot be read."""
    snapshot = Store(settings.home).url(SNAPSHOT)
    other = find_snapshot_fault(settings)
    if other is None:
        return (
            "Delete nothing: run `tidemark rebuild`. It makes the database again, from the cells "
            f"and the published snapshot {snapshot}, which can be read, and keeps the damaged file "
            f"beside it. Then {_LAND_AGAIN} since the last publication"
        )
    return f"The published snapshot {snapshot} {other.reason}. {_without_both(settings)}"


def on_snapshot(settings: Settings) -> str:
    """Return what to do about a published snapshot that cannot be read."""
    named = _writer_elsewhere(settings)
    if named:
        return f"Delete nothing: run `tidemark publish` on {named}, which makes it again"
    path = settings.scratch / WRITER
    other = find_writer_fault(settings)
    if other is None:
        is_folder = (Path(settings.home) / SNAPSHOT).is_dir()
        first = "move it to another place, then " if is_folder else ""
        return (
            f"Delete nothing: {first}run `tidemark publish`, which makes it again from {path}, the "
            "writer's database, which can be read"
        )
    if other.kind == "busy":
        return "Delete nothing: another process lands now; run `tidemark publish` when it has ended"
    return f"The writer's database {path} {other.reason}. {_without_both(settings)}"


def _without_both(settings: Settings) -> str:
    """Return what to do if writer's database and snapshot are both damaged."""
    snapshot = Store(settings.home).url(SNAPSHOT)
    return (
        f"Delete nothing: bring {snapshot} back from a backup (docs/backup.md), then run `tidemark "
        "rebuild`. Without a backup, run `tidemark rebuild --partial`: it lands all cells again "
        f"and keeps the damaged files; then {_LAND_AGAIN}"
    )


def _writer_elsewhere(settings: Settings) -> str | None:
    """Return where the warehouse is written, if this is not the place."""
    try:
        named = read_writer(Store(settings.home))
        if named is None or is_writer(settings):
            return None
    except TidemarkError:
        return None
    return f"machine {named.machine}, where {named.scratch} is"
