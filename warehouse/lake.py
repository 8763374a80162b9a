"""The warehouse as a lake (DuckLake): its catalogue in PostgreSQL, its rows in Parquet files.

Any number of processes on any number of machines may write at once; see
docs/adr/0017-ducklake.md. The same SQL runs on it as on the embedded file.
"""

from __future__ import annotations

from urllib.parse import urlsplit

import botocore.session  # type: ignore[import-untyped]
import duckdb
from botocore.exceptions import BotoCoreError  # type: ignore[import-untyped]

from core.errors import UsageError, WarehouseError
from core.object_store import used_options
from core.settings import LAKE_PREFIX, Settings
from warehouse.database_errors import explain_database_errors
from warehouse.extensions import EXTENSIONS, load_extensions, quoted

LAKE = "lake"
FOLDER = "lake"
# Commits that meet another's are tried again by DuckLake itself, up to half a minute.
_MAX_RETRIES = 20


def server_address(settings: Settings) -> str | None:
    """Return the address of the lake's PostgreSQL server; None: the warehouse is no lake."""
    if settings.warehouse is None:
        return None
    return settings.warehouse.get_secret_value().removeprefix(LAKE_PREFIX)


def connect_lake(settings: Settings, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Connect to the lake, and make it where there is none; unqualified names are its own.

    Raises:
        UsageError: the data root is neither a folder nor on S3.
        WarehouseError: an extension is missing; the server cannot be reached or refuses; the
            catalogue is of a lake whose files are elsewhere.
    """
    folder = f"{settings.home}/{FOLDER}/"
    if not settings.is_local and not folder.startswith("s3://"):
        raise UsageError(f"a lake cannot be at {folder}: TIDEMARK_HOME has to be a folder or s3://")
    connection = duckdb.connect(
        config={
            "temp_directory": str(settings.scratch / "duckdb-temporary"),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
        }
    )
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


def is_lake(connection: duckdb.DuckDBPyConnection) -> bool:
    """Whether the database in use is a lake."""
    [(name,)] = connection.execute("select current_database()").fetchall()
    return bool(name == LAKE)


def _give_keys(connection: duckdb.DuckDBPyConnection) -> None:
    """Let DuckDB reach the object store as the data root is reached: address, region and keys.

    Raises:
        WarehouseError: no keys are found.
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
