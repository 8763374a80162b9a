"""Connections that can read one database file, and do nothing else."""

from __future__ import annotations

from pathlib import Path

import duckdb

# SQL may come from anywhere: it can read the file, not write it, nor reach other files, the
# network, our variables or its own settings.
_LOCKED_DOWN: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": False,
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "lock_configuration": True,
}


_TRIES = 10


def connect_to_read(path: Path, **config: int) -> duckdb.DuckDBPyConnection:
    """Open a database file to read it, again if another took its place meanwhile.

    DuckDB opens a file several times, and reads the header from one and blocks from another: of two
    snapshots, it would look for the one's blocks in the other.

    Args:
        path: of the file.
        config: more of DuckDB's settings, such as ``threads``.

    Raises:
        duckdb.Error: the file is missing, damaged, or no database; or it is replaced all the time.
    """
    for _ in range(_TRIES):
        before = _identity(path)
        try:
            connection = duckdb.connect(
                str(path), read_only=True, config={**_LOCKED_DOWN, **config}
            )
        except duckdb.Error:
            if _identity(path) == before:
                raise
            continue
        if _identity(path) == before:
            return connection
        connection.close()
    raise duckdb.IOException(f"{path} was replaced {_TRIES} times while it was opened")


def _identity(path: Path) -> tuple[int, int, int] | None:
    """Return what tells a file from the one that takes its place; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino, found.st_mtime_ns
