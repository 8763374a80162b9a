"""Findings of integrity checks, and the checks that are SQL files.

A check is a file ``checks/<check>.sql`` that selects faulty rows. The file's first comment
describes these rows and, after ``-- Do:``, states the remedy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from warehouse.database.schema import read_sql
from warehouse.database.statements import show

SHOWN_ROWS = 5
_ROOM = Path(__file__).parents[1]
_FORBIDDEN = "Permission denied"
_LET_READ = (
    f"Where it says '{_FORBIDDEN}', nothing is damaged: run the command as the owner of the file, "
    "or let this user read it (chown, chmod). Else:"
)
PUBLISH_AGAIN = (
    "Run `tidemark publish`, which makes the snapshot again from the writer's database; where that "
    "fails, too, run `tidemark rebuild` (extra `repair`)."
)


@dataclass(frozen=True)
class Finding:
    """A problem that a check found."""

    check: str  # name of the check that found it
    meaning: str  # description of the faulty rows
    remedy: str  # action that the user should take
    rows: tuple[dict[str, object], ...]  # the first few faulty rows
    num_rows: int

    @property
    def first(self) -> str:
        """The first faulty row as one line of text."""
        return show(self.rows[0])


def finding_of(
    check: str, meaning: str, remedy: str, rows: list[dict[str, object]]
) -> Iterator[Finding]:
    """Yield one finding if there are faulty rows, else nothing.

    If a file could not be read for lack of permission, the remedy begins with this case.
    """
    if any(_FORBIDDEN in str(row.get("problem")) for row in rows):
        remedy = f"{_LET_READ} {remedy}"
    if rows:
        yield Finding(check, meaning, remedy, tuple(rows[:SHOWN_ROWS]), len(rows))


def list_checks(folder: str) -> list[str]:
    """Return the names of the integrity checks in a folder."""
    return sorted(file.stem for file in (_ROOM / folder).glob("*.sql"))


def run_checks(connection: duckdb.DuckDBPyConnection, folder: str) -> Iterator[Finding]:
    """Run all checks of a folder; yield a finding per failed check, and one on invalid checks."""
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
    yield from finding_of("checks_can_be_run", meaning, PUBLISH_AGAIN, rows)


def describe(text: str) -> tuple[str, str]:
    """Return the meaning and the remedy from the first comment in a check's SQL text."""
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
    """Run a query; return its first ``SHOWN_ROWS`` rows, and the number of all rows."""
    first: list[dict[str, object]] = []
    num_rows = 0
    for batch in connection.sql(text).to_arrow_reader():
        if len(first) < SHOWN_ROWS:
            first += pa.Table.from_batches([batch]).slice(0, SHOWN_ROWS - len(first)).to_pylist()
        num_rows += batch.num_rows
    return first, num_rows
