"""Detection of the reasons why a database file cannot be read.

DuckDB verifies the checksum of a block when it reads the block. So a file is known to be undamaged
only after all rows of the file were read.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import duckdb
import pyarrow as pa

from core.errors import DamagedDatabase, NewerVersion, TidemarkError
from core.version import code_version
from warehouse.database.schema import SCHEMA_VERSION, read_version
from warehouse.database.statements import OFFLINE, quoted

QUICK_ROWS = 1_000_000  # maximum number of rows of tables that a quick check reads (1 s each)
_MAGIC = b"DUCK"
_MAGIC_AT = 8  # offset in the file in bytes, after a checksum
_DAMAGE = (
    "Corrupt database file",
    "Corrupt WAL file",
    "Could not read enough bytes",
    "Failure while replaying WAL",
    "Serialization Error",
    "not a valid DuckDB database",
)
_NEWER = "created with a newer version of DuckDB"
_BUSY = "Conflicting lock is held"


@dataclass(frozen=True)
class Fault:
    """The reason why a database file cannot be read."""

    reason: str  # continues a sentence that begins with the path
    kind: Literal["damaged", "forbidden", "newer", "busy", "missing"] = "damaged"


def find_fault(path: Path, max_rows: int | None = None) -> Fault | None:
    """Read all rows of a database file; return the fault if this fails, else None.

    Args:
        path: a file that this process has not opened for writing.
        max_rows: tables with more rows are not read.
    """
    fault = _fault_of_file(path)
    if fault:
        return fault
    try:
        with contextlib.closing(duckdb.connect(config=OFFLINE)) as connection:
            connection.execute(f"attach {quoted(str(path))} as examined (read_only)")
            connection.execute("use examined")
            read_all(connection, max_rows)
            newer = _find_newer(connection)
    except duckdb.Error as error:
        return fault_in(error, path) or Fault(f"cannot be read ({_first_line(error)})")
    return Fault(newer, "newer") if newer else None


def read_all(connection: duckdb.DuckDBPyConnection, max_rows: int | None = None) -> None:
    """Read all rows of a connection's database, so that DuckDB verifies their checksums.

    Tables with more than ``max_rows`` rows are not read.

    Raises:
        duckdb.Error: a block is damaged.
    """
    tables = connection.execute(
        "select schema_name, table_name, estimated_size from duckdb_tables() "
        "where database_name = current_database() and not temporary"
    ).fetchall()
    for schema, table, num_rows in tables:
        if max_rows is None or num_rows <= max_rows:
            name = f'"{schema}"."{table}"'
            connection.execute(f"select bit_xor(hash(it)) from {name} as it").fetchall()  # noqa: S608


def require_known(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Check that no later version of tidemark wrote the database that a connection uses.

    Raises:
        NewerVersion: the message names the version that wrote the database, and a remedy.
    """
    newer = _find_newer(connection)
    if newer:
        raise NewerVersion(f"{path} {newer}. {ADVICE_ON_NEWER}")


def _find_newer(connection: duckdb.DuckDBPyConnection) -> str | None:
    """Return a message if a later version of tidemark wrote the database, else None."""
    found = read_version(connection)
    if found.version <= SCHEMA_VERSION:
        return None
    maker = f"tidemark {found.tidemark}" if found.tidemark else "a tidemark"
    return (
        f"was made by {maker}, newer than this one ({code_version()}): it has schema version "
        f"{found.version}, this one knows {SCHEMA_VERSION}"
    )


ADVICE_ON_NEWER = (
    "Use that version or a later one; to stay with this one, bring back the backup that was made "
    "before the upgrade (docs/going-back.md)"
)


@contextlib.contextmanager
def explained_faults(
    path: Path, advise: Callable[[Fault], str], name: str | None = None
) -> Iterator[None]:
    """Convert errors that come from a fault of a database file, in a ``with`` block.

    Args:
        path: the file that the block reads.
        advise: returns advice for the error's message.
        name: the file's name in messages; the default is the path.

    Raises:
        DamagedDatabase: the file is damaged, is no database, or is not readable for this user.
        NewerVersion: a later version of tidemark or of DuckDB wrote the file.
    """
    try:
        yield
    except (DamagedDatabase, NewerVersion):
        raise
    except (TidemarkError, duckdb.Error, pa.ArrowException, OSError) as error:
        fault = fault_in(error, path)
        if fault is None:
            raise
        kind = NewerVersion if fault.kind == "newer" else DamagedDatabase
        raise kind(f"{name or path} {fault.reason}. {advise(fault)}") from error


def fault_in(error: BaseException, path: Path) -> Fault | None:
    """Return the fault of a database file that an error comes from, or None."""
    fault = _fault_of_file(path)
    if fault and fault.kind != "missing":
        return fault
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, (duckdb.Error, pa.ArrowException, OSError)):
            fault = _fault_named(cause)
            if fault:
                return fault
        cause = cause.__cause__
    return None


def _fault_named(error: BaseException) -> Fault | None:
    """Return the fault that an error of DuckDB is known to mean; None if it is unknown."""
    text = str(error)
    line = _first_line(error)
    if _NEWER in text:
        return Fault(f"was made by a newer DuckDB than {duckdb.__version__} ({line})", "newer")
    if _BUSY in text:
        return Fault(f"is in use by another process ({line})", "busy")
    if any(phrase in text for phrase in _DAMAGE):
        return Fault(f"is damaged ({line})")
    if "Permission denied" in text:
        return Fault(f"may not be opened by this user ({line})", "forbidden")
    return None


def _fault_of_file(path: Path) -> Fault | None:
    """Return the fault that a file's kind, size, mode or first bytes show, or None."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            kind = "a directory" if stat.S_ISDIR(found.st_mode) else "no regular file"
            return Fault(f"is {kind}, no database")
        if not found.st_size:
            return Fault("is empty")
        with path.open("rb") as file:
            start = file.read(_MAGIC_AT + len(_MAGIC))
    except FileNotFoundError:
        return Fault("is missing", "missing")
    except OSError as error:
        return Fault(f"may not be opened by this user ({error.strerror})", "forbidden")
    if start[_MAGIC_AT:] != _MAGIC:
        return Fault(
            f"is no database of DuckDB, or its header is damaged; it begins with {start!r}"
        )
    return None


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
