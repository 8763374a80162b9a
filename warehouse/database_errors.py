"""DuckDB's errors as ours: what was being done, what to do, and never a password."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

import duckdb

from core.errors import DiskFull, WarehouseError

# How PostgreSQL's own library spells a password: in an address, or as one of several settings.
_PASSWORDS = re.compile(
    r"""(?P<before>://[^:@/\s]*:|\b\w*password\s*=\s*)
        (?P<password>(?<=:)\S*(?=@)|'(?:[^'\\]|\\.)*'|[^\s'"&]+)""",
    re.VERBOSE | re.IGNORECASE,
)


@contextlib.contextmanager
def explain_database_errors(what: str) -> Iterator[None]:
    """Turn DuckDB's errors into ours, which say what was being done."""
    try:
        yield
    except duckdb.Error as error:
        if "No space left" in str(error):
            raise DiskFull(
                f"no space left: cannot {what}; nothing was changed. Free some, or move the data "
                "root (TIDEMARK_HOME), then run the same command again"
            ) from error
        shown = without_passwords(str(error))
        # A chained error is printed with the rest of a traceback, password and all.
        cause = error if shown == str(error) else None
        raise WarehouseError(f"cannot {what}: {shown}") from cause


def without_passwords(text: str) -> str:
    """Return a text with every password of a connection string replaced by stars."""
    return _PASSWORDS.sub(r"\g<before>***", text)
