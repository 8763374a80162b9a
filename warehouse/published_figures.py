"""What is shipped with the warehouse, as ``reference/**.csv``.

The tables that papers print, one row a figure, with citation; and which group of forecasting
questions a tag belongs to.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.csv as pa_csv

from warehouse.schema import read_sql

_FOLDER = Path(__file__).parent / "reference"
_TAG_GROUPS = _FOLDER / "forecasts" / "tag_groups.csv"
_COLUMNS = (
    "reference", "printed_table", "model", "row_key", "column_name", "value", "unit", "unit_known",
)  # fmt: skip


def refresh_published_figures(connection: duckdb.DuckDBPyConnection) -> None:
    """Make table ``published_figures`` what this version's files say; write only what differs."""
    options = pa_csv.ConvertOptions(column_types=dict.fromkeys(_COLUMNS, pa.string()))
    files = [
        pa_csv.read_csv(file, convert_options=options) for file in sorted(_FOLDER.glob("*.csv"))
    ]
    connection.register("figures_to_load", pa.concat_tables(files))
    try:
        for statement in ("stage", "drop", "insert"):
            connection.execute(read_sql("landing", f"{statement}_published_figures"))
        connection.execute("drop table staged_published_figures")
    finally:
        connection.unregister("figures_to_load")


def refresh_tag_groups(connection: duckdb.DuckDBPyConnection) -> None:
    """Make table ``tag_groups`` what this version's file says; write only what differs."""
    connection.register("tags_to_load", pa_csv.read_csv(_TAG_GROUPS))
    try:
        for statement in ("drop", "insert"):
            connection.execute(read_sql("landing", f"{statement}_tag_groups"))
    finally:
        connection.unregister("tags_to_load")
