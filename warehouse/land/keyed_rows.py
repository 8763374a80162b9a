"""Landing of small CSV and Parquet files whose rows have keys: figures and answers.

A file is read as text, and SQL statements check the values. All rows of a file land, or none. A row
that equals the landed row with the same key is skipped. A row that differs from it is refused,
unless the caller asks for replacement. The statements of a target are
``{stage,judge,find_conflicting,change}_<target>`` of ``land/*.sql``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core.errors import CellConflict, SchemaMismatch
from core.settings import Settings
from warehouse.database.statements import Statements
from warehouse.database.writer import connected, locked
from warehouse.land.text_table import TextTable

# The table of each target, and its key.
_TABLES = {
    "published_rates": ("published_rates", ("model", "source", "month")),
    "benchmark_scores": ("benchmark_scores", ("model", "benchmark")),
    "human_difficulty": ("human_difficulty", ("puzzle", "complexity")),
    "imported_questions": ("forecast_questions", ("source", "question_id")),
    "imported_answers": ("forecast_answers", ("model", "source", "question_id", "protocol")),
}


@dataclass(frozen=True)
class LandedRows:
    """The numbers of rows of a landed file, and the names in the file."""

    num_rows: int
    num_changed: int  # number of new and replaced rows
    models: tuple[str, ...]  # names of models in the file
    sources: tuple[str, ...]  # names of sources in the file, if any
    ignored: tuple[str, ...]  # names of the file's unknown columns


class StagedRows:
    """The rows of a file, staged in the writer's database; create it with ``staged``."""

    def __init__(self, statements: Statements, path: Path) -> None:
        self.statements = statements
        self._path = path

    def refuse_first(self, statement: str) -> None:
        """Refuse the file if a statement of ``land/*.sql`` returns a faulty row.

        Raises:
            SchemaMismatch: states row, column, content, and expected content.
        """
        if bad := self.statements.first(statement):
            raise SchemaMismatch(
                f"{self._path}, row {bad['row_number']}: {bad['column_name']} is "
                f"{_show(bad['given'])}; expected {bad['expected']}. Nothing of the file was landed"
            )

    def require_sound(self, target: str) -> None:
        """Refuse the file (see ``refuse_first``) if statement ``judge_<target>`` returns a row."""
        self.statements.run(f"judge_{target}")
        self.refuse_first("find_problem")

    def require_agreement(
        self, statement: str, remedy: str = "--replace takes the file's values"
    ) -> None:
        """Refuse the file if a statement returns a row, which contradicts a landed row.

        The message shows pairs of columns ``<name>`` and ``landed_<name>`` (or ``loaded_<name>``)
        whose values differ, and all columns that are not paired.

        Raises:
            CellConflict: names the row, the landed values, and the remedy.
        """
        if row := self.statements.first(statement):
            shown = ", ".join(f"{name}={_show(value)}" for name, value in _telling(row).items())
            raise CellConflict(
                f"{self._path}: disagrees with what is landed: {shown}. Nothing of it was landed; "
                f"{remedy}"
            )

    def put(self, target: str) -> int:
        """Write the staged rows of ``target``; return the number of new and changed rows."""
        self.statements.run(f"change_{target}")
        table, key = _TABLES[target]
        return self.statements.upsert(table, f"changed_{target}", key)


@contextmanager
def staged(
    settings: Settings, table: TextTable, target: str, given: Mapping[str, object]
) -> Iterator[StagedRows]:
    """Stage a file's rows in the writer's database, check them, and yield them.

    Raises:
        SchemaMismatch: a row is invalid; the message states its content and what is expected.
    """
    with locked(settings), connected(settings) as connection:
        rows = StagedRows(Statements(connection), table.path)
        with rows.statements.given(rows_to_land=table.rows):
            rows.statements.run(f"stage_{target}", given)
            rows.require_sound(target)
            yield rows


def summarise(table: TextTable, num_changed: int) -> LandedRows:
    """Return the numbers of rows of a landed file, and the names in the file, for messages."""

    def names(column: str) -> tuple[str, ...]:
        if column not in table.rows.column_names:
            return ()
        values = table.rows[column].unique().to_pylist()
        return tuple(sorted({str(value).strip() for value in values if value is not None}))

    return LandedRows(
        table.rows.num_rows, num_changed, names("model"), names("source"), table.ignored
    )


def _telling(row: dict[str, Any]) -> dict[str, Any]:
    """Remove pairs of columns (file's value, landed value) that are equal or contain NULL."""
    silent: set[str] = set()
    for name in row:
        for twin in (f"landed_{name}", f"loaded_{name}"):
            if twin in row and (None in (row[name], row[twin]) or row[name] == row[twin]):
                silent |= {name, twin}
    return {name: value for name, value in row.items() if name not in silent}


def _show(value: object) -> str:
    return "missing" if value is None else repr(value) if isinstance(value, str) else str(value)
