"""Fit the panels of a snapshot, and write the tables of estimates (``schema.ESTIMATES``)."""

from __future__ import annotations

import functools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from core.month import Month
from warehouse.database.schema import ESTIMATES, qualify, read_sql
from warehouse.database.statements import Statements, rows_of
from warehouse.estimates.contamination import (
    Shortfalls,
    find_low_months,
    measure_shortfalls,
    tail_degrees_of_freedom,
)
from warehouse.estimates.cutoffs import (
    CutoffFit,
    control_difficulty,
    fit_cutoff,
    may_be_the_site,
)
from warehouse.estimates.panel import (
    FEW_BLOCKS,
    NO_CONTROL,
    NO_CUTOFF,
    PanelFit,
    fit_panel,
)
from warehouse.estimates.panel_errors import Floats

OTHER_SOURCES = "other sources than most models"
OTHER_DOCUMENTS = "other documents than most models"
TOO_FEW_MONTHS = "too few months"
STEADY_RISE = "a steady rise over all months, no change"
SITE = "the compressor may change at the same months"
NO_NEIGHBOURS = "too few months before or after"
CONTROL = "control:zstd"
SIGNIFICANT, MIN_MONTHS = 0.05, 8
_EPOCH = Month("1970-01")  # the month with number 0

Row = Mapping[str, Any]


@dataclass
class _Curve:
    """One model's figures: bits per byte, standard error (NaN if unknown), number of documents."""

    figures: dict[int, tuple[float, float, int | None]] = field(default_factory=dict)
    reason: str | None = None  # reason why figures are missing, if known


Curves = dict[str, _Curve]  # by model


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def estimate(connection: duckdb.DuckDBPyConnection) -> None:
    """Fit the panel of every source and protocol; replace all rows of the tables of estimates.

    The caller must have begun a transaction on a database file that is to be published.
    """
    for table in ESTIMATES:
        connection.execute(f"delete from {qualify(table)}")  # noqa: S608 - a constant name
    for statement in ("panel_cells", "insert_shared_figures"):
        connection.execute(read_sql("estimates/sql", statement))
    cells = rows_of(connection.execute(read_sql("estimates/sql", "panel_figures")))
    connection.execute("drop table panel_cells")
    by_protocol: dict[str, list[Row]] = defaultdict(list)
    for cell in cells:
        by_protocol[cell["protocol"]].append(cell)
    cutoffs = {cell["model"]: _number(cell["cutoff"]) for cell in cells}
    thermometers = {cell["model"] for cell in cells if cell["role"] == "thermometer"}
    rows: dict[str, list[Row]] = defaultdict(list)
    for protocol, of_protocol in by_protocol.items():
        for source, curves in _panels(of_protocol, cutoffs):
            if curves.keys() == {CONTROL}:
                continue
            panel, key = _fit(curves, cutoffs), {"protocol": protocol, "source": source}
            for table, row in _rows(panel, curves, thermometers):
                rows[table].append(key | row)
    statements = Statements(connection)
    for table, values in rows.items():
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
            error = cell["standard_error"]
            figures = cell["bits_per_byte"], np.nan if error is None else error
            curve.figures[month] = *figures, cell["num_documents"]
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
        bits, errors, counts = zip(*(each[month] for each in figures), strict=True)
        error = float(np.linalg.norm(errors)) / len(errors)
        mean.figures[month] = float(np.mean(bits)), error, None if None in counts else sum(counts)
    return mean


