"""The change of each model of a panel: its cutoff, or the reason why there is none."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.progress import counted
from warehouse.estimates.bends import find_bends
from warehouse.estimates.contamination import Shortfalls, measure_shortfalls
from warehouse.estimates.cutoffs import (
    CRITICAL,
    POWER_QUANTILE,
    SIGNIFICANT,
    CutoffFit,
    fit_cutoff,
    may_be_the_site,
    site_step,
)
from warehouse.estimates.difficulty import Difficulty, DifficultyFit, Readings
from warehouse.estimates.panels import EPOCH, Panel
from warehouse.estimates.rises import Rises
from warehouse.estimates.sources import Rest, leave_out_sources
from warehouse.estimates.staggered import tell_apart
from warehouse.estimates.untreated import (
    LEAST_OTHERS,
    MOST_OTHERS,
    DatedCurve,
    date_cutoffs,
    fit_untreated,
)

STEADY_RISE = "a steady rise over all months fits as well as a change"
STEADY_OR_TWO = "a steady rise over all months, or rises after {} and {}"
SMOOTH = "a smooth bend over all months fits as well"
SITE = "the compressor may change at the same months"
AT_REGIME = "the change in {} may be the source's: a regime begins in {}"
GROWTH = "growth from the cutoff on, without a jump"
BEND = "the change may be the source's: {} changes in the same months"
SHARED = "the change may be the source's: one that all models share fits as well"
WITHOUT_SOURCE = "without {}, which alone shows another change"
ONE_SOURCE = "only {} shows the change: see estimated_cutoff_by_source"
NO_OTHERS = "no other model, and no compressor, tells its months"
NONE_UNTREATED = "no model of these months is before its onset"
MIN_MONTHS = 8


@dataclass(frozen=True)
class Change:
    """The cutoff and the low months of one model's curve."""

    basis: str | None
    cutoff: CutoffFit | None
    shortfalls: Shortfalls | None
    reason: str | None  # why there is no cutoff
    bend: str | None = None  # a model that changes in the same months
    is_compared: bool = False  # another model with a stated cutoff tells lambda
    source: str | None = None  # a source that is left out

    @classmethod
    def of(
        cls,
        panel: Panel,
        number: int,
        all_dated: list[DatedCurve],
        calm: Difficulty | None,
        bend: int | None,
        doubt: str | None,
    ) -> Change:
        """Return the change of one model.

        ``calm`` is lambda of the panel without the model. Model number ``bend`` changes in the same
        months. ``doubt`` is the reason why the change may be no cutoff at all.
        """
        dated = all_dated[number]
        basis = "panel" if dated.others else "compressor" if dated.difficulty else None
        is_compared = calm is not None
        num_months = int(np.isfinite(panel.losses[number]).sum())
        if num_months < MIN_MONTHS:
            lack = f"{counted(num_months, 'month')}; {MIN_MONTHS} are needed"
            return cls(basis, None, None, lack, is_compared=is_compared)
        if dated.difficulty is None:
            return cls(None, None, None, NO_OTHERS, is_compared=is_compared)
        cutoff = dated.cutoff
        change = cutoff if cutoff and cutoff.p_value <= SIGNIFICANT else None
        reason = None if cutoff else _untold(panel, number)
        if change and not change.is_found:
            reason = _steady(change)
            change = None
        elif change and not dated.others and _is_of_the_site(change, panel):
            reason = SITE
        elif change and doubt:
            reason = doubt
        elif change and bend is not None and panel.cutoffs[number] < change.first_datable:
            reason = BEND.format(panel.models[bend])
        elif change is None:
            reason = _coincidence(panel, number, all_dated) or reason
        if cutoff and (bend is not None or cutoff.is_parabola):
            cutoff = cutoff.opened()
        other = None if bend is None else panel.models[bend]
        low = _shortfalls(panel, number, calm, change)
        return cls(basis, cutoff, low, reason, other, is_compared)

    def without_source(self, rest: Rest) -> Change:
        """Return the change of the other sources, if a panel shows them one."""
        found = rest.cutoff
        if found is None or self.basis != "panel":
            return self
        found = found.opened() if found.is_parabola else found
        return replace(self, cutoff=found, reason=None, bend=None, source=rest.source)

    def _step_error(self, panel: Panel) -> float | None:
        """Return the error of a step; of a compressor's basis, what a break of the site leaves."""
        if self.cutoff is None or self.basis == "panel" or panel.compressors is None:
            return None if self.cutoff is None else finite(self.cutoff.step_error)
        least = site_step(self.cutoff.step_error, panel.compressors, panel.months, panel.regimes)
        return finite(max(self.cutoff.step_error, least / (CRITICAL + POWER_QUANTILE)))

    def row(self, panel: Panel) -> dict[str, object]:
        """Return a row of ``cutoff_estimates`` without its key."""
        row: dict[str, object] = {"basis": self.basis, "reason": self.reason}
        if self.cutoff is not None:
            row["first_datable"] = first_day(self.cutoff.first_datable)
            row["last_datable"] = first_day(self.cutoff.last_datable)
            row["step_error"] = self._step_error(panel)
            row["num_free"] = self.cutoff.num_free
            if self.reason is None:
                for name in ("cutoff", "onset"):
                    for end in ("", "_low", "_high"):
                        row[name + end] = first_day(getattr(self.cutoff, name + end))
                row["jump"] = self.cutoff.jump
                row["p_value"] = self.cutoff.p_value
                row["note"] = _note(self.cutoff, self.bend)
                if self.source is not None:
                    notes = WITHOUT_SOURCE.format(self.source), row["note"]
                    row["note"] = "; ".join(str(each) for each in notes if each)
                if self.cutoff.is_found and self.cutoff.rises is not None:
                    row |= _rises(self.cutoff.rises)
        return row


