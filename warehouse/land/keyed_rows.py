"""Landing of small CSV and Parquet files whose rows have keys: figures and answers.

A file is read as text, and SQL statements check the values. All rows of a file land, or none. A row
that equals the landed row with the same key is skipped. A row that differs from it is refused,
unless the caller asks for replacement. The statements of a target are ``stage_<target>`` and
``judge_<target>`` of ``land/*.sql``; the other statements are equal for all targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import CellConflict, SchemaMismatch
from core.settings import Settings
from warehouse.database.schema import qualify
from warehouse.database.statements import Row, Statements
from warehouse.database.writer import connected, locked
from warehouse.land.text_table import TextTable


@dataclass(frozen=True)
class Target:
    """A table that the rows of files land in."""

    table: str
    key: tuple[str, ...]  # columns of the file that tell its rows from each other
    values: tuple[str, ...]  # the other columns; NULL in a file keeps the landed value
    defaults: Mapping[str, str] = field(default_factory=dict)  # for NULL in a new row, as SQL


RATES = Target(
    "published_rates",
    key=("model", "source", "month"),
    values=("compression_rate", "num_bytes", "is_text", "reference"),
    defaults={"is_text": "true"},
)
BENCHMARKS = Target(
    "benchmark_scores",
    key=("model", "benchmark"),
    values=("score", "reference", "as_of", "ability"),
)
RATINGS = Target(
    "human_difficulty",
    key=("puzzle", "complexity"),
    values=("rating", "num_raters", "reference"),
)


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
        self._refuse(self.statements.first(statement))

    def _refuse(self, bad: Row | None) -> None:
        if bad:
            raise SchemaMismatch(
                f"{self._path}, row {bad['row_number']}: {bad['column_name']} is "
                f"{_show(bad['given'])}; expected {bad['expected']}. Nothing of the file was landed"
            )

    def require_sound(self, target: str) -> None:
        """Refuse the file (see ``refuse_first``) if statement ``judge_<target>`` returns a row."""
        self.statements.run(f"judge_{target}")
        self.refuse_first("find_problem")

    def require_distinct(self, target: str, key: Sequence[str]) -> None:
        """Refuse the file if two of its rows have the same key; see ``refuse_first``."""
        columns = ", ".join(key)
        self._refuse(
            self.statements.first_of(
                f"""select
                    row_number,
                    '{columns}' as column_name,
                    concat_ws(', ', {columns}) as given,
                    'one row for each; row ' || first || ' is of the same' as expected
                from (
                    select *, min(row_number) over (partition by {columns}) as first
                    from staged_{target}
                )
                where row_number > first
                order by row_number
                limit 1"""  # noqa: S608 - names of ours
            )
        )

    def require_landed_values(self, target: Target) -> None:
        """Refuse the file if a value of a row differs from the landed value; NULL does not.

        Raises:
            CellConflict: names the row, the landed values, and the remedy.
        """
        pairs = [f"given.{name}, landed.{name} as landed_{name}" for name in target.values]
        differs = [f"given.{name} <> landed.{name}" for name in target.values]
        self.require_agreement(
            self.statements.first_of(
                f"""select {", ".join([*target.key, *pairs])}
                from staged_{target.table} as given
                inner join {qualify(target.table)} as landed using ({", ".join(target.key)})
                where {" or ".join(differs)}
                order by given.row_number
                limit 1"""  # noqa: S608 - names of ours
            )
        )

    def require_agreement(
        self, row: Row | None, remedy: str = "--replace takes the file's values"
    ) -> None:
        """Refuse the file if there is a row that contradicts a landed row.

        The message shows pairs of columns ``<name>`` and ``landed_<name>`` whose values differ, and
        all columns that are not paired.

        Raises:
            CellConflict: names the row, the landed values, and the remedy.
        """
        if row:
            shown = ", ".join(f"{name}={_show(value)}" for name, value in _telling(row).items())
            raise CellConflict(
                f"{self._path}: disagrees with what is landed: {shown}. Nothing of it was landed; "
                f"{remedy}"
            )

    def put(self, target: Target) -> int:
        """Write the staged rows of ``target``; return the number of new and changed rows."""
        kept = [
            f"coalesce({', '.join(_sources_of(target, name))}) as {name}" for name in target.values
        ]
        self.statements.execute(
            f"""create or replace temp table wanted as
            select {", ".join([*target.key, *kept])}
            from staged_{target.table} as given
            left join {qualify(target.table)} as landed using ({", ".join(target.key)})""",  # noqa: S608 - names of ours
            f"compare rows of {target.table}",
        )
        return self.statements.upsert(target.table, "wanted", target.key)


def _sources_of(target: Target, column: str) -> Iterator[str]:
    """Yield the expressions for the value of a column, in order of precedence."""
    yield f"given.{column}"
    yield f"landed.{column}"
    if column in target.defaults:
        yield target.defaults[column]


@contextmanager
def staged(
    settings: Settings,
    table: TextTable,
    target: str,
    key: Sequence[str],
    given: Mapping[str, object],
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
            rows.require_distinct(target, key)
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


def _telling(row: Row) -> Row:
    """Remove pairs of columns (file's value, landed value) that are equal or contain NULL."""
    silent: set[str] = set()
    for name in row:
        twin = f"landed_{name}"
        if twin in row and (None in (row[name], row[twin]) or row[name] == row[twin]):
            silent |= {name, twin}
    return {name: value for name, value in row.items() if name not in silent}


def _show(value: object) -> str:
    if value is None:
        return "missing"
    return repr(value) if isinstance(value, str) else str(value)
