"""One fresh database for all tests of a run: making a database's objects takes ten seconds.

And where a home has its databases, and what is in them.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest
from filelock import FileLock

from core.settings import Settings
from warehouse.database import writer

ROOM_BYTES = 100 * 2**20
# Not what it is at the call: the tests of extras patch it a second time in the same process.
_REALLY = writer.connect_file


@contextmanager
def made_once(template: Path) -> Iterator[None]:
    """Begin every new database of this process with a copy of the first, ``template``.

    Other processes may use the same template. The writer checks a copy as any database. On small
    disks no copy is used: it fails as for users.
    """

    def connect_file(path: Path, settings: Settings) -> duckdb.DuckDBPyConnection:
        if not path.exists() and path.parent.is_dir() and _has_room(path.parent):
            with FileLock(f"{template}.lock"):
                if not template.exists():
                    new = template.with_suffix(".new")
                    _REALLY(new, settings).close()
                    new.rename(template)
            shutil.copyfile(template, path)
        return _REALLY(path, settings)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writer, "connect_file", connect_file)
        yield


def _has_room(folder: Path) -> bool:
    return shutil.disk_usage(folder).free > ROOM_BYTES


def writer_of(home: Path) -> Path:
    return home / "work" / "writer.duckdb"


def snapshot_of(home: Path) -> Path:
    return home / "warehouse.duckdb"


def losses_of(path: Path) -> list[Any]:
    with duckdb.connect(str(path), read_only=True) as database:
        return database.execute("from chunk_losses order by all").fetchall()


def text_of(ran: Any) -> str:
    return " ".join((ran.out + ran.err).split())
