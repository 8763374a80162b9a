"""Export of figures: one file per view, and a manifest that describes the files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from core.errors import WarehouseError
from core.settings import Settings
from core.storage.store import sha256_of_file
from core.version import own_version
from reports.exports.files import csv_parts, exporting, write_manifest, write_parquet
from warehouse.database.schema import ViewDescription, describe_view, is_macro, list_views, qualify
from warehouse.read.query import local_snapshot, opened, read_rows

_KIND = "figures"
_README = """# Figures of tidemark

{simulated}One view of the warehouse a file; the columns that tell its rows apart come first.
`manifest.json` describes every column with its unit, and has versions and checksums. {format}

| file | rows | what it holds |
|---|---|---|
{rows}
"""
_SIMULATED = """**SIMULATED.** A program made up the texts of {sources}.
Column `simulated` is true for rows of these sources, and for rows over all sources.

"""
_COLUMN = "simulated"
_ABOUT_COLUMN = "true if the row is of text that a program has made up, or of such text too"
_PUBLISHED = "published_"  # names of views of figures that others have published begin so
_OF_FORMAT = {
    "csv": 'CSV is UTF-8 with a line of names: an empty field is NULL, `""` an empty text.',
    "parquet": "Parquet is compressed with zstd.",
}


def export_figures(settings: Settings, format: str, output: Path) -> int:
    """Write every view for analysts to a file, and return the number of files.

    Exports of the same snapshot are identical: rows are sorted, and one thread computes sums.

    ``format`` is csv or parquet. An earlier export in the folder is replaced.

    Raises:
        UsageError: there is no snapshot, or ``output`` exists and is not an export.
        WarehouseError: the snapshot has another schema version.
        StorageError: writing failed; the earlier export is kept.
    """
    views = exported_views()
    with (
        local_snapshot(settings) as path,
        opened(path, threads=1) as connection,
        exporting(output, _KIND) as folder,
    ):
        simulated = _simulated_sources(connection)
        described = [
            _export(connection, name, description, folder / f"{name}.{format}", simulated)
            for name, description in views.items()
        ]
        rows = [f"| `{v['file']}` | {v['num_rows']} | {v['description']} |" for v in described]
        warning = _SIMULATED.format(sources=", ".join(simulated)) if simulated else ""
        readme = _README.format(format=_OF_FORMAT[format], rows="\n".join(rows), simulated=warning)
        (folder / "README.md").write_text(readme, encoding="utf-8")
        facts = {
            "tidemark": own_version(),
            "duckdb": duckdb.__version__,
            "snapshot_sha256": sha256_of_file(path),
            "simulated_sources": simulated,
            "views": described,
        }
        write_manifest(folder, _KIND, facts)
    return len(described)


def exported_views() -> dict[str, ViewDescription]:
    """Return the views for analysts, by name; leave out table macros, which need an argument."""
    described = {name: describe_view(f) for name, f in list_views().items() if not is_macro(f)}
    return {name: view for name, view in sorted(described.items()) if not view.is_internal}


def _simulated_sources(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Return the sources of simulated text in a snapshot."""
    try:
        found = connection.execute("select source from simulated_sources order by source")
    except duckdb.Error as error:
        raise other_version("simulated_sources") from error
    return [source for (source,) in found.fetchall()]


def _mark(view: str, columns: Sequence[str], simulated: Sequence[str]) -> duckdb.Expression:
    """Return column ``simulated``: True if a row is or may be partly of simulated text."""
    if view.startswith(_PUBLISHED) or not simulated:
        return duckdb.ConstantExpression(False).alias(_COLUMN)
    if "source" not in columns:
        return duckdb.ConstantExpression(True).alias(_COLUMN)
    source = duckdb.ColumnExpression("source")
    among = source.isin(*(duckdb.ConstantExpression(name) for name in simulated))
    return (source.isnull() | among).alias(_COLUMN)


def _export(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    description: ViewDescription,
    path: Path,
    simulated: Sequence[str],
) -> dict[str, object]:
    """Write one view to a file; return the view's entry in the manifest."""
    try:
        view = connection.table(qualify(name))
    except duckdb.Error as error:
        raise other_version(name) from error
    if view.columns != list(description.columns):
        raise other_version(name)
    names = [*description.grain, *(n for n in view.columns if n not in description.grain)]
    columns = [duckdb.ColumnExpression(column) for column in names]
    types = dict(zip(view.columns, map(str, view.types), strict=True))
    mark = _mark(name, names, simulated)
    reader = read_rows(view.select(*columns, mark).sort(*columns[: len(description.grain)]))
    counter = _Counter(reader)
    if path.suffix == ".csv":
        with path.open("w", encoding="utf-8", newline="") as file:
            file.writelines(csv_parts(reader.schema, counter))
    else:
        write_parquet(reader.schema, counter, path)
    documented = description.columns
    described = [
        {"name": column, "type": types[column], "unit": documented[column].get("unit")}
        | {"description": documented[column]["description"]}
        for column in names
    ]
    described.append(
        {"name": _COLUMN, "type": "BOOLEAN", "unit": None, "description": _ABOUT_COLUMN}
    )
    return {
        "name": name,
        "file": path.name,
        "description": description.description,
        "grain": list(description.grain),
        "num_rows": counter.num_rows,
        "columns": described,
    }


class _Counter:
    """Passes record batches on and counts their rows."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches
        self.num_rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            self.num_rows += batch.num_rows
            yield batch


def other_version(view: str) -> WarehouseError:
    """Return the error for a snapshot whose view is not the one that this version knows."""
    return WarehouseError(
        f"the published snapshot has not the view {view} that this tidemark knows; publish it "
        "again: run `tidemark score` or `tidemark land losses`"
    )
