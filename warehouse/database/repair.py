"""Faults of the writer's database and of the snapshot, with advice to the user."""

from __future__ import annotations

from pathlib import Path

from core.errors import NewerVersion
from core.plugins import import_parts
from core.settings import Settings
from core.storage.store import Store
from warehouse.database.faults import ADVICE_ON_NEWER, Fault, find_fault
from warehouse.database.schema import SNAPSHOT, WRITER

_ADVICE = {  # by kind of fault; for other kinds, an extra finds copies that can be read
    "newer": ADVICE_ON_NEWER,
    "forbidden": "Run the command as the owner of the file, or let this user read and write it "
    "(chown, chmod)",
    "busy": "Let that process end, then run the same command again",
}
SKIPPED = ("busy", "missing")  # kinds of faults that are not reported


def find_writer_fault(settings: Settings, max_rows: int | None = None) -> Fault | None:
    """Return the fault of the writer's database, or None; lock the database meanwhile.

    While another process lands, or where this user may not take the lock, the fault is of kind
    ``busy``, and the file is not read.
    """
    from filelock import FileLock, Timeout  # late, as queries do not need it

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
    """Return the fault of the published snapshot, or None.

    A snapshot in an object store is not fetched; only its absence is a fault.
    """
    if not Store(settings.home).exists(SNAPSHOT):
        return Fault("is missing", "missing")
    if not settings.is_local:
        return None
    return find_fault(Path(settings.home) / SNAPSHOT, max_rows)


def require_known_databases(settings: Settings) -> None:
    """Check that no later version wrote the databases here, before a command writes anything.

    Files that are missing, in use or damaged raise no error here.

    Raises:
        NewerVersion: the message names the version that wrote a database, and a remedy.
    """
    found = {
        str(settings.scratch / WRITER): find_writer_fault(settings, max_rows=0),
        Store(settings.home).url(SNAPSHOT): find_snapshot_fault(settings, max_rows=0),
    }
    for name, fault in found.items():
        if fault and fault.kind == "newer":
            raise NewerVersion(f"{name} {fault.reason}. {ADVICE_ON_NEWER}")


def advise_on_writer(settings: Settings, fault: Fault) -> str:
    """Return advice about a fault of the writer's database."""
    return _advise("on_writer", settings, fault)


def advise_on_snapshot(settings: Settings, fault: Fault) -> str:
    """Return advice about a fault of the published snapshot."""
    return _advise("on_snapshot", settings, fault)


def _advise(function: str, settings: Settings, fault: Fault) -> str:
    """Return fixed advice for the kind of fault, else that of ``function`` of an extra."""
    advice = _ADVICE.get(fault.kind)
    if advice:
        return advice
    for part in import_parts("database_advice"):
        return str(getattr(part, function)(settings))
    return (
        "Delete nothing: bring the file back from a backup (docs/backup.md). The extra `repair`, "
        "which is missing, tells which copies can be read, and makes the warehouse again"
    )
