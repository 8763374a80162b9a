"""Fit the panels of a snapshot, and write the tables of estimates (``schema.ESTIMATES``)."""

from __future__ import annotations

from collections import defaultdict
from typing import cast

import duckdb
import pyarrow as pa
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from warehouse.database.schema import ESTIMATES, qualify, read_sql
from warehouse.database.statements import Statements, rows_of
from warehouse.estimates.panel_rows import PanelInput
from warehouse.estimates.panels import PanelFigure, number_of_month, read_panels
from warehouse.estimates.processes import fit_all
from warehouse.estimates.questions import question_rows


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def estimate(connection: duckdb.DuckDBPyConnection) -> None:
    """Fit the panels and the scores of forecasts; replace all rows of the tables of estimates.

    The caller must have begun a transaction on a database file that is to be published.
    """
    for table in ESTIMATES:
        connection.execute(f"delete from {qualify(table)}")  # noqa: S608 - a constant name
    rows: dict[str, list[dict[str, object]]] = defaultdict(list)
    for found in (question_rows(connection), *fit_all(_read_inputs(connection))):
        for table, row in found:
            rows[table].append(row)
    statements = Statements(connection)
    for table, values in rows.items():
        written = pa.Table.from_pylist(values, schema=statements.columns(table))
        with statements.given(estimates_to_write=written):
            connection.table("estimates_to_write").insert_into(qualify(table))


def _read_inputs(connection: duckdb.DuckDBPyConnection) -> list[PanelInput]:
    """Return the inputs of each panel with a language model; fill ``shared_figures``."""
    for statement in ("panel_cells", "insert_shared_figures"):
        connection.execute(read_sql("estimates/sql", statement))
    found = rows_of(connection.execute(read_sql("estimates/sql", "panel_figures")))
    cells = cast("list[PanelFigure]", found)
    connection.execute("drop table panel_cells")
    by_protocol: dict[str, list[PanelFigure]] = defaultdict(list)
    for cell in cells:
        by_protocol[cell["protocol"]].append(cell)
    cutoffs = {cell["model"]: number_of_month(cell["cutoff"]) for cell in cells}
    labels: dict[str, dict[int, str]] = defaultdict(dict)
    for row in rows_of(connection.execute(read_sql("estimates/sql", "panel_regimes"))):
        labels[row["source"]][int(number_of_month(row["month"]))] = row["regime"]
    thermometers = {cell["model"] for cell in cells if cell["role"] == "thermometer"}
    inputs = []
    for protocol, of_protocol in by_protocol.items():
        for source, curves, parts in read_panels(of_protocol, cutoffs):
            if all(curve.is_compressor for curve in curves.values()):
                continue
            regimes = [labels[name] for name in parts]
            inputs.append(
                PanelInput(protocol, source, curves, cutoffs, regimes, parts, thermometers)
            )
    return inputs
