"""The change of each model of a panel: its cutoff, or the reason why there is none."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.progress import counted
from warehouse.estimates.apart import with_curve
from warehouse.estimates.bends import find_bends
from warehouse.estimates.coincident import change_together
from warehouse.estimates.contamination import Shortfalls, measure_shortfalls
from warehouse.estimates.cutoffs import (
    CRITICAL,
    POWER_QUANTILE,
    RAMP_MONTHS,
    CutoffFit,
    fit_cutoff,
    may_be_the_site,
    site_step,
)
from warehouse.estimates.difficulty import Difficulty
from warehouse.estimates.pairs import SIGNIFICANT, Rises
from warehouse.estimates.panels import EPOCH, Panel
from warehouse.estimates.sources import Rest, leave_out_sources
from warehouse.estimates.staggered import tell_apart
from warehouse.estimates.untreated import (
    LEAST_OTHERS,
    MOST_OTHERS,
    DatedCurve,
    date_cutoffs,
    fit_untreated,
    kept_losses,
)

STEADY_RISE = "a steady rise over all months fits as well as a change"
STEADY_OR_TWO = "a steady rise over all months, or rises after {} and {}"
SMOOTH = "a smooth bend over all months fits as well"
SITE = "the compressor may change at the same months"
AT_REGIME = "the change in {} may be the source's: a regime begins in {}"
GROWTH = "growth from the cutoff on, without a jump"
BEND = "the change may be the source's: {} changes in the same months"
SHARED = "the change may be the source's: one that all models share fits as well"
TOGETHER = "the change may be the source's: the other models change in the same months"
WITHOUT_SOURCE = "without {}, which alone shows another change"
ONE_SOURCE = "only {} shows the change: see its row of that source"
NO_OTHERS = "no other model, and no compressor, tells its months"
ONE_OTHER = "only one other model, and no compressor, tells its months"
NONE_UNTREATED = (
    "too few of its months have another curve that shows how hard they are: a model of a later "
    "cutoff on the same months is missing"
)
SAME_CUTOFF = "no compressor, and no model of another cutoff than the stated one, tells its months"
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

    def without_source(self, rest: Rest) -> Change:
        """Return the change of the other sources, if a panel shows them one."""
        found = rest.cutoff
        if found is None or self.basis != "panel":
            return self
        found = found.opened() if found.is_parabola else found
        return replace(self, cutoff=found, reason=None, bend=None, source=rest.source)

    def row(self, panel: Panel) -> dict[str, object]:
        """Return a row of ``cutoff_estimates`` without its key."""
        row: dict[str, object] = {"basis": self.basis, "reason": self.reason}
        if self.cutoff is None:
            return row
        row["first_datable"] = first_day(self.cutoff.first_datable)
        row["last_datable"] = first_day(self.cutoff.last_datable)
        row["step_error"] = finite(self._error_of(self.cutoff.step_error, 1, panel))
        row["ramp_error"] = finite(self._error_of(self.cutoff.ramp_error, RAMP_MONTHS + 1, panel))
        row["num_free"] = self.cutoff.num_free
        row["num_told"] = self.cutoff.num_told
        if self.reason is not None:
            return row
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

    def _error_of(self, error: float, length: int, panel: Panel) -> float:
        """Return the error of a change, at least that at which the site is ruled out."""
        if self.basis == "panel" or panel.compressors is None or np.isnan(error):
            return error
        least = site_step(error, length, panel.compressors, panel.months, panel.regimes)
        return max(error, least / (CRITICAL + POWER_QUANTILE))


def _untold(panel: Panel, number: int) -> str:
    """Return the reason why the other curves tell too little of a model's months."""
    is_told = np.isfinite(np.delete(panel.losses, number, axis=0)).any(axis=0)
    if panel.compressors is not None:
        is_told |= np.isfinite(panel.compressors)
    has_others = (is_told & np.isfinite(panel.losses[number])).any()
    return NONE_UNTREATED if has_others else NO_OTHERS


def _has_twins_alone(panel: Panel, number: int, dated: DatedCurve) -> bool:
    """Return True if only models of the same stated cutoff tell lambda: they change together."""
    return panel.compressors is None and bool(
        np.all(panel.cutoffs[dated.others] == panel.cutoffs[number])
    )


