"""The record of the only scratch folder that may write the warehouse of a data root.

    <home>/writer.json       names the writing scratch folder
    <scratch>/writer.json    an equal copy, only in the writing scratch folder

Landing writes a database in the scratch folder, and publishing copies the database into the data
root. With two scratch folders, each snapshot would lack the rows landed in the other folder. So the
data root records the first scratch folder that lands, and landing from any other folder is refused.
"""

from __future__ import annotations

import datetime as dt
import secrets
import socket
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from core.errors import StorageError, WarehouseError
from core.settings import Settings
from core.storage.store import Store

FILE = "writer.json"
_OWN_FOLDER = "the data root's own folder"  # id of a scratch folder within the data root
_MOUNT_POINT = 4  # index of the mount point among the fields of a line of mountinfo


class Writer(BaseModel):
    """The scratch folder that may write a warehouse."""

    model_config = ConfigDict(frozen=True)

    writer: str  # unique id of the scratch folder
    root: str  # the data root's path on the machine of the writer
    machine: str  # host name, for messages
    scratch: str  # the scratch folder's path, for messages
    since: AwareDatetime  # UTC


def require_writer(settings: Settings) -> None:
    """Check that this scratch folder is the recorded writer; record it if none is recorded.

    The caller must hold the lock of the database.

    Raises:
        WarehouseError: another scratch folder is the writer; the message states the remedy.
    """
    store = Store(settings.home)
    mine = _read_own_record(settings)
    recorded = read_writer(store)
    if recorded is None:
        if mine is None:
            mine = _write_record(settings)
        elif mine.root != settings.home:
            raise WarehouseError(
                f"the database in {settings.scratch} is that of {mine.root}, not of "
                f"{settings.home}: set TIDEMARK_WORK_DIR to another folder; or, if the data root "
                "was moved or emptied, run `tidemark take-over`"
            )
        with store.alone(""):
            store.create_bytes(FILE, mine.model_dump_json().encode())
        recorded = read_writer(store)
    if mine is None or recorded is None or recorded.writer != mine.writer:
        where = f"{recorded.scratch} of machine {recorded.machine}" if recorded else "elsewhere"
        raise WarehouseError(
            f"the warehouse of {settings.home} is written from {where}: rows landed here, in "
            f"{settings.scratch}, would be missing in its snapshots. Land there; if that folder is "
            "lost, run `tidemark take-over` here"
        )


def is_writer(settings: Settings) -> bool:
    """Return True if this scratch folder is the recorded writer of the warehouse."""
    mine = _read_own_record(settings)
    recorded = read_writer(Store(settings.home))
    return mine is not None and recorded is not None and mine.writer == recorded.writer


def may_write(settings: Settings) -> bool:
    """Return True if landing from this scratch folder is allowed and blocks no other machine.

    A scratch folder within the data root serves all machines. Any other scratch folder may land
    only if it is the recorded writer.
    """
    return _is_within(settings) or is_writer(settings)


def become_writer(settings: Settings) -> None:
    """Record this scratch folder as the writer; replace the record of a former writer."""
    mine = _describe(settings, _OWN_FOLDER) if _is_within(settings) else _write_record(settings)
    Store(settings.home).write_bytes(FILE, mine.model_dump_json().encode())


def read_writer(store: Store) -> Writer | None:
    """Return the recorded writer of a data root's warehouse, or None if there is none.

    Raises:
        StorageError: ``writer.json`` is damaged.
    """
    return _parse(store.read_bytes(FILE), store.url(FILE)) if store.exists(FILE) else None


def _parse(data: bytes, where: str) -> Writer:
    try:
        return Writer.model_validate_json(data)
    except ValidationError as error:
        raise StorageError(
            f"{where} does not say where the warehouse is written from; "
            "where it is, run `tidemark take-over`"
        ) from error


def _read_own_record(settings: Settings) -> Writer | None:
    """Return the record in this scratch folder, or None if the folder has none."""
    if _is_within(settings):
        return _describe(settings, _OWN_FOLDER)
    path = settings.scratch / FILE
    return _parse(path.read_bytes(), str(path)) if path.exists() else None


def _is_within(settings: Settings) -> bool:
    """Return True if the scratch folder lies in the data root and on the same volume."""
    home = Path(settings.home)
    scratch = settings.scratch
    if not settings.is_local or not scratch.is_relative_to(home):
        return False
    below_home = {str(path) for path in (scratch, *scratch.parents) if path.is_relative_to(home)}
    return not (below_home - {str(home)}) & _mounts()


def _mounts() -> set[str]:
    """Return all mount points. Volumes of a container may share a device number."""
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    return {line.split()[_MOUNT_POINT].decode("unicode_escape") for line in lines}


def _write_record(settings: Settings) -> Writer:
    """Give this scratch folder a new id, and write the record into the folder."""
    mine = _describe(settings, secrets.token_hex(16))
    Store(str(settings.scratch)).write_bytes(FILE, mine.model_dump_json().encode())
    return mine


def _describe(settings: Settings, writer: str) -> Writer:
    return Writer(
        writer=writer,
        root=settings.home,
        machine=socket.gethostname(),
        scratch=str(settings.scratch),
        since=dt.datetime.now(dt.UTC),
    )
