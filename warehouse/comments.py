"""What the database says of itself: a comment on every table, view, macro and column.

Any client shows them (``from duckdb_columns()``). Those of views and table macros are made from the
``.yml`` beside each, those of tables from ``tables/columns.yml`` and, as those of scalar macros,
from the first line of each ``.sql``. DuckDB has no comments on columns of a macro.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from warehouse.schema import (
    describe_columns,
    describe_view,
    is_macro,
    list_macros,
    list_tables,
    list_views,
    read_sql,
)


def comment_script() -> str:
    """Return one script that comments on every object; all must be there when it runs.

    DuckDB takes no parameters in it, so names and texts are quoted here; both are our own files'.
    """
    return "\n".join([*_on_tables(), *_on_macros(), *_on_views()])


def _on_tables() -> Iterator[str]:
    for table in list_tables():
        yield comment_on("table", table, text=read_header("tables", table))
        yield from _on_columns(table, describe_columns()[table])


def _on_macros() -> Iterator[str]:
    for macro in list_macros():
        yield comment_on("macro", macro, text=read_header("macros", macro))


def _on_views() -> Iterator[str]:
    for view, file in list_views().items():
        described = describe_view(file)
        text = f"{described.description} One row per {', '.join(described.grain)}."
        if is_macro(file):
            yield comment_on("macro table", view, text=text)
        else:
            yield comment_on("view", view, text=text)
            yield from _on_columns(view, described.columns)


def _on_columns(name: str, columns: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for column, facts in columns.items():
        unit = f" [{facts['unit']}]" if facts.get("unit") else ""
        yield comment_on("column", name, column, text=f"{facts['description']}{unit}")


def read_header(folder: str, name: str) -> str:
    """Return the sentences that the first line of a ``.sql`` file holds whole."""
    line = read_sql(folder, name).partition("\n")[0].removeprefix("--").strip()
    return line[: line.rindex(".") + 1]


def comment_on(kind: str, *names: str, text: str) -> str:
    """Return the statement that comments on an object, or on a column: its table's name first."""
    target = ".".join('"' + name.replace('"', '""') + '"' for name in names)
    quoted = text.replace("'", "''")
    return f"comment on {kind} {target} is '{quoted}';"