def _steady(change: CutoffFit) -> str:
    """Return the reason of a curve that a straight line fits as well as a ramp."""
    if change.rises is None or not change.rises.is_found:
        return STEADY_RISE
    months = change.rises.first.month, change.rises.second.month
    return STEADY_OR_TWO.format(*(EPOCH + month for month in months))


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


def _is_refuted(panel: Panel, dated: list[DatedCurve]) -> bool:
    """Return True if a model's interval leaves out its stated cutoff, which is in the months."""
    return any(
        each.found is not None and stated >= panel.months[0] and each.found.excludes(stated)
        for each, stated in zip(dated, panel.cutoffs, strict=True)
    )


def _date(panel: Panel) -> tuple[list[DatedCurve], list[bool]]:
    """Return the changes of a panel, and True for each that may be shared (``tell_apart``).

    A wrong stated month lets lambda be fitted to months in which text thins out. In a panel of more
    than four models, the others outweigh such months. A smaller one is dated without stated months,
    too. If either dating leaves out a stated month, a model has the change that either shows. The
    interval holds both.
    """
    dated, is_shared = tell_apart(date_cutoffs(panel), panel)
    is_old = panel.cutoffs < panel.months[0]
    if len(dated) > LEAST_OTHERS + 1 or np.all(is_old | np.isnan(panel.cutoffs)):
        return dated, is_shared
    unstated = replace(panel, cutoffs=np.where(is_old, panel.cutoffs, np.nan))
    others, may_be_shared = tell_apart(date_cutoffs(unstated), unstated)
    if not (_is_refuted(panel, dated) or _is_refuted(panel, others)):
        return dated, is_shared
    changes = []
    for number, (each, other) in enumerate(zip(dated, others, strict=True)):
        if other.found is not None and (each.found is None or is_shared[number]):
            is_shared[number] = may_be_shared[number]
            changes.append(other.widened([each.cutoff]))
        else:
            changes.append(each.widened([other.cutoff]))
    return changes, is_shared


def find_changes(panel: Panel) -> list[Change]:
    """Return the change of each model of the panel."""
    dated, is_shared = _date(panel)
    rests: list[Rest | None] = [None] * len(dated)
    kept = kept_losses(panel, dated)
    spells = [each.spell for each in dated]
    if panel.rests:
        dated, rests = leave_out_sources(panel.rests, fit_untreated(kept, spells), dated)
    bends = find_bends(dated, panel)
    together = change_together(dated, panel)
    as_one_regime = replace(kept, regimes=panel.regimes[:, :0])
    plain = fit_untreated(as_one_regime, spells) if len(panel.starts) else None
    calms = [panel.calm.difficulty_without(number) for number in range(len(dated))]
    whole = [_closed(panel, number, each, calms[number]) for number, each in enumerate(dated)]
    if _holds_a_stated_month(whole, panel):
        is_shared = [False] * len(dated)
    is_pair = panel.compressors is None and len(with_curve(kept.losses)) <= 2
    reason_of_shared = ONE_OTHER if is_pair else SHARED
    changes = []
    for number, (each, rest) in enumerate(zip(dated, rests, strict=True)):
        calm = calms[number]
        closed = whole[number]
        bend = bends[number]
        other = None if bend is None or closed else panel.models[bend]
        each = replace(each, cutoff=closed) if closed else each
        regime = None
        if plain is not None and each.found is None:
            regime = _coincidence(panel, each, plain.without(number))
        is_older = each.found is not None and panel.cutoffs[number] < each.found.first_datable
        shared = reason_of_shared if is_shared[number] else None
        doubt = _doubt(rest, shared, other if is_older else None, together[number])
        reason = _reason(panel, number, each, doubt, regime)
        change = _change(panel, number, each, calm, reason, other)
        if rest is not None and not is_shared[number]:
            change = change.without_source(rest)
        changes.append(change)
    return changes


