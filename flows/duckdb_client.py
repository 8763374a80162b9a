"""The plain DuckDB command line client, run on the published snapshot."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from core.errors import UsageError
from core.settings import Settings

_MISSING = (
    "there is no DuckDB client: neither `duckdb` on the PATH nor the package duckdb-cli; get it by "
    "`pip install 'duckdb-cli>=1.5'`, or from duckdb.org. `tidemark sql` needs none"
)


def run_client(settings: Settings, arguments: Sequence[str]) -> int:
    """Run the client read-only until it ends; return its exit code.

    Args:
        settings: say where the snapshot is; one in an object store is fetched first.
        arguments: for the client, after the file's name.

    Raises:
        UsageError: nothing is published, or there is no client.
    """
    from warehouse.query import local_snapshot

    client = find_client()
    with local_snapshot(settings) as path, _interrupts_left_to_the_client():
        command = [str(client), "-readonly", str(path.absolute()), *arguments]
        code = subprocess.run(command, check=False).returncode
    return code if code >= 0 else 128 - code  # ended by a signal: as shells say it


def find_client() -> Path:
    """Return the client on the PATH, else the one that duckdb-cli put beside our Python.

    Raises:
        UsageError: there is neither.
    """
    found = shutil.which("duckdb") or shutil.which("duckdb", path=str(Path(sys.executable).parent))
    if found is None:
        raise UsageError(_MISSING)
    return Path(found).absolute()


@contextmanager
def _interrupts_left_to_the_client() -> Iterator[None]:
    """Ctrl-C ends a query of the client, not us; a child does not inherit a handler."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
