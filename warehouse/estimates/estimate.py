"""Fit the panels of a snapshot, and write the tables ``panel_effects`` and ``panel_difficulty``."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from core.month import Month
from warehouse.database.schema import ESTIMATES, qualify, read_sql
from warehouse.database.statements import Statements, rows_of
from warehouse.estimates.panel import FEW_BLOCKS, NO_CONTROL, NO_CUTOFF, fit_panel

OTHER_SOURCES = "other sources than most models"
OTHER_DOCUMENTS = "other documents than most models"
_EPOCH = Month("1970-01")  # the month with number 0

Row = Mapping[str, Any]


@dataclass
class _Curve:
    """One model's bits per byte and number of documents, by the month's number."""

    figures: dict[int, tuple[float, int | None]] = field(default_factory=dict)
    reason: str | None = None  # reason why figures are missing, if known


Curves = dict[str, _Curve]  # by model


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def estimate(connection: duckdb.DuckDBPyConnection) -> None:
    """Fit the panel of every source and protocol; replace all rows of tables ``panel_*``.

    The caller must have begun a transaction on a database file that is to be published.
    """
    connection.execute(read_sql("estimates/sql", "panel_cells"))
    cells = rows_of(connection.execute(read_sql("estimates/sql", "panel_figures")))
    connection.execute("drop table panel_cells")
    by_protocol: dict[str, list[Row]] = defaultdict(list)
    for cell in cells:
        by_protocol[cell["protocol"]].append(cell)
    cutoffs = {cell["model"]: _number(cell["cutoff"]) for cell in cells}
    rows: dict[str, list[Row]] = {table: [] for table in ESTIMATES}
    for protocol, of_protocol in by_protocol.items():
        for source, curves in _panels(of_protocol, cutoffs):
            key = {"protocol": protocol, "source": source}
            for table, row in _fit(curves, cutoffs):
                rows[table].append(key | row)
    statements = Statements(connection)
    for table, values in rows.items():
        connection.execute(f"delete from {qualify(table)}")  # noqa: S608 - a constant name
        written = pa.Table.from_pylist(values, schema=statements.columns(table))
        with statements.given(estimates_to_write=written):
            connection.table("estimates_to_write").insert_into(qualify(table))


@functools.cache
def _number(month: Any) -> float:
    """Return the number of months from 1970-01 to ``month``; NaN for None."""
    return np.nan if month is None else float(Month.of(month).months_since(_EPOCH))


def _panels(cells: list[Row], cutoffs: Mapping[str, float]) -> Iterator[tuple[str | None, Curves]]:
    """Yield the curves of each source of one protocol, then the mean curves (source None)."""
    sources: dict[str, Curves] = defaultdict(lambda: defaultdict(_Curve))
    for cell in cells:
        curve = sources[cell["source"]][cell["model"]]
        if cell["bits_per_byte"] is not None:
            month = int(_number(cell["month"]))
            curve.figures[month] = cell["bits_per_byte"], cell["num_documents"]
        elif cell["cutoff"] is not None:
            curve.reason = OTHER_DOCUMENTS
    yield from sources.items()
    texts = sorted({cell["source"] for cell in cells if cell["is_text"]})
    if texts:
        yield None, _means({source: sources[source] for source in texts}, cutoffs)


def _means(sources: Mapping[str, Curves], cutoffs: Mapping[str, float]) -> Curves:
    """Return each model's mean curve over sources; the sources are the same for all models.

    A model's usable sources have at least half as many months as its longest source. The most
    common set of usable sources among models with a known cutoff is chosen. A curve has the months
    that all chosen sources have.
    """
    kept: dict[str, frozenset[str]] = {}
    for model in sorted({model for curves in sources.values() for model in curves}):
        counts = {
            name: len(curves[model].figures) for name, curves in sources.items() if model in curves
        }
        most = max(counts.values())
        kept[model] = frozenset(name for name, num in counts.items() if 2 * num >= most > 0)
    votes = Counter(names for model, names in kept.items() if not np.isnan(cutoffs[model]))
    most_common = max(votes or [frozenset()], key=lambda it: (votes[it], len(it), sorted(it)))
    return {model: _mean(model, sources, names, most_common) for model, names in kept.items()}


def _mean(
    model: str, sources: Mapping[str, Curves], kept: frozenset[str], chosen: frozenset[str]
) -> _Curve:
    if not kept >= chosen or not chosen:
        return _Curve(reason=OTHER_SOURCES)
    figures = [sources[name][model].figures for name in sorted(chosen)]
    mean = _Curve()
    for month in sorted(set.intersection(*map(set, figures))):
        bits, counts = zip(*(each[month] for each in figures), strict=True)
        mean.figures[month] = float(np.mean(bits)), None if None in counts else sum(counts)
    return mean


def _fit(curves: Curves, cutoffs: Mapping[str, float]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Fit one panel; yield pairs: a table's name, and a row without source and protocol."""
    models = sorted(curves)
    months = sorted({month for curve in curves.values() for month in curve.figures}) or [0]
    losses = np.full((len(models), len(months)), np.nan)
    for row, model in zip(losses, models, strict=True):
        figures = curves[model].figures
        row[np.searchsorted(months, list(figures))] = [bits for bits, _ in figures.values()]
    known = np.array([cutoffs[model] for model in models])
    fit = fit_panel(losses, known, np.array(months))
    for number, model in enumerate(models):
        curve, counts = curves[model], [num for _, num in curves[model].figures.values()]
        gap_reason, growth_reason = (
            (curve.reason or reason) if reason == FEW_BLOCKS else reason
            for reason in (fit.gap_reason[number], fit.growth_reason[number])
        )
        is_in = fit.gap_reason[number] not in {FEW_BLOCKS, NO_CUTOFF}
        alone = NO_CONTROL if is_in else gap_reason
        yield (
            "panel_effects",
            {
                "model": model,
                "num_months_before": sum(month <= cutoffs[model] for month in curve.figures),
                "num_months_after": sum(month > cutoffs[model] for month in curve.figures),
                "num_documents": None if None in counts else sum(num for num in counts if num),
                "sensitivity": _finite(fit.theta[number]),
                "sensitivity_reason": alone if np.isnan(fit.theta[number]) else None,
                "gap": _finite(fit.gap[number]),
                "gap_error": _finite(fit.gap_error[number]),
                "gap_reason": gap_reason,
                "growth": _finite(fit.growth[number]),
                "growth_error": _finite(fit.growth_error[number]),
                "growth_reason": growth_reason,
                "degrees_of_freedom": float(fit.degrees_of_freedom[number]),
            },
        )
    counted = (~np.isnan(losses[~np.isnan(known)])).sum(axis=0)
    thermometers = _deviations(losses[known < months[0]])
    for column in np.flatnonzero(counted):
        readings = thermometers[:, column][~np.isnan(thermometers[:, column])]
        yield (
            "panel_difficulty",
            {
                "month": (_EPOCH + months[column]).first_day,
                "num_models": int(counted[column]),
                "difficulty": _finite(fit.difficulty[column]),
                "difficulty_error": _finite(fit.difficulty_error[column]),
                "degrees_of_freedom": float(fit.difficulty_degrees_of_freedom),
                "num_thermometers": len(readings),
                "thermometer_difficulty": float(readings.mean()) if len(readings) else None,
            },
        )


def _deviations(curves: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Return each curve minus the mean of that curve; a curve without months stays NaN."""
    counts = np.maximum((~np.isnan(curves)).sum(axis=1, keepdims=True), 1)
    return curves - np.nansum(curves, axis=1, keepdims=True) / counts


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
