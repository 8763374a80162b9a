"""Tell a model's change from a bend of the source that models feel differently.

lambda takes off what all models feel alike, up to theta. If a source's texts change in kind, models
may differ in how much they feel it. Then several models change in the same months, whatever their
cutoffs are. For a change of model i with ramp_i, every other model j is fitted as in ``cutoffs``,
with what its cutoff explains, and with ramp_i:

    y_j = theta_j lambda + N gamma_j + beta_j own_j + b_ij ramp_i + u_j
    F_ij = squares that ramp_i saves / (squares left / v)

- own_j: the model's ramp, if one is found and its interval has the stated cutoff. If no cutoff is
  stated in the panel, the ramp found.
- Where cutoffs are stated, a model without one has no own_j: its change is at a month that nobody
  states. So of the rises of these models, the largest F_ij is left out. A fall is no cutoff.

The change may be the source's if F_ij is more than 9 (p = 0.05 among 16 models). Then |b_ij| must
be at least a tenth of the change. The model has no earlier cutoff, because that would show
as an earlier change. So the interval has no upper end then, and begins with the onset's.

In a small panel, all models may thin out in the same months. Then only compressors tell lambda
there. A source that language models alone feel, a new recipe of its texts, looks like cutoffs of
all of them. So all curves are fitted without compressors, lambda free in every month,

    y_j = theta_j lambda + N gamma_j + beta_j own_j + u_j

once with beta_j = 0, once with a beta_j for each change found. The first fit has more squares. The
changes may be the source's if they are at most 3 s^2 for each change (about p = 0.05 of three).
Then no cutoff is told: a change that all models share fits as well. The exception: all models have
the same stated cutoff, and each interval is closed and holds it.
"""

from __future__ import annotations

import numpy as np

from warehouse.estimates.cutoffs import MIN_FREE, NUM_ROUNDS, CutoffFit
from warehouse.estimates.pairs import ramp
from warehouse.estimates.panel import design
from warehouse.estimates.panel_errors import TINY, Floats
from warehouse.estimates.regression import ROUNDING, ZERO, Curve, Months, WeightedFit
from warehouse.estimates.untreated import MIN_KEPT, DatedCurve, Untreated, fit_rows

LIMIT = 9.0  # of F
LEAST_SHARE = 0.1  # of the change
SHARED_LIMIT = 3.0  # in units of s^2, for each change found


def find_bends(dated: list[DatedCurve], cutoffs: Floats, months: Months) -> list[int | None]:
    """Return, for each model's change, the number of a model that changes in the same months.

    ``dated`` and the stated ``cutoffs`` (NaN if unknown) are of all models of the panel.
    """
    found = [each.cutoff if each.cutoff and each.cutoff.is_found else None for each in dated]
    if not any(found):
        return [None] * len(dated)
    annihilators = np.zeros((len(dated), len(months), len(months)))
    weighted = np.zeros((len(dated), len(months)))
    squares = np.zeros(len(dated))
    num_free = np.ones(len(dated))
    is_stated = np.isfinite(cutoffs)
    for number, each in enumerate(dated):
        fit = _fit_own(each, cutoffs[number], bool(is_stated.any()), months)
        if fit is not None:
            seen = ~np.isnan(each.losses)
            annihilators[number][np.ix_(seen, seen)] = fit.annihilator
            weighted[number, seen] = fit.annihilator @ fit.curve.losses
            squares[number] = fit.curve.losses @ weighted[number, seen]
            squares[number] += ROUNDING * fit.curve.losses @ fit.curve.losses
            num_free[number] = fit.curve.num_free - 1
    bends: list[int | None] = []
    for number, change in enumerate(found):
        if change is None:
            bends.append(None)
            continue
        height = ramp(months, change.start, change.end)
        norms = (annihilators @ height) @ height
        is_told = norms > ZERO * norms.max(initial=0)
        slopes = weighted @ height / np.where(is_told, norms, 1)
        gained = slopes**2 * norms
        ratio = gained / np.maximum((squares - gained) / num_free, TINY)
        is_told &= np.abs(slopes) >= LEAST_SHARE * change.jump
        is_told[number] = False
        ratio = np.where(is_told, ratio, 0)
        if is_stated.any() and not is_stated.all():
            ratio[np.where(is_stated | (slopes < 0), -1, ratio).argmax()] = 0
        other = int(ratio.argmax())
        bends.append(other if ratio[other] > LIMIT else None)
    return bends


def _fit_own(
    dated: DatedCurve, cutoff: float, any_stated: bool, months: Months
) -> WeightedFit | None:
    """Fit a model's curve with what its cutoff explains; None if the months are too few."""
    if dated.difficulty is None or dated.cutoff is None:
        return None
    curve = Curve.of(dated.losses, months, dated.difficulty)
    own = _own(dated.cutoff, cutoff, any_stated, curve.months)
    curve = curve if own is None else curve.plus(own)
    if curve.num_free - 1 < MIN_FREE:
        return None
    fit = curve.weighted()
    for _ in range(NUM_ROUNDS):
        fit = curve.weighted(fit.next_covariance())
    return fit


def _own(found: CutoffFit, cutoff: float, any_stated: bool, months: Months) -> Floats | None:
    """Return the column own_j, or None."""
    is_refuted = found.cutoff_low > cutoff or found.cutoff_high < cutoff
    is_unstated = bool(np.isnan(cutoff)) and any_stated
    if not found.is_found or is_refuted or is_unstated:
        return None
    return ramp(months, found.start, found.end)


def may_be_shared(
    dated: list[DatedCurve], cutoffs: Floats, months: Months, regimes: Floats
) -> bool:
    """Return True if one change that all models share fits as well as the changes found.

    ``dated`` and the stated ``cutoffs`` are as in ``find_bends``; ``regimes`` as in
    ``panel.fit_panel``. False if fewer than two models have curves, or their months do not overlap.
    """
    found = [each.cutoff if each.cutoff and each.cutoff.is_found else None for each in dated]
    curves = np.array([each.losses for each in dated])
    numbers = np.flatnonzero(np.isfinite(curves).sum(axis=1) >= MIN_KEPT)
    is_stated = _is_stated([found[number] for number in numbers], cutoffs[numbers])
    if not any(found) or len(numbers) < 2 or is_stated:
        return False
    shared = _fit_all(curves, [None] * len(found), months, regimes)
    own = _fit_all(curves, found, months, regimes)
    if own.num_free < MIN_FREE:
        return False
    rounding = ROUNDING * float(np.nansum(curves**2)) + TINY
    squares = own.variance * own.num_free + rounding
    more = shared.variance * shared.num_free - squares
    return more <= SHARED_LIMIT * sum(map(bool, found)) * squares / own.num_free


def _is_stated(found: list[CutoffFit | None], cutoffs: Floats) -> bool:
    """Return True if these models all state one month, and the interval of each change has it."""
    return all(
        cutoff == cutoffs[0] and (each is None or each.cutoff_low <= cutoff <= each.cutoff_high)
        for each, cutoff in zip(found, cutoffs, strict=True)
    )


def _fit_all(
    curves: Floats, found: list[CutoffFit | None], months: Months, regimes: Floats
) -> Untreated:
    """Fit all curves without compressors, each with the column of its change, if it has one."""
    designs = []
    for row, change in zip(curves, found, strict=True):
        columns = regimes
        if change is not None:
            columns = np.column_stack([regimes, ramp(months, change.start, change.end)])
        seen = ~np.isnan(row)
        designs.append(design(months, seen, np.inf, columns) if seen.sum() >= MIN_KEPT else None)
    return fit_rows(np.nan_to_num(curves), designs, len(curves), months)
