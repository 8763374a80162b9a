"""Generator of docs/warehouse.md, which describes every table, view, macro and column.

    python -m warehouse.read.handbook > docs/warehouse.md

The handbook and the comments in the database are generated from the same files. A test compares
them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from warehouse.database.schema import (
    ViewDescription,
    describe_columns,
    describe_view,
    list_macros,
    list_old_names,
    list_tables,
    list_views,
    public_name,
    qualify,
    read_header,
)

_HEAD = """# Tables and views of the warehouse

Made by `make handbook` from the files that the objects are made from; the same texts are comments
in the database (`from duckdb_columns()`). What to ask of them: [analysts.md](analysts.md).
Formulas: [metrics.md](metrics.md). Names that end in `_at` are table macros with a parameter.
Schema `papers` holds views that reproduce a table of a paper.
"""
_FORMER = """These views were in schema `main`. Schema `old` has an alias of each until the next
release. `tidemark sql` finds an alias by its bare name, too."""


def write_handbook() -> str:
    """Return the text of docs/warehouse.md."""
    views = {name: (file, describe_view(file)) for name, file in sorted(list_views().items())}
    public = {name: each for name, each in views.items() if not each[1].is_internal}
    internal = {name: each for name, each in views.items() if each[1].is_internal}
    lines = [_HEAD, *_list_public(public), "## Views for other views", ""]
    lines += [
        f"- `{qualify(name)}`: {described.description}" for name, (_, described) in internal.items()
    ]
    lines += ["", "## Former names", "", _FORMER, ""]
    lines += [f"- `old.{name}`: `{public_name(name)}`" for name in sorted(list_old_names())]
    lines += ["", "## Tables", ""]
    for table in list_tables():
        lines += [
            f"### `{qualify(table).removeprefix('main.')}`",
            "",
            read_header("tables", table),
            "",
        ]
        lines += [*_list_columns(describe_columns()[table]), ""]
    lines += ["## Scalar macros", ""]
    lines += [f"- `{name}`: {read_header('macros', name)}" for name in sorted(list_macros())]
    return "\n".join(lines) + "\n"


def _list_public(views: Mapping[str, tuple[Path, ViewDescription]]) -> Iterator[str]:
    by_mart = sorted(views.items(), key=lambda item: (item[1][0].parent.name, item[0]))
    for mart, members in groupby(by_mart, key=lambda item: item[1][0].parent.name):
        yield f"## Views: {mart}\n"
        for name, (_, described) in members:
            yield f"### `{public_name(name)}`\n"
            yield f"{described.description} One row per {', '.join(described.grain)}.\n"
            if described.readers:
                yield f"Read by {', '.join(f'`{file}`' for file in described.readers)}.\n"
            yield from _list_columns(described.columns)
            yield ""


def _list_columns(columns: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    yield "| column | is | unit |"
    yield "|---|---|---|"
    for name, facts in columns.items():
        cells = (f"`{name}`", str(facts["description"]), facts.get("unit") or "")
        yield "| " + " | ".join(map(_escape, cells)) + " |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")


if __name__ == "__main__":
    sys.stdout.write(write_handbook())
