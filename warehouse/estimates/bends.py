"""Distinguish a model's change from a change of the source that affects models differently.

lambda removes effects that are common to all models, in proportion to theta. If the kind of a
source's texts changes, the size of the effect may differ between models. Then several models change
in the same months, whatever their cutoffs are. Take a change of model i with ramp_i. Every other
model j is fitted as in ``cutoffs``, with its own ramp own_j and with ramp_i:

    y_j = theta_j lambda + N gamma_j + beta_j own_j + b_ij ramp_i + u_j
    F_ij = squares that ramp_i saves / (squares left / v)

- own_j: the model's ramp, if one is found and its interval has the stated cutoff. If no cutoff is
  stated in the panel, the ramp found.
- Where cutoffs are stated, a model without a stated cutoff has no own_j: the month of its change is
  unknown. So the largest F_ij among the rises of these models is left out. A fall is no cutoff.

The change may be the source's if F_ij is more than 9 (p = 0.05 among 16 models). |b_ij| must also
be at least a tenth of the change. The model has no earlier cutoff of this size, because that would
show as an earlier change. So the interval has no upper end, and begins where the onset's interval
begins. A smaller earlier cutoff may be hidden by the source's change. So an interval that would
leave out the stated month has no lower end, either. A stated cutoff before the first month that can
be dated shows no change; then no cutoff is reported.
"""

from __future__ import annotations

import numpy as np

from warehouse.estimates.difficulty import Months, Readings
from warehouse.estimates.pairs import MIN_FREE, ramp
from warehouse.estimates.regression import Regression, WeightedFit
from warehouse.estimates.untreated import DatedCurve

LIMIT = 9.0  # of F
LEAST_SHARE = 0.1  # of the change


def find_bends(dated: list[DatedCurve], readings: Readings) -> list[int | None]:
    """Return, for each model's change, the number of a model that changes in the same months."""
    cutoffs = readings.cutoffs
    months = readings.months
    found = [each.found for each in dated]
    bends: list[int | None] = [None] * len(dated)
    if not any(found):
        return bends
    changes = [each for each in found if each is not None]
    heights = np.column_stack([ramp(months, each.start, each.end) for each in changes])
    slopes = np.zeros((len(dated), len(changes)))
    errors = np.full((len(dated), len(changes)), np.inf)
    is_stated = np.isfinite(cutoffs)
    for number, each in enumerate(dated):
        fit = _fit_own(each, cutoffs[number], bool(is_stated.any()), months)
        if fit is not None:
            slopes[number], errors[number] = fit.effects(heights[~np.isnan(each.losses)])
    numbers = [number for number, change in enumerate(found) if change is not None]
    for number, change, slope, error in zip(numbers, changes, slopes.T, errors.T, strict=True):
        is_told = np.abs(slope) >= LEAST_SHARE * change.jump
        is_told[number] = False
        ratio = np.where(is_told, (slope / error) ** 2, 0)
        if is_stated.any() and not is_stated.all():
            ratio[np.where(is_stated | (slope < 0), -1, ratio).argmax()] = 0
        other = int(ratio.argmax())
        bends[number] = other if ratio[other] > LIMIT else None
    return bends


def _fit_own(
    dated: DatedCurve, cutoff: float, any_stated: bool, months: Months
) -> WeightedFit | None:
    """Fit a model's curve with what its cutoff explains; None if the months are too few."""
    if dated.difficulty is None or dated.cutoff is None:
        return None
    curve = Regression.of(dated.losses, months, dated.difficulty)
    own = dated.found
    is_unstated = bool(np.isnan(cutoff)) and any_stated
    if own is not None and not is_unstated and not own.excludes(cutoff):
        curve = curve.plus(ramp(curve.months, own.start, own.end))
    return None if curve.num_free - 1 < MIN_FREE else curve.settled()
