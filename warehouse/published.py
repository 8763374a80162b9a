"""Landing of what others have measured: published monthly rates, and scores on benchmarks.

Both come as small files of keyed rows (``keyed_rows``).
"""

from __future__ import annotations

from pathlib import Path

from core.settings import Settings
from warehouse.keyed_rows import (
    LandedRows,
    put,
    require_agreement,
    require_sound,
    run,
    staged,
    summarise,
)
from warehouse.text_table import read_text_table
from warehouse.writer import transaction

# Rows under it are published figures: no loss of one's own may be landed under this name.
PUBLISHED = "published"


def land_published(
    settings: Settings,
    path: Path,
    reference: str | None = None,
    is_percent: bool = False,
    replace: bool = False,
) -> LandedRows:
    """Land published monthly compression rates, all of a file or nothing.

    Args:
        settings: say where the warehouse is.
        path: CSV or Parquet with model, source, month (YYYY-MM or a date) and compression_rate,
            and optionally num_bytes, is_text and reference.
        reference: citation for rows that do not bring their own.
        is_percent: the rates are percentages; else fractions of the raw size.
        replace: the file's values take the place of landed ones that differ.

    Raises:
        MalformedInput, SchemaMismatch: says which row, what it holds, and what was expected.
        CellConflict: another value is landed for a model, source and month.
    """
    table = read_text_table(
        path,
        ["model", "source", "month", "compression_rate"],
        ["num_bytes", "is_text", "reference"],
    )
    given = {"reference": reference, "is_percent": is_percent}
    with staged(settings, table, "published_rates", given) as connection:
        require_sound(connection, path, "published_rates")
        if not replace:
            require_agreement(connection, path, "find_conflicting_published_rates")
        with transaction(connection, f"land {path}"):
            num_changed = put(connection, "published_rates")
            for dimension in ("models", "sources", "protocols"):
                run(connection, f"name_published_{dimension}")
    return summarise(table, num_changed)


def load_benchmarks(settings: Settings, path: Path, replace: bool = False) -> LandedRows:
    """Load scores of models on benchmarks, all of a file or nothing.

    Args:
        settings: say where the warehouse is.
        path: CSV or Parquet with model, benchmark and score, and optionally reference and as_of
            (YYYY-MM or a date).
        replace: the file's values take the place of loaded ones that differ.

    Raises:
        MalformedInput, SchemaMismatch: says which row, what it holds, and what was expected.
        CellConflict: another score is loaded for a model and benchmark.
    """
    table = read_text_table(path, ["model", "benchmark", "score"], ["reference", "as_of"])
    with staged(settings, table, "benchmark_scores", {}) as connection:
        require_sound(connection, path, "benchmark_scores")
        if not replace:
            require_agreement(connection, path, "find_conflicting_benchmark_scores")
        with transaction(connection, f"land {path}"):
            num_changed = put(connection, "benchmark_scores")
    return summarise(table, num_changed)
