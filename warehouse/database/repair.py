"""Advice about a writer's database or a snapshot that cannot be read.

The advice follows the case: which copies can be read is found out by reading them. No advice says
that a file is to be deleted before another copy of it was read in full.
"""

from __future__ import annotations

from pathlib import Path

from core.errors import NewerVersion, TidemarkError
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.faults import ADVICE_ON_NEWER, QUICK_ROWS, Fault, find_fault
from warehouse.database.lock import is_writer, read_writer
from warehouse.database.schema import SNAPSHOT, WRITER

_ADVICE = {  # by kind of fault, for kinds of which no copy must be read
    "newer": ADVICE_ON_NEWER,
    "forbidden": "Run the command as the owner of the file, or let this user read and write it "
    "(chown, chmod)",
    "busy": "Let that process end, then run the same command again",
}
SKIPPED = ("busy", "missing")  # kinds of faults of which nothing is to be told
_LAND_AGAIN = "land again what came from other people's files"


def find_writer_fault(settings: Settings, max_rows: int | None = None) -> Fault | None:
    """Return why the writer's database cannot be read, or None; nobody can land meanwhile.

    While another process lands, or where this user may not take the lock, the fault is of kind
    ``busy``, and the file is not read.
    """
    from filelock import FileLock, Timeout  # a query of the snapshot does not need it

    path = settings.scratch / WRITER
    if not path.exists():
        return Fault("is missing", "missing")
    lock = FileLock(f"{path}.lock")
    try:
        lock.acquire(timeout=0)
    except (Timeout, OSError):
        return Fault("is being written, or its lock belongs to another user", "busy")
    try:
        return find_fault(path, max_rows)
    finally:
        lock.release()


def find_snapshot_fault(settings: Settings, max_rows: int | None = None) -> Fault | None:
    """Return why the published snapshot cannot be read, or None.

    A snapshot in an object store is not fetched: it is only missing, or not.
    """
    if not Store(settings.home).exists(SNAPSHOT):
        return Fault("is missing", "missing")
    if not settings.is_local:
        return None
    return find_fault(Path(settings.home) / SNAPSHOT, max_rows)


def require_known_databases(settings: Settings) -> None:
    """Check that no later version wrote the databases here, before a command writes anything.

    Files that are missing, in use or damaged are left to the steps that need them.

    Raises:
        NewerVersion: names the version that wrote a database, and what to do.
    """
    found = {
        str(settings.scratch / WRITER): find_writer_fault(settings, max_rows=0),
        Store(settings.home).url(SNAPSHOT): find_snapshot_fault(settings, max_rows=0),
    }
    for name, fault in found.items():
        if fault and fault.kind == "newer":
            raise NewerVersion(f"{name} {fault.reason}. {ADVICE_ON_NEWER}")


def find_faults(settings: Settings) -> dict[str, str]:
    """Take a quick look at the snapshot and this folder's database; return what to do by fault.

    Files that are missing or in use are no fault. Large tables, and a snapshot in an object store,
    are not read.
    """
    found = {}
    writer = find_writer_fault(settings, QUICK_ROWS)
    if writer and writer.kind not in SKIPPED:
        found[f"{settings.scratch / WRITER} {writer.reason}"] = advise_on_writer(settings, writer)
    store = Store(settings.home)
    snapshot = find_snapshot_fault(settings, QUICK_ROWS)
    if snapshot and snapshot.kind not in SKIPPED:
        advice = advise_on_snapshot(settings, snapshot)
        found[f"{store.url(SNAPSHOT)} {snapshot.reason}"] = advice
    return found


def advise_on_writer(settings: Settings, fault: Fault) -> str:
    """Return what to do about a fault of the writer's database."""
    advice = _ADVICE.get(fault.kind)
    if advice:
        return advice
    snapshot = Store(settings.home).url(SNAPSHOT)
    other = find_snapshot_fault(settings)
    if other is None:
        return (
            "Delete nothing: run `tidemark rebuild`. It makes the database again, from the cells "
            f"and the published snapshot {snapshot}, which can be read, and keeps the damaged file "
            f"beside it. Then {_LAND_AGAIN} since the last publication"
        )
    return f"The published snapshot {snapshot} {other.reason}. {_without_both(settings)}"


def advise_on_snapshot(settings: Settings, fault: Fault) -> str:
    """Return what to do about a fault of the published snapshot."""
    advice = _ADVICE.get(fault.kind)
    if advice:
        return advice
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
