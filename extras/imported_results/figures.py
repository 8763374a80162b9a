"""Landing of published compression rates, benchmark scores, and ratings of difficulty."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import yaml

from core.settings import Settings
from extras.imported_results.keyed_rows import (
    LandedRows,
    Target,
    describe_names,
    staged,
    summarise,
)
from extras.imported_results.text_table import TextTable, read_text_table
from warehouse.database.writer import transaction

_PUBLISHED = "published"  # the protocol; no losses may land under this name
_DESCRIPTION = "rates as others have published them; `tidemark land rates`"
_PROTOCOL = pa.table({"protocol": [_PUBLISHED], "description": [_DESCRIPTION]})
_FOLDER = Path(__file__).parent / "shipped"
SHIPPED = _FOLDER / "wikipedia_li_2024.csv"
SHIPPED_SCORES = _FOLDER / "scores_li_2024.csv"
_OPTIONAL = ("num_bytes", "is_text", "reference")
_RATES = Target(
    "published_rates",
    key={"model": "text", "source": "text", "month": "month"},
    values={
        "compression_rate": "number",
        "num_bytes": "count",
        "is_text": "truth",
        "reference": "text",
    },
    defaults={"is_text": "true"},
)
_BENCHMARKS = Target(
    "benchmark_scores",
    key={"model": "text", "benchmark": "text"},
    values={"score": "number", "reference": "text", "as_of": "day or month", "ability": "text"},
)
_RATINGS = Target(
    "human_difficulty",
    key={"puzzle": "text", "complexity": "text"},
    values={"rating": "number", "num_raters": "count", "reference": "text"},
)


def land_published(
    settings: Settings,
    path: Path,
    reference: str | None = None,
    is_percent: bool = False,
    replace: bool = False,
) -> LandedRows:
    """Land published monthly compression rates from a file, all rows or none.

    Args:
        settings: settings with the path of the warehouse.
        path: CSV or Parquet with model, source, month (YYYY-MM or a date) and compression_rate, and
            optionally num_bytes, is_text and reference.
        reference: citation for rows whose column ``reference`` is empty or missing.
        is_percent: True if the rates are percentages; else they are fractions of the raw size.
        replace: overwrite landed values that differ.

    Raises:
        MalformedInput, SchemaMismatch: the file is invalid; the message names the row.
        CellConflict: another value has landed for a model, source and month.
    """
    required = ["model", "source", "month", "compression_rate"]
    table = read_text_table(path, required, _OPTIONAL)
    return _land_rates(settings, table, reference, is_percent, replace)


def land_shipped_rates(settings: Settings, replace: bool = False) -> LandedRows:
    """Land the monthly rates that tidemark ships, and the catalogue entries of their models.

    The file has a column per model; see the YAML beside it.

    Raises:
        CellConflict: another value has landed for a model, source and month.
    """
    import polars as pl  # which takes a fifth of a second, and each command imports this module

    stated = yaml.safe_load(SHIPPED.with_suffix(".yml").read_text("utf-8"))
    rows = (
        pl.read_csv(SHIPPED, infer_schema=False)
        .unpivot(index="month", variable_name="model", value_name="compression_rate")
        .drop_nulls()
        .with_columns(pl.lit(stated["source"]).alias("source"))
        .with_columns(pl.lit(None, pl.String).alias(name) for name in _OPTIONAL)
        .with_row_index("row_number", 1)
    )
    table = TextTable(SHIPPED, rows.to_arrow(), ())
    is_percent = stated["unit"] == "%"
    landed = _land_rates(settings, table, stated["reference"], is_percent, replace)
    describe_names(landed, settings)
    return landed


def load_benchmarks(settings: Settings, path: Path, replace: bool = False) -> LandedRows:
    """Load models' benchmark scores from a file, all rows or none.

    Args:
        settings: settings with the path of the warehouse.
        path: CSV or Parquet with model, benchmark and score, and optionally reference, as_of
            (YYYY-MM or a date) and ability (such as knowledge, coding or mathematics).
        replace: overwrite loaded scores that differ.

    Raises:
        MalformedInput, SchemaMismatch: the file is invalid; the message names the row.
        CellConflict: a different score has been loaded for the same model and benchmark.
    """
    table = read_text_table(
        path, ["model", "benchmark", "score"], ["reference", "as_of", "ability"]
    )
    with staged(settings, table, _BENCHMARKS) as rows:
        return summarise(table, rows.land(replace))


def load_ratings(
    settings: Settings, path: Path, complexities: Mapping[str, str], replace: bool = False
) -> LandedRows:
    """Load people's ratings of the difficulty of puzzles from a file, all rows or none.

    Args:
        settings: settings with the path of the warehouse.
        path: CSV or Parquet with puzzle, complexity and rating, and optionally num_raters and
            reference.
        complexities: the complexity of each puzzle, by its name.
        replace: overwrite loaded ratings that differ.

    Raises:
        MalformedInput, SchemaMismatch: the file is invalid; the message names the row.
        CellConflict: a different rating has been loaded for the same puzzle and complexity.
    """
    table = read_text_table(path, ["puzzle", "complexity", "rating"], ["num_raters", "reference"])
    # The form of a dict that DuckDB takes for a map.
    puzzles = {"key": list(complexities), "value": list(complexities.values())}
    with staged(settings, table, _RATINGS, facts={"puzzles": puzzles}) as rows:
        return summarise(table, rows.land(replace))


def _land_rates(
    settings: Settings, table: TextTable, reference: str | None, is_percent: bool, replace: bool
) -> LandedRows:
    """Land rates of a text table, after percentages were divided by 100."""
    facts = {"is_percent": is_percent}
    with staged(settings, table, _RATES, {"reference": reference}, facts) as rows:
        if is_percent:
            rows.statements.run("divide_percentages")
        with transaction(rows.statements.connection, f"land {table.path}"):
            num_changed = rows.land(replace)
            rows.statements.add_names("models", "published_rates")
            rows.statements.add_names("sources", "published_rates")
            with rows.statements.given(protocol_to_name=_PROTOCOL):
                rows.statements.upsert("protocols", "protocol_to_name", ["protocol"])
    return summarise(table, num_changed)