def _rows(
    panel: _Panel, curves: Curves, thermometers: Set[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield pairs: a table's name, and a row without source and protocol."""
    yield from (("panel_effects", row) for row in _effects(panel, curves))
    yield from (("panel_differences", row) for row in _differences(panel))
    yield from (("panel_difficulty", row) for row in _difficulties(panel, thermometers))
    yield from _changes(panel, curves)


@dataclass(frozen=True)
class _Panel:
    """The fit of one panel; arrays have the shape (models, months) or (months,)."""

    models: list[str]
    months: NDArray[np.int64]
    losses: Floats
    document_errors: Floats  # standard errors of random documents; NaN if unknown
    cutoffs: Floats  # (models,)
    control: Floats | None  # curve of the compressor
    fit: PanelFit


def _fit(curves: Curves, cutoffs: Mapping[str, float]) -> _Panel:
    months = np.array(
        sorted({month for curve in curves.values() for month in curve.figures}) or [0]
    )
    names = sorted(curves)
    figures = np.full((2, len(names), len(months)), np.nan)  # losses, standard errors
    for number, name in enumerate(names):
        for month, (bits, error, _) in curves[name].figures.items():
            figures[:, number, np.searchsorted(months, month)] = bits, error
    models = [name for name in names if name != CONTROL]
    has_control = CONTROL in names and bool(curves[CONTROL].figures)
    rows = [names.index(model) for model in models]
    known = np.array([cutoffs[model] for model in models])
    return _Panel(
        models=models,
        months=months,
        losses=figures[0, rows],
        document_errors=figures[1, rows],
        cutoffs=known,
        control=figures[0, names.index(CONTROL)] if has_control else None,
        fit=fit_panel(figures[0, rows], known, months),
    )


def _effects(panel: _Panel, curves: Curves) -> Iterator[dict[str, Any]]:
    """Yield rows of ``panel_effects`` without source and protocol."""
    fit = panel.fit
    for number, (model, cutoff) in enumerate(zip(panel.models, panel.cutoffs, strict=True)):
        curve, counts = curves[model], [num for *_, num in curves[model].figures.values()]
        gap_reason, growth_reason = (
            (curve.reason or reason) if reason == FEW_BLOCKS else reason
            for reason in (fit.gap.reasons[number], fit.growth.reasons[number])
        )
        is_in = fit.gap.reasons[number] not in {FEW_BLOCKS, NO_CUTOFF}
        alone = NO_CONTROL if is_in else gap_reason
        yield {
            "model": model,
            "num_months_before": sum(month <= cutoff for month in curve.figures),
            "num_months_after": sum(month > cutoff for month in curve.figures),
            "num_documents": None if None in counts else sum(num for num in counts if num),
            "sensitivity": _finite(fit.theta[number]),
            "sensitivity_reason": alone if np.isnan(fit.theta[number]) else None,
            "gap": _finite(fit.gap.values[number]),
            "gap_error": _finite(fit.gap.errors[number]),
            "gap_reason": gap_reason,
            "growth": _finite(fit.growth.values[number]),
            "growth_error": _finite(fit.growth.errors[number]),
            "growth_reason": growth_reason,
            "degrees_of_freedom": float(fit.degrees_of_freedom[number]),
        }


def _differences(panel: _Panel) -> Iterator[dict[str, Any]]:
    """Yield rows of ``panel_differences`` without source and protocol."""
    for effect in ("gap", "growth"):
        errors = getattr(panel.fit, effect).difference_errors
        for model, other in zip(*np.triu_indices(len(errors), 1), strict=True):
            if not np.isnan(errors[model, other]):
                yield {
                    "model": panel.models[model],
                    "other_model": panel.models[other],
                    "effect": effect,
                    "difference_error": float(errors[model, other]),
                }


def _difficulties(panel: _Panel, thermometers: Set[str]) -> Iterator[dict[str, Any]]:
    """Yield rows of ``panel_difficulty`` without source and protocol.

    A model with role thermometer is read as one if its cutoff is before the first month.
    """
    fit, counted = panel.fit, (~np.isnan(panel.losses[~np.isnan(panel.cutoffs)])).sum(axis=0)
    has_role = np.array([model in thermometers for model in panel.models], dtype=bool)
    deviations = _deviations(panel.losses[has_role & (panel.cutoffs < panel.months[0])])
    control = np.full(len(panel.months), np.nan) if panel.control is None else panel.control
    compressor = _deviations(control[None])[0]
    for column in np.flatnonzero(counted):
        readings = deviations[:, column][~np.isnan(deviations[:, column])]
        yield {
            "month": _day(panel.months[column]),
            "num_models": int(counted[column]),
            "difficulty": _finite(fit.difficulty[column]),
            "difficulty_error": _finite(fit.difficulty_error[column]),
            "degrees_of_freedom": float(fit.difficulty_degrees_of_freedom),
            "compressor_difficulty": _finite(compressor[column]),
            "num_thermometers": len(readings),
            "thermometer_difficulty": float(readings.mean()) if len(readings) else None,
        }


@dataclass(frozen=True)
class _Change:
    """The cutoff and the low months of one model's curve."""

    basis: str | None
    cutoff: CutoffFit | None
    shortfalls: Shortfalls | None
    reason: str | None  # why there is no cutoff

    @classmethod
    def of(cls, panel: _Panel, number: int) -> _Change:
        """Fit the change of one model of the panel."""
        losses, months, basis = panel.losses[number], panel.months, "panel"
        difficulty = panel.fit.difficulty_without(number)
        control = panel.control
        if difficulty is None and control is not None:
            basis, difficulty = "compressor", control_difficulty(control, months)
        if difficulty is None:
            return cls(None, None, None, NO_CONTROL)
        if np.isfinite(losses).sum() < MIN_MONTHS:
            return cls(basis, None, None, TOO_FEW_MONTHS)
        is_low = find_low_months(losses, difficulty)
        cutoff = fit_cutoff(np.where(is_low, np.nan, losses), months, difficulty)
        change = cutoff if cutoff and cutoff.p_value <= SIGNIFICANT else None
        reason = None if cutoff else TOO_FEW_MONTHS
        if change and change.is_line:
            change, reason = None, STEADY_RISE
        if basis == "compressor":
            if change and control is not None and may_be_the_site(change, control, months):
                reason = SITE
            return cls(basis, cutoff, None, reason)
        errors = panel.document_errors[number]
        shortfalls = measure_shortfalls(losses, months, difficulty, change, errors)
        return cls(basis, cutoff, shortfalls, reason)

    def row(self) -> dict[str, Any]:
        """Return a row of ``cutoff_estimates`` without its key."""
        row: dict[str, Any] = {"basis": self.basis, "reason": self.reason}
        if self.cutoff is not None:
            row["last_datable"] = _day(self.cutoff.last_datable)
            if self.reason is None:
                for name in ("cutoff", "onset"):
                    for end in ("", "_low", "_high"):
                        row[name + end] = _day(getattr(self.cutoff, name + end))
                row["jump"] = self.cutoff.jump
                row["p_value"] = self.cutoff.p_value
        return row


def _changes(panel: _Panel, curves: Curves) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield pairs: a table's name, and a row without source and protocol."""
    changes = [_Change.of(panel, number) for number in range(len(panel.models))]
    scaled = [change.shortfalls.scaled for change in changes if change.shortfalls]
    tail = tail_degrees_of_freedom(np.concatenate([np.zeros(1), *scaled]))
    for number, (model, change) in enumerate(zip(panel.models, changes, strict=True)):
        seen = np.flatnonzero(~np.isnan(panel.losses[number]))
        missing = curves[model].reason if not len(seen) else None
        row = {"model": model, "num_months": len(seen)} | change.row()
        yield "cutoff_estimates", row | ({"reason": missing} if missing else {})
        found = change.shortfalls
        for month in seen:
            value = found.value[month] if found else np.nan
            reason = NO_NEIGHBOURS if found else TOO_FEW_MONTHS
            reason = reason if change.basis == "panel" else NO_CONTROL
            yield (
                "month_shortfalls",
                {
                    "model": model,
                    "month": _day(panel.months[month]),
                    "bits_per_byte": float(panel.losses[number, month]),
                    "shortfall": _finite(value),
                    "shortfall_error": float(found.error[month]) if found else None,
                    "degrees_of_freedom": float(np.fmin(found.num_free[month], tail))
                    if found
                    else None,
                    "reason": reason if np.isnan(value) else None,
                },
            )


def _day(month: float) -> Any:
    """Return the first day of a numbered month; None for NaN."""
    return None if np.isnan(month) else (_EPOCH + int(month)).first_day


def _deviations(curves: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Return each curve minus the mean of that curve; a curve without months stays NaN."""
    counts = np.maximum((~np.isnan(curves)).sum(axis=1, keepdims=True), 1)
    return curves - np.nansum(curves, axis=1, keepdims=True) / counts


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
