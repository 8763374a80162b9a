"""A copy of the snapshot as a DuckLake: a catalogue in PostgreSQL or a file, rows in Parquet.

    ducklake:postgres:host=… dbname=… data_path=s3://…
    ducklake:/srv/lake/catalogue.ducklake data_path=/srv/lake/rows

Each copy is one transaction of the catalogue, so readers see the former rows until it ends.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from core.errors import UsageError, WarehouseError
from extras.lake.client import INSTALL, key_statement, load_statements, quoted, run_script
from extras.lake.copying import Snapshot, list_copied, opened_to_copy

PUBLICATION = "tidemark_publication"  # the table that names the copied snapshot
_POSTGRES = "postgres:"
_DATA_PATH = re.compile(r"\s+data_path=(?P<path>\S.*)$")
_KEPT_DAYS = 7  # for readers that read a former copy


@dataclass(frozen=True)
class Lake:
    """The address of a lake."""

    catalogue: str  # postgres:… or the absolute path of a file
    data_path: str | None  # folder of the rows; None: the one that the catalogue names

    @property
    def is_file(self) -> bool:
        """True if the catalogue is a file."""
        return not self.catalogue.startswith(_POSTGRES)

    @property
    def shown(self) -> str:
        """The catalogue for messages; a connection string may have a password."""
        return self.catalogue if self.is_file else "the PostgreSQL database of the catalogue"


def copy_to_ducklake(snapshot: Snapshot, place: str) -> bool:
    """Write a snapshot's tables and views into a lake; return False if they are there already.

    Raises:
        UsageError: the catalogue belongs to something else; the address is incomplete.
        WarehouseError: an extension is missing; the catalogue or the store cannot be reached, or
            refuses; the former copy stays.
    """
    lake = parse_lake(place)
    _require_catalogue(lake)
    former = _list_tables(lake)
    if ("main", PUBLICATION) in former:
        if _read_former(lake, snapshot) == snapshot.digest:
            return False
    elif former:
        schema, name = former[0]
        raise UsageError(
            f"the lake of {lake.shown} has tables that no publication wrote, such as "
            f"{schema}.{name}. Nothing was written; publish to another catalogue"
        )
    with opened_to_copy(snapshot) as connection:
        relations = list_copied(connection)
    _run(lake, list(_copy_statements(snapshot, relations, former)), "write")
    _run(lake, list(_clean_statements()), "delete former rows of")
    return True


def parse_lake(place: str) -> Lake:
    """Return the lake that an address names.

    Raises:
        UsageError: the catalogue is of a kind that is not supported.
    """
    found = _DATA_PATH.search(place)
    catalogue = place[: found.start()] if found else place
    data_path = found["path"] if found else None
    if data_path and "://" not in data_path:
        data_path = f"{Path(data_path).expanduser().absolute()}/"
    if catalogue.startswith(_POSTGRES):
        return Lake(catalogue, data_path)
    if re.match(r"[a-z0-9]{2,}:", catalogue):
        raise UsageError(
            "the catalogue of a lake is ducklake:postgres:… or ducklake:FILE; "
            f"got ducklake:{catalogue.partition(':')[0]}:…"
        )
    return Lake(str(Path(catalogue).expanduser().absolute()), data_path)


def _require_catalogue(lake: Lake) -> None:
    """Check that a database is empty or a lake: DuckLake would write into any database."""
    if lake.is_file and not Path(lake.catalogue).exists():
        Path(lake.catalogue).parent.mkdir(parents=True, exist_ok=True)
        return
    address = lake.catalogue.removeprefix(_POSTGRES)
    options = "read_only" if lake.is_file else "type postgres, read_only"
    statements = [
        *load_statements("postgres_scanner"),
        f"attach {quoted(address)} as catalogue ({options})",
        "select table_name as name from information_schema.tables "
        "where table_catalog = 'catalogue' "
        "and table_schema not in ('information_schema', 'pg_catalog')",
    ]
    rows = run_script(statements, f"open {lake.shown}")
    names = {str(row["name"]) for row in rows}
    if names and "ducklake_metadata" not in names:
        raise UsageError(
            f"{lake.shown} has tables, such as {min(names)}, and is no lake. Nothing was written; "
            "publish to a new file or an empty database"
        )
    if not names and not lake.is_file and lake.data_path is None:
        raise UsageError(
            "a new lake in PostgreSQL needs a folder for its rows: add data_path=FOLDER or "
            "data_path=s3://… at the end of the address"
        )


def _list_tables(lake: Lake) -> list[tuple[str, str]]:
    """Return the schema and name of each table in the lake."""
    statement = (
        "select table_schema as schema, table_name as name from information_schema.tables "
        "where table_catalog = 'lake' order by all"
    )
    rows = _run(lake, [statement], "open")
    return [(str(row["schema"]), str(row["name"])) for row in rows]


def _read_former(lake: Lake, snapshot: Snapshot) -> str:
    """Return the digest of the snapshot that a lake has.

    Raises:
        UsageError: the lake is a copy of another data root.
    """
    [row] = _run(lake, [f"from lake.main.{PUBLICATION}"], "read")
    if row["data_root"] != snapshot.home:
        raise UsageError(
            f"the lake of {lake.shown} is a copy of the data root {row['data_root']}, not of "
            f"{snapshot.home}. Nothing was written; publish to another catalogue. If the data "
            f"root was moved, change data_root in table {PUBLICATION}"
        )
    return str(row["snapshot"])


def _copy_statements(
    snapshot: Snapshot, relations: list[tuple[str, str]], former: list[tuple[str, str]]
) -> Iterator[str]:
    """Yield the SQL that copies a snapshot into the lake, in one transaction."""
    yield f"attach {quoted(str(snapshot.path))} as snapshot (read_only)"
    yield "use snapshot"  # views name what they read without the database
    yield "begin"
    for schema in sorted({schema for schema, _ in relations}):
        yield f'create schema if not exists lake."{schema}"'
    for schema, name in relations:
        relation = f'"{schema}"."{name}"'
        yield f"create or replace table lake.{relation} as from snapshot.{relation}"
    for schema, name in former:
        if (schema, name) not in relations and name != PUBLICATION:
            yield f'drop table lake."{schema}"."{name}"'
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    yield (
        f"create or replace table lake.main.{PUBLICATION} as select "
        f"{quoted(snapshot.home)} as data_root, {quoted(snapshot.digest)} as snapshot, "
        f"{quoted(now)} as published_at"
    )
    yield "commit"


def _clean_statements() -> Iterator[str]:
    """Yield statements that delete rows of old copies, and files of killed publications."""
    age = f"now() - interval {_KEPT_DAYS} days"
    yield f"call ducklake_expire_snapshots('lake', older_than => {age})"
    yield f"call ducklake_cleanup_old_files('lake', older_than => {age})"
    yield f"call ducklake_delete_orphaned_files('lake', older_than => {age})"


def _run(lake: Lake, statements: list[str], doing: str) -> list[dict[str, object]]:
    """Attach the lake in a process of its own, and run statements; return the last rows."""
    extensions = ["ducklake", "httpfs"]
    if not lake.is_file:
        extensions.append("postgres_scanner")
    opening = list(load_statements(*extensions))
    if lake.data_path is None or lake.data_path.startswith("s3://"):
        opening.append(key_statement())
    options = f" (data_path {quoted(lake.data_path)})" if lake.data_path else ""
    opening.append(f"attach {quoted('ducklake:' + lake.catalogue)} as lake{options}")
    try:
        return run_script(opening + statements, f"{doing} the lake of {lake.shown}")
    except WarehouseError as error:
        if "duckdb_extension" in str(error) or "Extension" in str(error):
            raise WarehouseError(f"{error}\nInstall DuckDB's extensions: {INSTALL}") from error
        raise
