"""Fit the panels of a snapshot, and write the tables of estimates (``schema.ESTIMATES``)."""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace
from typing import Any, cast

import duckdb
import numpy as np
import pyarrow as pa
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from core.progress import counted
from warehouse.database.schema import ESTIMATES, qualify, read_sql
from warehouse.database.statements import Statements, rows_of
from warehouse.estimates.bends import find_bends
from warehouse.estimates.contamination import (
    Shortfalls,
    measure_shortfalls,
    tail_degrees_of_freedom,
)
from warehouse.estimates.cutoffs import (
    CRITICAL,
    POWER_QUANTILE,
    SIGNIFICANT,
    CutoffFit,
    fit_cutoff,
    may_be_the_site,
    site_step,
)
from warehouse.estimates.panel import FEW_BLOCKS, NO_CONTROL, NO_CUTOFF
from warehouse.estimates.panels import (
    EPOCH,
    Curves,
    Panel,
    PanelFigure,
    fit_curves,
    number_of,
    read_panels,
)
from warehouse.estimates.untreated import MOST_OTHERS, DatedCurve, date_cutoffs, fit_untreated

TOO_FEW_MONTHS = "too few months"
STEADY_RISE = "a steady rise over all months, no change"
SMOOTH = "a smooth bend over all months fits as well"
SITE = "the compressor may change at the same months"
AT_REGIME = "the change in {} may be the source's: a regime begins in {}"
SECOND_RISE = "a second rise after {}, the first after {}"
GROWTH = "growth from the cutoff on, without a jump"
BEND = "the change may be the source's: {} changes in the same months"
NO_NEIGHBOURS = "too few months before or after"
NONE_UNTREATED = "no model of these months is before its onset"
MIN_MONTHS = 8


@threadpool_limits.wrap(limits=1)  # type: ignore[untyped-decorator]
def estimate(connection: duckdb.DuckDBPyConnection) -> None:
    """Fit the panel of every source and protocol; replace all rows of the tables of estimates.

    The caller must have begun a transaction on a database file that is to be published.
    """
    for table in ESTIMATES:
        connection.execute(f"delete from {qualify(table)}")  # noqa: S608 - a constant name
    for statement in ("panel_cells", "insert_shared_figures"):
        connection.execute(read_sql("estimates/sql", statement))
    found = rows_of(connection.execute(read_sql("estimates/sql", "panel_figures")))
    cells = cast("list[PanelFigure]", found)
    connection.execute("drop table panel_cells")
    by_protocol: dict[str, list[PanelFigure]] = defaultdict(list)
    for cell in cells:
        by_protocol[cell["protocol"]].append(cell)
    cutoffs = {cell["model"]: number_of(cell["cutoff"]) for cell in cells}
    labels: dict[str, dict[int, str]] = defaultdict(dict)
    for row in rows_of(connection.execute(read_sql("estimates/sql", "panel_regimes"))):
        labels[row["source"]][int(number_of(row["month"]))] = row["regime"]
    thermometers = {cell["model"] for cell in cells if cell["role"] == "thermometer"}
    rows: dict[str, list[dict[str, object]]] = defaultdict(list)
    for protocol, of_protocol in by_protocol.items():
        for source, curves, members in read_panels(of_protocol, cutoffs):
            if all(curve.is_compressor for curve in curves.values()):
                continue
            panel = fit_curves(curves, cutoffs, [labels[name] for name in members])
            key = {"protocol": protocol, "source": source}
            for table, row in _rows(panel, curves, thermometers):
                rows[table].append({**key, **row})
    statements = Statements(connection)
    for table, values in rows.items():
        written = pa.Table.from_pylist(values, schema=statements.columns(table))
        with statements.given(estimates_to_write=written):
            connection.table("estimates_to_write").insert_into(qualify(table))


def _rows(
    panel: Panel, curves: Curves, thermometers: Set[str]
) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield pairs: a table's name, and a row without source and protocol."""
    yield from (("panel_effects", row) for row in _effects(panel, curves))
    yield from (("panel_differences", row) for row in _differences(panel))
    yield from (("panel_difficulty", row) for row in _difficulties(panel, thermometers))
    yield from _changes(panel, curves)