def _untold(panel: Panel, number: int) -> str:
    """Return the reason why the other curves tell too little of a model's months."""
    is_told = np.isfinite(np.delete(panel.losses, number, axis=0)).any(axis=0)
    if panel.compressors is not None:
        is_told |= np.isfinite(panel.compressors)
    has_others = (is_told & np.isfinite(panel.losses[number])).any()
    return NONE_UNTREATED if has_others else NO_OTHERS


def _steady(change: CutoffFit) -> str:
    """Return the reason of a curve that a straight line fits as well as a ramp."""
    if change.rises is None or not change.rises.is_found:
        return STEADY_RISE
    months = change.rises.first.month, change.rises.second.month
    return STEADY_OR_TWO.format(*(EPOCH + month for month in months))


def _is_of_the_site(change: CutoffFit, panel: Panel) -> bool:
    control = panel.compressors
    return control is not None and may_be_the_site(change, control, panel.months, panel.regimes)


def _shortfalls(
    panel: Panel, number: int, difficulty: Difficulty | None, change: CutoffFit | None
) -> Shortfalls | None:
    """Measure the low months of a model; None if no other model with a cutoff tells lambda."""
    if difficulty is None:
        return None
    losses = panel.losses[number]
    errors = panel.document_errors[number]
    return measure_shortfalls(losses, panel.months, difficulty, change, errors)


def _rises(rises: Rises) -> dict[str, object]:
    """Return the columns of the two rises, and of the test that there are two."""
    row: dict[str, object] = {"second_p_value": rises.p_value}
    for name, rise in (("first", rises.first), ("second", rises.second)):
        row[f"{name}_rise"] = first_day(rise.month)
        row[f"{name}_rise_low"] = first_day(rise.low)
        row[f"{name}_rise_high"] = first_day(rise.high)
    return row


def _note(found: CutoffFit, bend: str | None) -> str | None:
    """Return what the interval of a cutoff does not tell."""
    if bend is not None:
        return BEND.format(bend)
    if found.is_parabola:
        return SMOOTH
    # With two months after the cutoff, a step in the last month is growth, too.
    return GROWTH if found.is_growth and found.cutoff <= found.last_datable else None


def _coincidence(panel: Panel, number: int, dated: list[DatedCurve]) -> str | None:
    """Return a reason if a model's curve has a change that a new regime may explain."""
    if not len(panel.starts):
        return None
    as_one = replace(panel, regimes=panel.regimes[:, :0])
    difficulty = _fit_again(as_one, dated).without(number)
    found = fit_cutoff(dated[number].losses, panel.months, difficulty) if difficulty else None
    if found is None or found.p_value > SIGNIFICANT:
        return None
    start = int(panel.starts[np.abs(panel.starts - found.cutoff - 1).argmin()])
    return AT_REGIME.format(EPOCH + (found.cutoff + 1), EPOCH + start)


