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


def connect_to_read(path: Path, **config: int) -> duckdb.DuckDBPyConnection:
    """Open a database file to read it.

    Args:
        path: of the file.
        config: more of DuckDB's settings, such as ``threads``.

    Raises:
        duckdb.Error: the file is missing, damaged, or no database.
    """
    return duckdb.connect(str(path), read_only=True, config={**_LOCKED_DOWN, **config})