def _effects(panel: Panel, curves: Curves) -> Iterator[dict[str, object]]:
    """Yield rows of ``panel_effects`` without source and protocol."""
    fit = panel.fit
    for number, (model, cutoff) in enumerate(zip(panel.models, panel.cutoffs, strict=True)):
        curve = curves[model]
        counts = [num for *_, num in curves[model].figures.values()]
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


def _differences(panel: Panel) -> Iterator[dict[str, object]]:
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


def _difficulties(panel: Panel, thermometers: Set[str]) -> Iterator[dict[str, object]]:
    """Yield rows of ``panel_difficulty`` without source and protocol.

    A model with role thermometer is read as one if its cutoff is before the first month.
    """
    fit = panel.plain
    counted = (~np.isnan(panel.losses[~np.isnan(panel.cutoffs)])).sum(axis=0)
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
class Change:
    """The cutoff and the low months of one model's curve."""

    basis: str | None
    cutoff: CutoffFit | None
    shortfalls: Shortfalls | None
    reason: str | None  # why there is no cutoff
    bend: str | None = None  # a model that changes in the same months

    @classmethod
    def of(cls, panel: Panel, number: int, all_dated: list[DatedCurve], bend: int | None) -> Change:
        """Return the change of one model; model number ``bend`` changes in the same months."""
        dated = all_dated[number]
        basis = "panel" if dated.others else "compressor"
        if dated.difficulty is None:
            return cls(None, None, None, NO_CONTROL)
        num_months = int(np.isfinite(panel.losses[number]).sum())
        if num_months < MIN_MONTHS:
            lack = f"{counted(num_months, 'month')}; {MIN_MONTHS} are needed"
            return cls(basis, None, None, lack)
        cutoff = dated.cutoff
        change = cutoff if cutoff and cutoff.p_value <= SIGNIFICANT else None
        reason = None if cutoff else NONE_UNTREATED
        if change and not change.is_found:
            reason = STEADY_RISE
            change = None
        elif change and not dated.others and _is_of_the_site(change, panel):
            reason = SITE
        elif change is None:
            reason = _coincidence(panel, number, all_dated) or reason
        if cutoff and (bend is not None or cutoff.is_parabola):
            cutoff = cutoff.opened()
        other = None if bend is None else panel.models[bend]
        return cls(basis, cutoff, _shortfalls(panel, number, change), reason, other)

    def _step_error(self, panel: Panel) -> float | None:
        """Return the error of a step; of a compressor's basis, what a break of the site leaves."""
        if self.cutoff is None or self.basis == "panel" or panel.compressors is None:
            return None if self.cutoff is None else _finite(self.cutoff.step_error)
        least = site_step(self.cutoff.step_error, panel.compressors, panel.months, panel.regimes)
        return _finite(max(self.cutoff.step_error, least / (CRITICAL + POWER_QUANTILE)))

    def row(self, panel: Panel) -> dict[str, object]:
        """Return a row of ``cutoff_estimates`` without its key."""
        row: dict[str, object] = {"basis": self.basis, "reason": self.reason}
        if self.cutoff is not None:
            row["last_datable"] = _day(self.cutoff.last_datable)
            row["step_error"] = self._step_error(panel)
            row["num_free"] = self.cutoff.num_free
            if self.reason is None:
                for name in ("cutoff", "onset"):
                    for end in ("", "_low", "_high"):
                        row[name + end] = _day(getattr(self.cutoff, name + end))
                row["jump"] = self.cutoff.jump
                row["p_value"] = self.cutoff.p_value
                row["note"] = _note(self.cutoff, self.bend)
        return row


def _is_of_the_site(change: CutoffFit, panel: Panel) -> bool:
    control = panel.compressors
    return control is not None and may_be_the_site(change, control, panel.months, panel.regimes)


def _shortfalls(panel: Panel, number: int, change: CutoffFit | None) -> Shortfalls | None:
    """Measure the low months of a model; None if no other model with a cutoff tells lambda."""
    difficulty = panel.calm.difficulty_without(number)
    if difficulty is None:
        return None
    losses = panel.losses[number]
    errors = panel.document_errors[number]
    return measure_shortfalls(losses, panel.months, difficulty, change, errors)


def _note(found: CutoffFit, bend: str | None) -> str | None:
    """Return what the interval of a cutoff does not tell."""
    if bend is not None:
        return BEND.format(bend)
    if found.is_parabola:
        return SMOOTH
    if found.rises is not None:
        first, second = (EPOCH + month for month in found.rises)
        return SECOND_RISE.format(second, first)
    return GROWTH if found.is_growth else None