def _fit_again(readings: Readings, dated: list[DatedCurve]) -> DifficultyFit:
    """Return lambda of the months that the models keep."""
    kept = replace(readings, losses=np.array([each.losses for each in dated]))
    return fit_untreated(kept, [each.spell for each in dated])


def _widened(dated: DatedCurve, other: DatedCurve) -> DatedCurve:
    """Return a change whose intervals hold those of another one, too."""
    found = dated.cutoff
    if found is None or other.cutoff is None or not (found.is_found and other.cutoff.is_found):
        return dated
    return replace(dated, cutoff=found.widened([other.cutoff]))


def _is_refuted(panel: Panel, dated: list[DatedCurve]) -> bool:
    """Return True if a model's interval leaves out its stated cutoff, which is in the months.

    A wrong month lets lambda be fitted to months in which text thins out, so all intervals may be
    wrong. In a panel of more than four models, the others outweigh such months: this is False.
    """
    if len(dated) > LEAST_OTHERS + 1:
        return False
    for each, stated in zip(dated, panel.cutoffs, strict=True):
        found = each.cutoff
        if found is None or not found.is_found or not stated >= panel.months[0]:
            continue
        if found.cutoff_low > stated or found.cutoff_high < stated:
            return True
    return False


def find_changes(panel: Panel) -> list[Change]:
    """Return the change of each model of the panel."""
    dated, is_shared = tell_apart(date_cutoffs(panel), panel)
    if _is_refuted(panel, dated):
        is_old = panel.cutoffs < panel.months[0]
        unstated = replace(panel, cutoffs=np.where(is_old, panel.cutoffs, np.nan))
        others, _ = tell_apart(date_cutoffs(unstated), unstated)
        dated = [_widened(*pair) for pair in zip(dated, others, strict=True)]
    rests: list[Rest | None] = [None] * len(dated)
    if panel.rests:
        dated, rests = leave_out_sources(panel.rests, _fit_again(panel, dated), dated)
    bends = find_bends(dated, panel)
    doubts = [_doubt(rest, shared) for rest, shared in zip(rests, is_shared, strict=True)]
    calm = [panel.calm.difficulty_without(number) for number in range(len(dated))]
    for number, each in enumerate(dated):
        closed = _closed(panel, number, each, calm[number])
        if closed is not None:
            dated[number] = replace(each, cutoff=closed)
            bends[number] = None
    changes = [
        Change.of(panel, number, dated, calm[number], bend, doubt)
        for number, (bend, doubt) in enumerate(zip(bends, doubts, strict=True))
    ]
    return [
        change if rest is None or shared else change.without_source(rest)
        for change, rest, shared in zip(changes, rests, is_shared, strict=True)
    ]


def _doubt(rest: Rest | None, is_shared: bool) -> str | None:
    """Return the reason why a change may be no cutoff at all."""
    if rest is not None:
        return ONE_SOURCE.format(rest.source)
    return SHARED if is_shared else None


def _closed(
    panel: Panel, number: int, dated: DatedCurve, difficulty: Difficulty | None
) -> CutoffFit | None:
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
    whole = fit_cutoff(dated.losses, panel.months, difficulty) if difficulty else None
    if whole is None or not whole.is_found or not whole.is_closed or whole.is_parabola:
        return None
    lowest = -np.inf if np.isnan(found.cutoff_low) else found.cutoff_low
    highest = np.inf if np.isnan(found.cutoff_high) else found.cutoff_high
    return whole if lowest <= whole.cutoff_low and whole.cutoff_high <= highest else None


@functools.cache
def first_day(month: float) -> Any:
    """Return the first day of a numbered month; None for NaN."""
    return None if np.isnan(month) else (EPOCH + int(month)).first_day


def finite(value: float) -> float | None:
    """Return a figure; None for NaN."""
    return None if np.isnan(value) else float(value)
