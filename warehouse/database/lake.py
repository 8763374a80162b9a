"""The warehouse as a lake (DuckLake): catalogue in PostgreSQL, rows in Parquet files.

Several processes on several machines may write a lake concurrently; see docs/adr/0017-ducklake.md.
The same SQL runs on a lake and on an embedded database file.

A lake has no unique keys: two writers that find a cell missing would both insert it. A writer
therefore holds advisory locks of the PostgreSQL server on the cells that it writes. The server
releases the locks when the transaction, or the process, ends. The embedded file has only one
writer.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import botocore.session  # type: ignore[import-untyped]
import duckdb
from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

from core.errors import UsageError, WarehouseError
from core.settings import LAKE_PREFIX, Settings
from core.storage.object_store import used_options
from warehouse.database.statements import OFFLINE, explain_database_errors

EXTENSIONS = ("ducklake", "postgres_scanner", "httpfs")


def load_extensions(connection: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Load installed DuckDB extensions into a connection, without downloads.

    Raises:
        WarehouseError: an extension is missing, or is built for another version of DuckDB.
    """
    connection.execute("set autoinstall_known_extensions = false")
    connection.execute("set autoload_known_extensions = false")
    for name in names:
        try:
            connection.load_extension(_packaged(name) or name)
        except duckdb.Error as error:
            raise WarehouseError(
                f"a lake needs DuckDB's extension {name}, which is not installed for DuckDB "
                f"{duckdb.__version__}: {error}; see docs/operate.md (Several writers: a lake)"
            ) from error


def _packaged(name: str) -> str | None:
    package = importlib.util.find_spec(f"duckdb_extension_{name}")
    if package is None or package.origin is None:
        return None
    folder = Path(package.origin).parent / "extensions" / f"v{duckdb.__version__}"
    file = folder / f"{name}.duckdb_extension"
    return str(file) if file.exists() else None


def quoted(text: str) -> str:
    """Return a text as a quoted SQL literal, for statements that accept no parameters."""
    return "'" + text.replace("'", "''") + "'"


LAKE = "lake"
FOLDER = "lake"
# DuckLake retries a commit after a conflict; 20 retries take up to half a minute.
_MAX_RETRIES = 20


def server_address(settings: Settings) -> str | None:
    """Return the address of the lake's PostgreSQL server; None if the warehouse is a file."""
    if settings.warehouse is None:
        return None
    return settings.warehouse.get_secret_value().removeprefix(LAKE_PREFIX)


