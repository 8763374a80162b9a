"""Integrity checks of a warehouse's database: what is wrong, what it means, what to do.

A check is a file ``checks/<check>.sql`` that selects the offending rows. Its first comment says
what they are, and from ``-- Do:`` on what to do about them. Those of ``checks/deep/`` read every
chunk, and are left to ``tidemark check --deep``; publishing runs the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.reader import connect_to_read
from warehouse.schema import SCHEMA_VERSION, list_checks, list_leaf_views, read_sql
from warehouse.statements import show

QUICK, DEEP = "checks", "checks/deep"
SHOWN_ROWS = 5
# Found where no other check could run.
NOT_A_WAREHOUSE = ("database_can_be_read", "schema_is_current")
_UNREADABLE = "The database cannot be read: it is damaged, half-written, or none of tidemark."
_PUBLISH_AGAIN = (
    "Publish it again with `tidemark score`; where that fails, too, delete the writer's database "
    "(work/writer.duckdb) and run it once more."
)


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        check: name of the check that found it.
        meaning: what the rows are.
        remedy: what to do.
        rows: the first few of them.
        num_rows: how many there are.
    """

    check: str
    meaning: str
    remedy: str
    rows: tuple[dict[str, object], ...]
    num_rows: int

    @property
    def first(self) -> str:
        """The first row in one line."""
        return show(self.rows[0])


def finding_of(
    check: str, meaning: str, remedy: str, rows: list[dict[str, object]]
) -> Iterator[Finding]:
    """Yield a finding, if there are any rows."""
    if rows:
        yield Finding(check, meaning, remedy, tuple(rows[:SHOWN_ROWS]), len(rows))


def check_database(path: Path, is_deep: bool = False) -> Iterator[Finding]:
    """Check a database file by itself, without changing it.

    Args:
        path: of the file; it may be missing, damaged, or something else.
        is_deep: also run the checks that read every chunk.

    Yields:
        What is wrong; quick checks come first.
    """
    try:
        with connect_to_read(path) as connection:
            if version := _foreign_version(connection):
                yield from version
                return
            yield from run_checks(connection, QUICK)
            yield from _check_views(connection)
            if is_deep:
                yield from run_checks(connection, DEEP)
    except duckdb.Error as error:
        row: dict[str, object] = {"file": str(path), "error": str(error)}
        yield Finding(NOT_A_WAREHOUSE[0], _UNREADABLE, _PUBLISH_AGAIN, (row,), 1)


def run_checks(connection: duckdb.DuckDBPyConnection, folder: str) -> Iterator[Finding]:
    """Run every check of a folder; yield what each finds, and which could not be run."""
    rows: list[dict[str, object]] = []
    for check in list_checks(folder):
        text = read_sql(folder, check)
        try:
            first, num_rows = _first_rows(connection, text)
        except (duckdb.BinderException, duckdb.CatalogException) as error:
            rows.append({"check": f"{check}.sql cannot be read: {error}"})
            continue
        if num_rows:
            yield Finding(check, *describe(text), tuple(first), num_rows)
    meaning = "Checks that cannot be run: a table is missing, or lacks a column."
    yield from finding_of("checks_can_be_run", meaning, _PUBLISH_AGAIN, rows)


def describe(text: str) -> tuple[str, str]:
    """Return what a check finds and what to do about it, as its comments say."""
    lines = []
    for line in text.splitlines():
        if not line.startswith("--") or line.startswith("-- Input:"):
            break
        lines.append(line.removeprefix("--").strip())
    meaning, _, remedy = " ".join(lines).partition("Do: ")
    return meaning.strip(), remedy


def _first_rows(
    connection: duckdb.DuckDBPyConnection, text: str
) -> tuple[list[dict[str, object]], int]:
    """Return the first few rows of a query, and how many there are; they may be millions."""
    first: list[dict[str, object]] = []
    num_rows = 0
    for batch in connection.sql(text).to_arrow_reader():
        if len(first) < SHOWN_ROWS:
            first += pa.Table.from_batches([batch]).slice(0, SHOWN_ROWS - len(first)).to_pylist()
        num_rows += batch.num_rows
    return first, num_rows


def _foreign_version(connection: duckdb.DuckDBPyConnection) -> list[Finding]:
    """Say so where the tables are those of another version: the checks would not fit them."""
    [(version,)] = connection.execute("select max(version) from schema_version").fetchall()
    if version == SCHEMA_VERSION:
        return []
    row = {"schema_version": version, "expected": SCHEMA_VERSION}
    meaning = "The database is of another version of tidemark."
    return [Finding(NOT_A_WAREHOUSE[1], meaning, _PUBLISH_AGAIN, (row,), 1)]


def _check_views(connection: duckdb.DuckDBPyConnection) -> Iterator[Finding]:
    rows: list[dict[str, object]] = []
    for view, file in list_leaf_views().items():
        try:  # the names are those of our own files; this binds the view, and reads nothing
            connection.table(view)
        except duckdb.Error as error:
            rows.append({"view": f"{file.name} cannot be read: {error}"})
    meaning = "Views that cannot be read: a table that they read is not as it should be."
    yield from finding_of("views_can_be_read", meaning, _PUBLISH_AGAIN, rows)
