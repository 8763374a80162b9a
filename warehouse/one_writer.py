"""The one scratch folder that the embedded warehouse of a data root is written from.

    <home>/writer.json       which, for everybody to see
    <scratch>/writer.json    the same, if this is it

Landing writes a database in the scratch folder, and publishing copies it into the data root. Two
scratch folders would each publish a snapshot that lacks what has landed in the other. So the first
one is written down in the data root, and others are refused.
"""

from __future__ import annotations

import datetime as dt
import secrets
import socket
from pathlib import Path

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from core.errors import StorageError, WarehouseError
from core.settings import Settings
from core.storage import Store

FILE = "writer.json"
_OWN_FOLDER = "the data root's own folder"


class Writer(BaseModel):
    """Where a warehouse is written from.

    Attributes:
        writer: tells one scratch folder from another.
        root: the data root, as its machine calls it.
        machine: its name, for messages.
        scratch: the folder, for messages.
        since: UTC.
    """

    model_config = ConfigDict(frozen=True)

    writer: str
    root: str
    machine: str
    scratch: str
    since: AwareDatetime


def require_writer(settings: Settings) -> None:
    """See that the warehouse is written from here; if it was from nowhere yet, it is now.

    Call it with the writer's database locked.

    Raises:
        WarehouseError: it is written from elsewhere; the message says what to do.
    """
    store, mine = Store(settings.home), _here(settings)
    named = read_writer(store)
    if named is None:
        if mine is None:
            mine = _keep_here(settings)
        elif mine.root != settings.home:
            raise WarehouseError(
                f"the database in {settings.scratch} is that of {mine.root}, not of "
                f"{settings.home}: set TIDEMARK_WORK_DIR to another folder; or, if the data root "
                "was moved or emptied, run `tidemark take-over`"
            )
        with store.alone(""):
            store.create_bytes(FILE, mine.model_dump_json().encode())
        named = read_writer(store)
    if mine is None or named is None or named.writer != mine.writer:
        raise WarehouseError(_refusal(settings, named))


def _refusal(settings: Settings, named: Writer | None) -> str:
    where = f"{named.scratch} of machine {named.machine}" if named else "elsewhere"
    return (
        f"the warehouse of {settings.home} is written from {where}: what landed here, in "
        f"{settings.scratch}, would be missing in what is published there. Land there, or keep "
        "the warehouse as a lake, which many may write (docs/operate.md); if that folder is lost, "
        "run `tidemark take-over` here"
    )


def is_writer(settings: Settings) -> bool:
    """Whether the warehouse is written from here."""
    mine, named = _here(settings), read_writer(Store(settings.home))
    return mine is not None and named is not None and mine.writer == named.writer


def may_write(settings: Settings) -> bool:
    """Whether landing from here is neither refused nor keeps the machine of later runs from it.

    A lake is written from everywhere, and a scratch folder within the data root is everybody's. Of
    others, only the one that is the writer already may.
    """
    return settings.warehouse is not None or _is_within(settings) or is_writer(settings)


def become_writer(settings: Settings) -> None:
    """Write down that the warehouse is written from here, whoever did before."""
    mine = _describe(settings, _OWN_FOLDER) if _is_within(settings) else _keep_here(settings)
    Store(settings.home).write_bytes(FILE, mine.model_dump_json().encode())


def read_writer(store: Store) -> Writer | None:
    """Return where a data root's warehouse is written from, or None if from nowhere yet.

    Raises:
        StorageError: the file is damaged.
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


def _here(settings: Settings) -> Writer | None:
    if _is_within(settings):
        return _describe(settings, _OWN_FOLDER)
    path = settings.scratch / FILE
    return _parse(path.read_bytes(), str(path)) if path.exists() else None


def _is_within(settings: Settings) -> bool:
    """Whether who has the data root has this scratch folder, too: it is no volume of its own."""
    home, scratch = Path(settings.home), settings.scratch
    if not settings.is_local or not scratch.is_relative_to(home):
        return False
    between = {str(path) for path in (scratch, *scratch.parents) if path.is_relative_to(home)}
    return not (between - {str(home)}) & _mounts()


def _mounts() -> set[str]:
    """Return where something is mounted; a volume of a container need not be another device."""
    lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    return {line.split()[4].decode("unicode_escape") for line in lines}


def _keep_here(settings: Settings) -> Writer:
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