def _change(
    panel: Panel,
    number: int,
    dated: DatedCurve,
    calm: Difficulty | None,
    reason: str | None,
    bend: str | None,
) -> Change:
    """Return the change of one model; ``calm`` is lambda of the panel without the model."""
    basis = None
    if dated.difficulty is not None:
        basis = "panel" if dated.others else "compressor"
    num_months = int(np.isfinite(panel.losses[number]).sum())
    if num_months < MIN_MONTHS:
        lack = f"{counted(num_months, 'month')}; {MIN_MONTHS} are needed"
        return Change(basis, None, None, lack, is_compared=calm is not None)
    if dated.difficulty is None:
        return Change(None, None, None, NO_OTHERS, is_compared=calm is not None)
    cutoff = dated.cutoff and dated.cutoff.begun_slowly()
    if cutoff and (bend is not None or cutoff.is_parabola):
        cutoff = cutoff.opened()
    if cutoff and bend is not None and cutoff.excludes(panel.cutoffs[number]):
        cutoff = replace(cutoff, cutoff_low=np.nan, onset_low=np.nan)
    if calm is None:
        return Change(basis, cutoff, None, reason, bend)
    errors = panel.document_errors[number]
    low = measure_shortfalls(panel.losses[number], panel.months, calm, dated.found, errors)
    return Change(basis, cutoff, low, reason, bend, is_compared=True)


def _reason(
    panel: Panel, number: int, dated: DatedCurve, doubt: str | None, regime: str | None
) -> str | None:
    """Return the reason why there is no cutoff: of a doubtful change, or of no change."""
    found = dated.found
    if found is not None:
        control = panel.compressors
        if control is None or dated.others:
            return doubt
        is_site = may_be_the_site(found, control, panel.months, panel.regimes)
        return SITE if is_site else doubt
    if dated.cutoff is None:
        return regime or _untold(panel, number)
    if _has_twins_alone(panel, number, dated):
        return SAME_CUTOFF
    return _steady(dated.cutoff) if dated.cutoff.p_value <= SIGNIFICANT else regime


def _coincidence(panel: Panel, dated: DatedCurve, plain: Difficulty | None) -> str | None:
    """Return a reason if a change shows against ``plain``, lambda as if no regime began."""
    found = fit_cutoff(dated.losses, panel.months, plain)
    if found is None or found.p_value > SIGNIFICANT:
        return None
    start = int(panel.starts[np.abs(panel.starts - found.cutoff - 1).argmin()])
    return AT_REGIME.format(EPOCH + (found.cutoff + 1), EPOCH + start)


def _doubt(rest: Rest | None, shared: str | None, bend: str | None, together: bool) -> str | None:
    """Return the reason why a change may be no cutoff at all.

    ``shared`` is the reason if all models may share it; ``bend`` is a model that changes with it.
    """
    if rest is not None:
        return ONE_SOURCE.format(rest.source)
    if shared is not None:
        return shared
    if bend is not None:
        return BEND.format(bend)
    return TOGETHER if together else None


def _closed(
    panel: Panel, number: int, dated: DatedCurve, difficulty: Difficulty | None
) -> CutoffFit | None:
    """Return a change that the whole panel dates within the open interval of a slow rise.

    A model that gets worse from month to month after a step has an open interval: a slow rise fits
    its curve, too. In the whole panel (``panel``), each other model has a level and a line after
    its stated cutoff. So what models of one age share is taken off. The panel is asked only if it
    has MOST_OTHERS others. In a small one, a bend of the source shows as a step of one model.
    """
    found = dated.found
    num_others = np.count_nonzero(np.nan_to_num(np.delete(panel.calm.theta, number)))
    if found is None or found.is_closed or num_others < MOST_OTHERS:
        return None
    whole = fit_cutoff(dated.losses, panel.months, difficulty)
    if whole is None or not whole.is_found or not whole.is_closed or whole.is_parabola:
        return None
    lowest = -np.inf if np.isnan(found.cutoff_low) else found.cutoff_low
    highest = np.inf if np.isnan(found.cutoff_high) else found.cutoff_high
    return whole if lowest <= whole.cutoff_low and whole.cutoff_high <= highest else None


def _holds_a_stated_month(closed: list[CutoffFit | None], panel: Panel) -> bool:
    """Return True if the whole panel dates a change to the model's stated cutoff (``_closed``).

    What all models share is taken off there. So the change is not shared.
    """
    return any(
        each is not None and each.cutoff_low <= stated <= each.cutoff_high
        for each, stated in zip(closed, panel.cutoffs, strict=True)
    )


@functools.cache
def first_day(month: float) -> Any:
    """Return the first day of a numbered month; None for NaN."""
    return None if np.isnan(month) else (EPOCH + int(month)).first_day


def finite(value: float) -> float | None:
    """Return a figure; None for NaN."""
    return None if np.isnan(value) else float(value)
