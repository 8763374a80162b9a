"""Comments of tables, macros, views and columns, which clients can read: ``duckdb_columns()``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from warehouse.database.schema import (
    describe_columns,
    describe_view,
    is_macro,
    list_macros,
    list_tables,
    list_views,
    qualify,
    read_header,
)
from warehouse.database.statements import quoted


def list_comments() -> Iterator[str]:
    """Yield the statements that set the comment of every table, view, macro and column.

    COMMENT accepts no parameters in DuckDB, so texts are inserted as quoted literals.
    """
    for table in list_tables():
        yield comment_on("table", qualify(table), text=read_header("tables", table))
        yield from comments_of_columns(qualify(table), describe_columns()[table])
    for macro in list_macros():
        yield comment_on("macro", macro, text=read_header("macros", macro))
    for view in list_views():
        yield from comments_of_view(view)


def comments_of_view(view: str) -> Iterator[str]:
    """Yield the statements that set the comments of a view or table macro and of its columns."""
    file = list_views()[view]
    described = describe_view(file)
    kind = "macro table" if is_macro(file) else "view"
    yield comment_on(kind, qualify(view), text=described.summary)
    if not is_macro(file):
        yield from comments_of_columns(qualify(view), described.columns)


def comments_of_columns(relation: str, columns: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the statements that set the comments of a relation's columns."""
    for column, facts in columns.items():
        unit = f" [{facts['unit']}]" if facts.get("unit") else ""
        target = f"{relation}.{column}"
        yield comment_on("column", target, text=f"{facts['description']}{unit}")


def comment_on(kind: str, target: str, text: str) -> str:
    """Return the SQL statement that sets the comment of ``target``.

    ``kind`` is table, view, macro, macro table or column (target ``schema.table.column``).
    """
    quoted_target = ".".join('"' + name.replace('"', '""') + '"' for name in target.split("."))
    return f"comment on {kind} {quoted_target} is {quoted(text)};"