def connect_lake(settings: Settings, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Connect to the lake, which is created if missing, and make it the current database.

    Raises:
        UsageError: the data root is neither a folder nor on S3.
        WarehouseError: an extension is missing; the server is unreachable or refuses access; the
            catalogue belongs to a lake with another data path.
    """
    folder = f"{settings.home}/{FOLDER}/"
    if not settings.is_local and not folder.startswith("s3://"):
        raise UsageError(f"a lake cannot be at {folder}: TIDEMARK_HOME has to be a folder or s3://")
    temporary = str(settings.scratch / "duckdb-temporary")
    connection = duckdb.connect(config={**OFFLINE, "temp_directory": temporary})
    try:
        load_extensions(connection, *EXTENSIONS)
        if not settings.is_local:
            _give_keys(connection)
        with explain_database_errors(f"open the lake with its files at {folder}"):
            connection.execute(f"set global ducklake_max_retry_count = {_MAX_RETRIES}")
            options = f"data_path {quoted(folder)}" + ", read_only" * read_only
            address = quoted(f"ducklake:postgres:{server_address(settings)}")
            connection.execute(f"attach {address} as {LAKE} ({options})")
            connection.execute(f"use {LAKE}")
    except BaseException:
        connection.close()
        raise
    return connection


def try_lake(settings: Settings) -> None:
    """Load the extensions, and connect to the server; raise WarehouseError if that fails."""
    with contextlib.closing(duckdb.connect(config=OFFLINE)) as connection:
        load_extensions(connection, *EXTENSIONS)
    with contextlib.closing(Turns(server_address(settings))) as turns, turns.take(()):
        pass


def is_lake(connection: duckdb.DuckDBPyConnection) -> bool:
    """Return True if the connection's current database is a lake."""
    [(name,)] = connection.execute("select current_database()").fetchall()
    return bool(name == LAKE)


def _give_keys(connection: duckdb.DuckDBPyConnection) -> None:
    """Configure DuckDB with the object store's address, region and credentials.

    Raises:
        WarehouseError: no credentials are found.
    """
    try:
        session = botocore.session.Session()
        used = used_options("s3")
        if used.get("key"):
            session.set_credentials(used["key"], used["secret"], used.get("token"))
        client = session.create_client("s3", endpoint_url=used.get("endpoint_url"))
        keys = session.get_credentials()
    except BotoCoreError as error:
        raise WarehouseError(f"the object store cannot be reached: {error}") from error
    address = urlsplit(client.meta.endpoint_url)
    options = {
        "endpoint": quoted(address.netloc),
        "use_ssl": str(address.scheme == "https").lower(),
        "url_style": "'path'",
        "region": quoted(client.meta.region_name or "us-east-1"),
    }
    if keys is not None:
        frozen = keys.get_frozen_credentials()
        options |= {"key_id": quoted(frozen.access_key), "secret": quoted(frozen.secret_key)}
        if frozen.token:
            options["session_token"] = quoted(frozen.token)
    listed = ", ".join(f"{name} {value}" for name, value in options.items())
    connection.execute(f"create secret (type s3, {listed})")


WAIT_S = 6 * 3600  # timeout of locks; landing many million rows takes hours

# Names of locks. Every writer shares the lock WAREHOUSE, unless WAREHOUSE is taken exclusively.
WAREHOUSE = "warehouse"
# Lock on the tables ``models``, ``sources`` and ``protocols``.
NAMES = "names"
OBJECTS = "objects"
PUBLICATION = "publication"


def model_turn(model: str) -> str:
    """Return the name of the lock on the cells and scoring records of a model."""
    return f"model {model}"


def partition_turn(source: object, month: object) -> str:
    """Return the name of the lock on a partition; writers of different cells share the lock."""
    return f"partition {month} {source}"


class Turns:
    """Named locks of one lake, held on the PostgreSQL server at ``address``.

    For the embedded file, the address is None, and taking a lock does nothing.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address
        self.are_needed = address is not None
        self._connection: duckdb.DuckDBPyConnection | None = None

    @contextlib.contextmanager
    def take(self, alone: Iterable[str], shared: Iterable[str] = ()) -> Iterator[None]:
        """Hold locks in the ``with`` block; wait for other holders. Calls must not be nested.

        Raises:
            WarehouseError: the server refuses, or another process holds a lock for six hours.
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
            with contextlib.suppress(duckdb.Error):  # a lost connection holds no locks
                connection.rollback()

    def _connect(self, address: str) -> duckdb.DuckDBPyConnection:
        """Return the connection for locks; its transactions are separate from those of landing."""
        if self._connection is None:
            connection = duckdb.connect(config=OFFLINE)
            load_extensions(connection, "postgres_scanner")
            connection.execute(f"attach {quoted(address)} as turns (type postgres, read_only)")
            self._connection = connection
        return self._connection

    def close(self) -> None:
        """Close the connection to the server."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _statements(alone: set[str], shared: set[str]) -> Iterator[str]:
    """Yield PostgreSQL statements that take the locks, sorted by key to prevent a deadlock."""
    yield f"select set_config('lock_timeout', '{WAIT_S * 1000}', true)"
    keys = {_key(name): "_shared" for name in shared - alone} | {_key(name): "" for name in alone}
    for key, kind in sorted(keys.items()):
        yield f"select count(pg_advisory_xact_lock{kind}({key}))"


def _key(name: str) -> int:
    """Return the 64-bit integer by which PostgreSQL identifies a named lock."""
    digest = hashlib.sha256(f"tidemark {name}".encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
