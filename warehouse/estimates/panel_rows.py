"""The rows of the tables of estimates that one panel gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.progress import counted
from warehouse.estimates.changes import MIN_MONTHS, Change, find_changes, finite, first_day
from warehouse.estimates.contamination import MIN_NEIGHBOURS, tail_degrees_of_freedom
from warehouse.estimates.panel import FEW_BLOCKS, MIN_BLOCKS, MONTHS_OF_A_BLOCK, NO_CUTOFF
from warehouse.estimates.panels import Curves, Panel, fit_curves

NEEDED = "; {} are needed"
UNTOLD_MONTHS = "other models tell too few of its months"
UNTOLD_MONTH = "no other model tells this month"

TableRow = tuple[str, dict[str, object]]  # a table's name, and a row of it


@dataclass(frozen=True)
class PanelInput:
    """Inputs of the panel of one source and protocol; ``source`` is None for the mean."""

    protocol: str
    source: str | None
    curves: Curves
    cutoffs: Mapping[str, float]
    labels: list[dict[int, str]]
    parts: Mapping[str, Curves]
    thermometers: Set[str]

    @property
    def num_figures(self) -> int:
        """The number of figures of all curves."""
        return sum(len(curve.figures) for curve in self.curves.values())

    def rows(self) -> list[TableRow]:
        """Fit the panel, and return its rows."""
        panel = fit_curves(self.curves, self.cutoffs, self.labels, self.parts)
        key = {"protocol": self.protocol, "source": self.source}
        found = _rows(panel, self.curves, self.thermometers)
        return [(table, {**key, **row}) for table, row in found]


def _rows(panel: Panel, curves: Curves, thermometers: Set[str]) -> Iterator[TableRow]:
    """Yield rows without source and protocol."""
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
        few = curve.reason or _few_blocks(panel, number)
        gap_reason, growth_reason = (
            few if reason == FEW_BLOCKS else reason
            for reason in (fit.gap.reasons[number], fit.growth.reasons[number])
        )
        if fit.enters[number]:
            alone = _alone(panel, number)
        else:
            alone = NO_CUTOFF if np.isnan(cutoff) else few
        yield {
            "model": model,
            "num_months_before": sum(month <= cutoff for month in curve.figures),
            "num_months_after": sum(month > cutoff for month in curve.figures),
            "num_documents": None if None in counts else sum(num for num in counts if num),
            "sensitivity": finite(fit.theta[number]),
            "sensitivity_reason": alone if np.isnan(fit.theta[number]) else None,
            "gap": finite(fit.gap.values[number]),
            "gap_error": finite(fit.gap.errors[number]),
            "gap_reason": gap_reason,
            "growth": finite(fit.growth.values[number]),
            "growth_error": finite(fit.growth.errors[number]),
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

    A model with role thermometer is read as one if its cutoff is before the first month. Months of
    models that do not enter the fit have rows, too, but these models are not counted.
    """
    fit = panel.plain
    is_seen = ~np.isnan(panel.losses)
    num_models = is_seen[fit.enters].sum(axis=0)
    has_row = is_seen[~np.isnan(panel.cutoffs)].any(axis=0)
    has_role = np.array([model in thermometers for model in panel.models], dtype=bool)
    deviations = _deviations(panel.losses[has_role & (panel.cutoffs < panel.months[0])])
    control = np.full(len(panel.months), np.nan) if panel.control is None else panel.control
    compressor = _deviations(control[None])[0]
    for column in np.flatnonzero(has_row):
        readings = deviations[:, column][~np.isnan(deviations[:, column])]
        yield {
            "month": first_day(panel.months[column]),
            "num_models": int(num_models[column]),
            "difficulty": finite(fit.difficulty[column]),
            "difficulty_error": finite(fit.difficulty_error[column]),
            "degrees_of_freedom": float(fit.difficulty_degrees_of_freedom),
            "compressor_difficulty": finite(compressor[column]),
            "num_thermometers": len(readings),
            "thermometer_difficulty": float(readings.mean()) if len(readings) else None,
        }


def _changes(panel: Panel, curves: Curves) -> Iterator[TableRow]:
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
        for place, month in enumerate(seen):
            value = found.value[month] if found else np.nan
            yield (
                "month_shortfalls",
                {
                    "model": model,
                    "month": first_day(panel.months[month]),
                    "bits_per_byte": float(panel.losses[number, month]),
                    "shortfall": finite(value),
                    "shortfall_error": float(found.error[month]) if found else None,
                    "degrees_of_freedom": float(np.fmin(found.num_free[month], tail))
                    if found
                    else None,
                    "reason": _untested(panel, number, change, place) if np.isnan(value) else None,
                },
            )


def _few_blocks(panel: Panel, number: int) -> str:
    """Return the reason of a model with fewer than MIN_BLOCKS blocks of months."""
    blocks = panel.months[~np.isnan(panel.losses[number])] // MONTHS_OF_A_BLOCK
    return f"{counted(len(set(blocks)), 'block')} of three months{NEEDED.format(MIN_BLOCKS)}"


def _alone(panel: Panel, number: int) -> str:
    """Return the reason why no other model of known cutoff tells lambda: there are too few.

    A model that does not enter the panel needs two others. One alone is its own lambda.
    """
    enters = panel.fit.enters
    needed = "1 is needed" if enters[number] else "2 are needed"
    others = counted(int(np.delete(enters, number).sum()), "other model")
    return f"{others} with a known cutoff and {MIN_BLOCKS} blocks of three months; {needed}"


def _untested(panel: Panel, number: int, change: Change, place: int) -> str:
    """Return the reason why a model's month is not tested; ``place`` is that among its months."""
    num_months = int((~np.isnan(panel.losses[number])).sum())
    num_near = min(place, num_months - 1 - place)
    if not change.is_compared:
        return _alone(panel, number)
    if num_months < MIN_MONTHS:
        return counted(num_months, "month") + NEEDED.format(MIN_MONTHS)
    if change.shortfalls is None:
        return UNTOLD_MONTHS
    if num_near < MIN_NEIGHBOURS:
        return f"{counted(num_near, 'month')} on a side of it{NEEDED.format(MIN_NEIGHBOURS)}"
    return UNTOLD_MONTH


def _deviations(curves: np.ndarray[Any, np.dtype[np.float64]]) -> Any:
    """Return each curve minus the mean of that curve; a curve without months stays NaN."""
    counts = np.maximum((~np.isnan(curves)).sum(axis=1, keepdims=True), 1)
    return curves - np.nansum(curves, axis=1, keepdims=True) / counts