def _coincidence(panel: Panel, number: int, dated: list[DatedCurve]) -> str | None:
    """Return a reason if a model's curve has a change that a new regime may explain."""
    if not len(panel.starts):
        return None
    plain = fit_untreated(
        np.array([each.losses for each in dated]),
        [each.spell for each in dated],
        panel.months,
        panel.regimes[:, :0],
        panel.compressors,
    )
    difficulty = plain.without(number)
    found = fit_cutoff(dated[number].losses, panel.months, difficulty) if difficulty else None
    if found is None or found.p_value > SIGNIFICANT:
        return None
    start = int(panel.starts[np.abs(panel.starts - found.cutoff - 1).argmin()])
    return AT_REGIME.format(EPOCH + (found.cutoff + 1), EPOCH + start)


def find_changes(panel: Panel) -> list[Change]:
    """Return the change of each model of the panel."""
    dated = date_cutoffs(
        panel.losses, panel.cutoffs, panel.months, panel.regimes, panel.compressors
    )
    bends = find_bends(dated, panel.cutoffs, panel.months)
    for number, each in enumerate(dated):
        closed = _closed(panel, number, each)
        if closed is not None:
            dated[number] = replace(each, cutoff=closed)
            bends[number] = None
    return [Change.of(panel, number, dated, bend) for number, bend in enumerate(bends)]


def _closed(panel: Panel, number: int, dated: DatedCurve) -> CutoffFit | None:
    """Return a change that the whole panel dates within the open interval of a slow rise.

    A model that gets worse from month to month after a step has an open interval: a slow rise fits
    its curve, too. In the whole panel (``panel``), each other model has a level and a line after
    its stated cutoff. So what models of one age share is taken off. The panel is asked only if it
    has MOST_OTHERS others. In a small one, a bend of the source shows as a step of one model.
    """
    found = dated.cutoff
    num_others = np.count_nonzero(np.nan_to_num(np.delete(panel.calm.theta, number)))
    if found is None or not found.is_found or found.is_closed or num_others < MOST_OTHERS:
        return None
    difficulty = panel.calm.difficulty_without(number)
    whole = fit_cutoff(dated.losses, panel.months, difficulty) if difficulty else None
    if whole is None or not whole.is_found or not whole.is_closed or whole.is_parabola:
        return None
    lowest = -np.inf if np.isnan(found.cutoff_low) else found.cutoff_low
    highest = np.inf if np.isnan(found.cutoff_high) else found.cutoff_high
    return whole if lowest <= whole.cutoff_low and whole.cutoff_high <= highest else None


def _changes(panel: Panel, curves: Curves) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield rows of two tables, each with its table's name, without source and protocol.

    For each model, there is a row of ``cutoff_estimates``: its cutoff, or the reason why there is
    none. A row of ``month_shortfalls`` follows for each of its months. All models are fitted first,
    because the tails of all residuals limit the degrees of freedom of each shortfall.
    """
    changes = find_changes(panel)
    scaled = [change.shortfalls.scaled for change in changes if change.shortfalls]
    tail = tail_degrees_of_freedom(np.concatenate([np.zeros(1), *scaled]))
    for number, (model, change) in enumerate(zip(panel.models, changes, strict=True)):
        seen = np.flatnonzero(~np.isnan(panel.losses[number]))
        missing = curves[model].reason if not len(seen) else None
        row = {"model": model, "num_months": len(seen)} | change.row(panel)
        yield "cutoff_estimates", row | ({"reason": missing} if missing else {})
        found = change.shortfalls
        absence = NO_NEIGHBOURS if found else TOO_FEW_MONTHS
        if panel.calm.difficulty_without(number) is None:
            absence = NO_CONTROL
        for month in seen:
            value = found.value[month] if found else np.nan
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
                    "reason": absence if np.isnan(value) else None,
                },
            )


@functools.cache
def _day(month: float) -> Any:
    """Return the first day of a numbered month; None for NaN."""
    return None if np.isnan(month) else (EPOCH + int(month)).first_day


def _deviations(curves: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Return each curve minus the mean of that curve; a curve without months stays NaN."""
    counts = np.maximum((~np.isnan(curves)).sum(axis=1, keepdims=True), 1)
    return curves - np.nansum(curves, axis=1, keepdims=True) / counts


def _finite(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
