"""One fresh database for all tests of a process: making a database's objects takes seconds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from core.settings import Settings
from warehouse import forget, writer

ROOM_BYTES = 100 * 2**20


@contextmanager
def made_once(template: Path) -> Iterator[None]:
    """Begin every new database of this process with a copy of the first, which is ``template``.

    Whether the copy has all objects is looked up as in any database that is there. Where there is
    little room, on the small disks of tests, databases are made as ever: they fail as they do.
    """
    really = writer.connect_file

    def connect_file(path: Path, settings: Settings) -> duckdb.DuckDBPyConnection:
        if not path.exists() and path.parent.is_dir() and _has_room(path.parent):
            if not template.exists():
                really(template, settings).close()
            shutil.copyfile(template, path)
        return really(path, settings)

    with pytest.MonkeyPatch.context() as patched:
        for module in (writer, forget):
            patched.setattr(module, "connect_file", connect_file)
        yield


def _has_room(folder: Path) -> bool:
    return shutil.disk_usage(folder).free > ROOM_BYTES
