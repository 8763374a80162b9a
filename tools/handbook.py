"""Generator of docs/warehouse.md, which describes every table, view, macro and column.

    python -m tools.handbook

It also writes ``views.md`` of each extra that has views. The handbook and the comments in the
database are generated from the same files. A test compares them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

from core.plugins import list_folders
from warehouse.database.schema import (
    ViewDescription,
    describe_columns,
    describe_view,
    list_macros,
    list_tables,
    list_views,
    public_name,
    qualify,
    read_header,
    read_old_names,
)

_HEAD = """# Tables and views of the warehouse

Made by `make handbook` from the files that the objects are made from; the same texts are comments
in the database (`from duckdb_columns()`). What to ask of them: [analysts.md](analysts.md).
Formulas: [metrics.md](metrics.md). Names that end in `_at` are table macros with a parameter.
Views of extras are described in the file `views.md` of each ([extras](../extras/README.md)).
"""
_HEAD_OF_EXTRA = """# Views of this extra

Made by `make handbook` from the files that the views are made from.
"""
_FORMER = """These views were in schema `main`. Schema `old` has an alias of each until the next
release. `tidemark sql` finds an alias by its bare name, too."""


_ROOT = Path(__file__).parents[1]
_KERNEL = _ROOT / "docs" / "warehouse.md"


def write_handbooks() -> dict[Path, str]:
    """Return the text of docs/warehouse.md and of ``views.md`` of each extra, by path."""
    texts = {_KERNEL: _write_handbook(_ROOT / "warehouse")}
    for folder in list_folders("views"):
        extra = folder.parent
        lines = [_HEAD_OF_EXTRA, *_describe_views(extra)]
        texts[extra / "views.md"] = "\n".join(lines).rstrip() + "\n"
    return texts


def _write_handbook(room: Path) -> str:
    """Return docs/warehouse.md: all views, tables and macros with their columns."""
    lines = [_HEAD, *_describe_views(room), "## Tables", ""]
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


def _describe_views(room: Path) -> Iterator[str]:
    """Yield the lines about the views in the folder ``views`` of the kernel or of an extra."""
    files = {name: file for name, file in sorted(list_views().items()) if room in file.parents}
    views = {name: (file, describe_view(file)) for name, file in files.items()}
    public: dict[str, tuple[Path, ViewDescription]] = {}
    internal: dict[str, tuple[Path, ViewDescription]] = {}
    for name, (file, described) in views.items():
        (internal if described.is_internal else public)[name] = (file, described)
    former = read_old_names(room / "views")
    yield from _list_public(public)
    if internal:
        yield "## Views for other views\n"
        for name, (_, described) in internal.items():
            yield f"- `{qualify(name)}`: {described.description}"
        yield ""
    if former:
        yield f"## Former names\n\n{_FORMER}\n"
        for name, query in sorted(former.items()):
            yield f"- `old.{name}`: `{query}`"
        yield ""


def _list_public(views: Mapping[str, tuple[Path, ViewDescription]]) -> Iterator[str]:
    """Yield the sections of public views, by the folder that has them."""
    rows = [(file.parent.name, name, described) for name, (file, described) in views.items()]
    rows.sort(key=lambda row: row[:2])
    for mart, members in groupby(rows, key=lambda row: row[0]):
        yield f"## Views: {mart}\n"
        for _, name, described in members:
            yield f"### `{public_name(name)}`\n"
            yield f"{described.summary}\n"
            if described.readers:
                yield f"Read by {', '.join(f'`{file}`' for file in described.readers)}.\n"
            yield from _list_columns(described.columns)
            yield ""


def _list_columns(columns: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a Markdown table of columns."""
    yield "| column | is | unit |"
    yield "|---|---|---|"
    for name, facts in columns.items():
        cells = (f"`{name}`", str(facts["description"]), facts.get("unit") or "")
        yield "| " + " | ".join(map(_escape, cells)) + " |"


def _escape(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")


if __name__ == "__main__":
    for file, text in write_handbooks().items():
        file.write_text(text, encoding="utf-8")
