"""The addresses of a figure: CSV, JSON, Parquet, metadata, SQL, pictures, interactive chart."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping

import polars as pl

from reports.site import simulated
from reports.site.charts import Drawing
from reports.site.context import Site
from reports.site.figure import Figure

# First characters of a text that a spreadsheet runs as a formula (OWASP, "CSV Injection").
_FORMULA = frozenset("=+-@\t\r")
LICENCE = "figures: CC0-1.0"
_SIMULATED = {
    "name": simulated.COLUMN,
    "unit": "",
    "is": "true if the row is of text that tidemark's simulator has made up, or of such text too",
}


def addresses(figure: Figure) -> list[str]:
    """Return the kinds of a figure's files, as the ends of their names."""
    kinds = ["csv", "json", "parquet", "metadata.json", "sql"]
    return [*kinds, "svg", "png"] if figure.chart else kinds


def data_files(figure: Figure, site: Site) -> Iterator[tuple[str, bytes]]:
    """Yield path (relative to the site's root) and content of each file of a figure's rows."""
    stem = f"figures/{figure.name}"
    rows = simulated.marked_rows(figure, site)
    yield f"{stem}.csv", _csv(rows).encode()
    yield f"{stem}.json", _json_rows(rows)
    yield f"{stem}.parquet", _parquet(rows)
    yield f"{stem}.metadata.json", _json(metadata(figure, site))
    yield f"{stem}.sql", (figure.sql.strip() + ";\n").encode()


def drawing_files(name: str, drawing: Drawing) -> Iterator[tuple[str, bytes]]:
    """Yield path and content of each file of a figure's chart."""
    yield f"figures/{name}.svg", drawing.svg.encode()
    yield f"figures/{name}.png", drawing.png
    yield (
        f"figures/{name}.chart.js",
        f"tidemark.draw({json.dumps(name)},{drawing.vega});\n".encode(),
    )


def metadata(figure: Figure, site: Site) -> dict[str, object]:
    """Return what a figure is: title, columns with units, number of rows, window, provenance."""
    facts = site.facts
    formulas = site.formulas(figure.sql)
    return {
        "name": figure.name,
        "title": figure.title,
        "about": figure.about,
        "num_rows": figure.rows.height,
        "columns": [
            *(_described(name, figure, formulas) for name in figure.rows.columns),
            _SIMULATED,
        ],
        "formulas": {name: formulas[name] for name in figure.rows.columns if name in formulas},
        "sql": figure.sql,
        **site.measured,
        "licence": LICENCE,
        "simulated": simulated.is_simulated(figure, site),
        "simulated_sources": site.simulated,
        **figure.measured,
        "commit": facts.commit,
        "release": facts.release,
        "built_at": facts.built_at.isoformat(timespec="seconds"),
        "snapshot_sha256": facts.snapshot_sha256,
    }


def _described(name: str, figure: Figure, formulas: Mapping[str, str]) -> dict[str, object]:
    """Return what a column is, with its unit; a column of the table also has its header."""
    text, _, unit = formulas.get(name, "").removesuffix("]").partition(" [")
    unit = unit or name.removeprefix("num_").replace("_", " ") * name.startswith("num_")
    for column in figure.columns:
        if name == column.name and column.draw is None:
            ends = {"low": column.low, "high": column.high} if column.low else {}
            unit = column.unit if column.unit and column.factor == 1 else unit
            return {"name": name, "header": column.header, "unit": unit,
                    "is": column.about or text, **ends}  # fmt: skip
        if name in (column.low, column.high) and column.factor == 1:
            unit = column.unit or unit
    return {"name": name, "unit": unit, "is": text}


def _csv(rows: pl.DataFrame) -> str:
    """Return rows as CSV; a text that a spreadsheet would run gets an apostrophe in front."""
    texts = [name for name, kind in rows.schema.items() if kind == pl.String]
    unsafe = [name for name in texts if any(map(_is_formula, rows[name].to_list()))]
    if unsafe:
        rows = rows.with_columns(
            pl.when(pl.col(name).str.slice(0, 1).is_in(list(_FORMULA)))
            .then(pl.lit("'") + pl.col(name))
            .otherwise(pl.col(name))
            .alias(name)
            for name in unsafe
        )
    return rows.write_csv()


def _is_formula(text: str | None) -> bool:
    return text is not None and text[:1] in _FORMULA


def _json_rows(rows: pl.DataFrame) -> bytes:
    """Return rows as a JSON array, one row a line; dates are texts, and NaN is null."""
    decimals = {name: kind for name, kind in rows.schema.items() if kind.is_decimal()}
    if decimals:
        rows = rows.with_columns(
            pl.col(name).cast(pl.Int64 if kind == pl.Decimal(38, 0) else pl.Float64)
            for name, kind in decimals.items()
        )
    return ("[" + rows.write_ndjson().rstrip().replace("\n", ",\n") + "]\n").encode()


def _parquet(rows: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    rows.write_parquet(file, statistics=False)  # a sixth of the bytes of such small files
    return file.getvalue()


def _json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()
