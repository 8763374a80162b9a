"""Landing of small CSV and Parquet files whose rows have keys: figures and answers.

A file is read as text, and SQL statements check the values. All rows of a file land, or none. A row
that equals the landed row with the same key is skipped. A row that differs from it is refused,
unless the caller asks for replacement. Statement ``judge_<table>`` of ``land/*.sql`` checks the
rows of a target; the other statements are equal for all targets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import CellConflict, SchemaMismatch
from core.settings import Settings
from extras.imported_results.text_table import TextTable
from instruments.landing import describe_models, land_sources
from warehouse.database.schema import qualify
from warehouse.database.statements import Row, Statements, explain_database_errors, rows_of
from warehouse.database.writer import connected, locked
from warehouse.land.losses import open_warehouse

_DAY = r"day_of(if(regexp_full_match(trim({0}), '\d{{4}}-\d\d'), trim({0}) || '-01', {0}))"
# The value of a text, by type of the column; NULL if the text has another form.
_PARSED = {
    "text": "nullif(trim({0}), '')",
    "day": "day_of({0})",
    "day or month": _DAY,  # a month stands for its first day
    "month": f"cast(date_trunc('month', {_DAY}) as date)",
    "number": "try_cast({0} as double)",
    "count": "try_cast({0} as bigint)",
    "truth": "case try_cast({0} as double) when 1 then true when 0 then false "
    "else try_cast(trim({0}) as boolean) end",
}


# SQL that finds a fault in a text, which may have lines.
_TEXT_FAULT = (
    r"case when regexp_matches({0}, '[\x00-\x08\x0B\x0C\x0E-\x1F\x7F]') "
    "then 'no control characters' end"
)
# What finds a fault of a text, by column: names have no sign that is not seen, texts no controls.
_FAULTS = {
    **{name: f"name_fault({name})" for name in ("model", "source", "benchmark", "ability")},
    **{name: _TEXT_FAULT.format(f"given_{name}") for name in ("question_id", "tags", "reference")},
}


@dataclass(frozen=True)
class Target:
    """A kind of file whose rows land, and the table that they land in."""

    table: str
    # Types, or SQL expressions that parse the text {0}, by name of column.
    key: Mapping[str, str]  # the columns that tell rows from each other
    values: Mapping[str, str]  # all other columns; NULL keeps the landed value
    defaults: Mapping[str, str] = field(default_factory=dict)  # for NULL in a new row, as SQL


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

    def __init__(self, statements: Statements, path: Path, target: Target) -> None:
        self.statements = statements
        self._path = path
        self._target = target

    def refuse_first(self, statement: str) -> None:
        """Refuse the file if a statement of ``land/*.sql`` returns a faulty row.

        Raises:
            SchemaMismatch: states row, column, content, and expected content.
        """
        self._refuse(self.statements.first(statement))

    def _refuse(self, bad: Row | None) -> None:
        """Raise an error that names the first bad row, if there is one."""
        if bad:
            raise SchemaMismatch(
                f"{self._path}, row {bad['row_number']}: {bad['column_name']} is "
                f"{_show(bad['given'])}; expected {bad['expected']}. Nothing of the file was landed"
            )

    def require_sound(self, rows: str, facts: Mapping[str, object] | None = None) -> None:
        """Refuse the file (see ``refuse_first``) if statement ``judge_<rows>`` finds a problem."""
        self.statements.run(f"judge_{rows}", facts)
        self.refuse_first("find_problem")

    def require_seen(self) -> None:
        """Refuse the file if a name or text has signs that nobody sees; see ``refuse_first``."""
        self.statements.run("define_bad_names")
        for name in (*self._target.key, *self._target.values):
            fault = _FAULTS.get(name)
            if fault:
                self._refuse(
                    self._first_of(
                        f"""select
                            row_number,
                            '{name}' as column_name,
                            given_{name} as given,
                            {fault} as expected
                        from staged_{self._target.table}
                        where {fault} is not null
                        order by row_number
                        limit 1"""  # noqa: S608 - names of ours
                    )
                )

    def require_distinct(self) -> None:
        """Refuse the file if two of its rows have the same key; see ``refuse_first``."""
        columns = ", ".join(self._target.key)
        self._refuse(
            self._first_of(
                f"""select
                    row_number,
                    '{columns}' as column_name,
                    concat_ws(', ', {columns}) as given,
                    'one row for each; row ' || first || ' is of the same' as expected
                from (
                    select *, min(row_number) over (partition by {columns}) as first
                    from staged_{self._target.table}
                )
                where row_number > first
                order by row_number
                limit 1"""  # noqa: S608 - names of ours
            )
        )

    def require_landed_values(self) -> None:
        """Refuse the file if a value of a row differs from the landed value; NULL does not.

        Raises:
            CellConflict: names the row, the landed values, and the remedy.
        """
        pairs = [f"{name}, landed_{name}" for name in self._target.values]
        differs = [f"{name} <> landed_{name}" for name in self._target.values]
        self.require_agreement(
            self._first_of(
                f"""select {", ".join([*self._target.key, *pairs])}
                from matched_{self._target.table}
                where {" or ".join(differs)}
                order by row_number
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

    def match(self) -> None:
        """Join the staged rows with the landed rows, whose values are ``landed_<name>``."""
        target = self._target
        landed = [f"landed.{name} as landed_{name}" for name in target.values]
        self._create(
            "matched",
            f"""select given.*, {", ".join(landed)}
            from staged_{target.table} as given
            left join {qualify(target.table)} as landed using ({", ".join(target.key)})""",  # noqa: S608 - names of ours
        )

    def land(self, replace: bool) -> int:
        """Write the rows to the target's table; return the number of new and changed rows.

        Raises:
            CellConflict: a value differs from the landed value, and ``replace`` is False.
        """
        self.match()
        if not replace:
            self.require_landed_values()
        target = self._target
        kept = []
        for name in target.values:
            default = target.defaults.get(name, "null")
            kept.append(f"coalesce({name}, landed_{name}, {default}) as {name}")
        columns = ", ".join([*target.key, *kept])
        self._create("wanted", f"select {columns} from matched_{target.table}")  # noqa: S608 - ours
        return self.statements.upsert(target.table, f"wanted_{target.table}", [*target.key])

    def stage(self, defaults: Mapping[str, object]) -> None:
        """Parse the texts of table ``rows_to_land``, which stay as columns ``given_<name>``.

        ``defaults`` are the values, by column, of rows without one.
        """
        columns = ["row_number"]
        for name, kind in {**self._target.key, **self._target.values}.items():
            parsed = _PARSED.get(kind, kind).format(name)
            if name in defaults:
                parsed = f"coalesce({parsed}, ${name})"
            columns += [f"{name} as given_{name}", f"{parsed} as {name}"]
        query = f"select {', '.join(columns)} from rows_to_land"  # noqa: S608 - names of ours
        self._create("staged", query, defaults)

    def _first_of(self, query: str) -> Row | None:
        with explain_database_errors("compare rows"):
            return next(iter(rows_of(self.statements.connection.execute(query))), None)

    def _create(
        self, step: str, query: str, parameters: Mapping[str, object] | None = None
    ) -> None:
        """Make a temporary table of a step from a query."""
        name = f"{step}_{self._target.table}"
        create = f"create or replace temp table {name} as {query}"
        self.statements.execute(create, f"make table {name}", parameters)


@contextmanager
def staged(
    settings: Settings,
    table: TextTable,
    target: Target,
    defaults: Mapping[str, object] | None = None,
    facts: Mapping[str, object] | None = None,
) -> Iterator[StagedRows]:
    """Stage a file's rows in the writer's database, check them, and yield them.

    Args:
        settings: settings with the path of the warehouse.
        table: the texts of the file.
        target: the columns of the file, and the table that its rows land in.
        defaults: the values, by column, of rows without one.
        facts: the parameters of statement ``judge_<target>``.

    Raises:
        SchemaMismatch: a row is invalid; the message states its content and what is expected.
    """
    with locked(settings), connected(settings) as connection:
        rows = StagedRows(Statements(connection), table.path, target)
        with rows.statements.given(rows_to_land=table.rows):
            rows.stage(defaults or {})
        rows.require_sound(target.table, facts)
        rows.require_seen()
        rows.require_distinct()
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


def describe_names(landed: LandedRows, settings: Settings) -> None:
    """Land the catalogue entries of the models and sources of landed rows."""
    with open_warehouse(settings) as warehouse:
        describe_models(warehouse, settings)
        land_sources(warehouse, set(landed.sources))


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
