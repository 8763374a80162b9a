"""Turns of the processes that write one lake at once, so that a cell lands exactly once.

A lake has no unique keys: two writers that find a cell missing would both insert it. So whoever is
about to write what another might be writing, too, takes a turn: an advisory lock of the PostgreSQL
server that holds the lake's catalogue, which is let go of when the turn, or the process, ends. The
embedded file has one writer at a time anyway, and needs no turns.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator

import duckdb

from warehouse.database_errors import explain_database_errors
from warehouse.extensions import load_extensions, quoted

WAIT_S = 6 * 3600  # another process may be landing tens of millions of rows

# Every writer shares the warehouse; whoever has it alone keeps all others out.
WAREHOUSE = "warehouse"
# The rows that models, sources and protocols have in their dimensions.
NAMES = "names"
OBJECTS = "objects"
PUBLICATION = "publication"


def model_turn(model: str) -> str:
    """Name the turn to write cells of a model, or what scoring them took."""
    return f"model {model}"


def partition_turn(source: object, month: object) -> str:
    """Name the turn to write a partition; shared by who writes cells of it."""
    return f"partition {month} {source}"


class Turns:
    """Takes turns on one lake.

    Args:
        address: of the PostgreSQL server, as its library takes it; None: there is one writer, who
            waits for nobody.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self.are_needed = address is not None
        self._connection: duckdb.DuckDBPyConnection | None = None

    @contextlib.contextmanager
    def take(self, alone: Iterable[str], shared: Iterable[str] = ()) -> Iterator[None]:
        """Hold turns within the block; wait for who has one of them. Not to be nested.

        Args:
            alone: what nobody else may have meanwhile.
            shared: what others may have meanwhile, but nobody alone.

        Raises:
            WarehouseError: the server refuses, or another process keeps a turn for six hours.
        """
        if self._address is None:
            yield
            return
        with explain_database_errors("wait for other writers of the lake"):
            connection = self._connect(self._address)
            connection.begin()
        try:
            with explain_database_errors("wait for other writers of the lake"):
                for statement in _statements(set(alone), set(shared)):
                    connection.execute("from postgres_query('turns', ?)", [statement]).fetchall()
            yield
        finally:
            with contextlib.suppress(duckdb.Error):  # who cannot be reached holds no turns
                connection.rollback()

    def _connect(self, address: str) -> duckdb.DuckDBPyConnection:
        """Connect, once: to a database of its own, as its transactions are no others'."""
        if self._connection is None:
            connection = duckdb.connect()
            load_extensions(connection, "postgres_scanner")
            connection.execute(f"attach {quoted(address)} as turns (type postgres, read_only)")
            self._connection = connection
        return self._connection

    def close(self) -> None:
        """Let go of the server."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _statements(alone: set[str], shared: set[str]) -> Iterator[str]:
    """Yield PostgreSQL's statements; in one order for all, so that no two wait for each other."""
    yield f"select set_config('lock_timeout', '{WAIT_S * 1000}', true)"
    keys = {_key(name): "_shared" for name in shared - alone} | {_key(name): "" for name in alone}
    for key, kind in sorted(keys.items()):
        yield f"select count(pg_advisory_xact_lock{kind}({key}))"


def _key(name: str) -> int:
    """Number a turn: PostgreSQL's locks are numbers of 64 bits."""
    digest = hashlib.sha256(f"tidemark {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
