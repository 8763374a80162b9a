"""Tables whose rows come from files of this repository; new definitions rewrite the rows.

The files ``reference/**`` hold figures printed in papers, and the names of their models. They also
assign each tag of forecasting questions to a group, and hold the questions of ``start_here``.
The rows of ``dictionary`` are the descriptions from which comments are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv

from warehouse.database.questions import list_analyst_questions
from warehouse.database.schema import (
    describe_columns,
    describe_view,
    is_macro,
    list_macros,
    list_tables,
    list_views,
    public_name,
    read_header,
    read_sql,
)
from warehouse.database.statements import Statements

_FOLDER = Path(__file__).parents[1] / "reference"
_TAG_GROUPS = _FOLDER / "forecasts" / "tag_groups.csv"
_NAMES = _FOLDER / "names" / "published_models.csv"
_COLUMNS = (
    "reference", "printed_table", "model", "row_key", "column_name", "value", "unit", "unit_known",
)  # fmt: skip
_PARAMETERS = re.compile(r"create or replace macro \w+(?P<parameters>\([^)]*\))")
_DICTIONARY = ("name", "kind", "column_name", "meaning", "unit", "parameters")
_WITH_NAMES = """
    select
        f.* exclude (model, paper)
        replace (try_cast(f.value as double) as value, f.unit_known = 'true' as unit_known),
        f.value as printed,
        f.model as printed_model,
        n.model
    from figures as f
    left join names as n on f.paper = n.paper and f.model = n.printed_model
"""


def refresh_reference(connection: duckdb.DuckDBPyConnection) -> None:
    """Write again all tables whose rows are files of this repository."""
    _replace_published_figures(connection)
    _replace(connection, "tag_groups", pa_csv.read_csv(_TAG_GROUPS))
    questions = [vars(each) for each in list_analyst_questions()]
    rows = pa.Table.from_pylist(questions).select(["question", "query", "view"])
    _replace(connection, "start_here", rows)  # in reading order
    described = [dict(zip(_DICTIONARY, row, strict=True)) for row in describe_all()]
    _replace(connection, "dictionary", pa.Table.from_pylist(described))


def _replace_published_figures(connection: duckdb.DuckDBPyConnection) -> None:
    """Fill table ``published_figures`` from the CSV files, one for each paper."""
    types = dict.fromkeys(_COLUMNS, pa.string())
    options = pa_csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
    papers = []
    for file in sorted(_FOLDER.glob("*.csv")):
        rows = pa_csv.read_csv(file, convert_options=options)
        paper = pa.array([file.stem] * rows.num_rows, pa.string())
        papers.append(rows.append_column("paper", paper))
    statements = Statements(connection)
    with statements.given(figures=pa.concat_tables(papers), names=pa_csv.read_csv(_NAMES)):
        figures = connection.sql(_WITH_NAMES).to_arrow_table()
    _replace(connection, "published_figures", figures)


def describe_all() -> Iterator[tuple[str, str, str | None, str, str | None, str | None]]:
    """Yield the rows of ``dictionary``: of tables, then of views and macros, by name."""
    for table, schema in list_tables().items():
        if schema == "main":
            yield table, "table", None, read_header("tables", table), None, None
            yield from _describe_columns(table, describe_columns()[table])
    for view, file in sorted(list_views().items()):
        described = describe_view(file)
        if not described.is_internal:
            name = public_name(view)
            kind = "macro" if is_macro(file) else "view"
            yield name, kind, None, described.summary, None, described.parameters or None
            yield from _describe_columns(name, described.columns)
    for macro in sorted(list_macros()):
        found = _PARAMETERS.search(read_sql("macros", macro))
        parameters = found["parameters"] if found else None
        yield macro, "macro", None, read_header("macros", macro), None, parameters


def _describe_columns(
    name: str, columns: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, str | None, str, str | None, str | None]]:
    """Yield the rows of ``dictionary`` for the columns of a table or view."""
    for column, facts in columns.items():
        yield name, "column", column, str(facts["description"]), facts.get("unit"), None


def _replace(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Replace all rows of a table, and keep the given order."""
    statements = Statements(connection)
    with statements.given(rows_to_load=rows):
        statements.replace(table, {}, "rows_to_load")
