"""DuckDB's extensions, which a lake needs: as Python packages, or as `install` has fetched them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import duckdb

from core.errors import WarehouseError

EXTENSIONS = ("ducklake", "postgres_scanner", "httpfs")


def load_extensions(connection: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Load extensions into a connection; nothing is fetched.

    Raises:
        WarehouseError: one is not there, or is of another version of DuckDB.
    """
    for name in names:
        try:
            connection.load_extension(_packaged(name) or name)
        except duckdb.Error as error:
            raise WarehouseError(
                f"a lake needs DuckDB's extension {name}, which is not installed for DuckDB "
                f"{duckdb.__version__}: {error}; see docs/operate.md (Several writers: a lake)"
            ) from error


def _packaged(name: str) -> str | None:
    """Return where a Python package holds the extension for the DuckDB that runs."""
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "extensions" / f"v{duckdb.__version__}"
    file = folder / f"{name}.duckdb_extension"
    return str(file) if file.exists() else None


def quoted(text: str) -> str:
    """Return a text as a literal of SQL, for statements that take no parameters."""
    return "'" + text.replace("'", "''") + "'"
