"""Test each month of a model's curve: is it far better predicted than the months around it?

The model is that of ``cutoffs``: y = theta lambda + N gamma + beta ramp + u. It has a ramp only if
the model's cutoff is significant. For month m, e is y minus the fit without month m, and without
other low months (see below). The medians are over the four months before and after m.

    shortfall = min(0, median e before, median e after) - e_m
    t = shortfall / max(s_m / sqrt(P_mm), standard error of the month's documents)

At a cutoff, a month is better than the months on one side only, so its shortfall is small. Two
terms are subtracted. The first is the change in month m under another ramp within the cutoff's
interval, plus twice its error. The second is (theta - 1) (lambda_m - its median before or after),
if above 0. It allows for an equal effect of the month on all models. A month needs two months on
each side. s_m^2 is the variance of the fit without month m. But months after the cutoff scatter
more. If the variance of the other months on the same side of the ramp is more than twice s_m^2,
that variance replaces s_m^2.

t has Student's distribution, one-sided. The degrees of freedom are at most 3 + 6 / k: k is the
excess kurtosis of e_m / error_m above 0, mirrored, of all models of the panel. A month that was
seen in training has e_m below 0.

Low months distort the fit. So months with a shortfall of more than 5 robust standard deviations
are left out of the fit of the others. The robust standard deviation is 1.4826 times the median
absolute deviation from neighbours. Here e is y - theta lambda; theta is from the differences
between months, by least absolute deviations.

If several models have seen a month, lambda follows them. So lambda, for cutoffs and for this test,
is fitted again without low figures: of models that are better by 3 such deviations, in months in
which at least 10 % of the models are. This is done three times, each time for all figures. A month
that all models have seen cannot be distinguished from an easier month. A month that most models
have seen is found less often.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from warehouse.estimates.cutoffs import CutoffFit
from warehouse.estimates.difficulty import NUM_ROUNDS, TINY, Difficulty, Flags, Floats, Months
from warehouse.estimates.pairs import MIN_FREE, ramp
from warehouse.estimates.panel import PanelFit
from warehouse.estimates.regression import LEAST_FREEDOM, ROUNDING, Regression, WeightedFit

NUM_NEIGHBOURS = 4  # on each side
MIN_NEIGHBOURS = 2  # on each side
LOW_LIMIT = 5.0  # in robust standard deviations
WIDE_LIMIT = 2.0  # in s_m^2
PANEL_LIMIT = 3.0  # in robust standard deviations
PANEL_SHARE = 0.1  # of a month's models

Refit = Callable[[Floats], PanelFit]


@dataclass(frozen=True)
class Shortfalls:
    """One model's months; arrays of shape (months,), NaN for a month without a test."""

    value: Floats  # bits per byte
    error: Floats  # standard error
    scaled: Floats  # e / error, for the kurtosis
    num_free: Floats  # degrees of freedom of error


def fit_without_low_months(fit: PanelFit, losses: Floats, refit: Refit) -> PanelFit:
    """Return the panel ``fit`` of all months, fitted without low figures of months with many.

    ``losses`` (models, months) are bits per byte, NaN for a missing month. ``refit`` fits the panel
    to other losses of the same shape.
    """
    left_out = np.zeros(losses.shape, dtype=bool)
    for _ in range(NUM_ROUNDS):
        is_low = np.zeros(losses.shape, dtype=bool)
        for model, row in enumerate(losses):
            other = fit.difficulty_without(model)
            if other:
                is_low[model] = find_low_months(row, other, PANEL_LIMIT)
        num_models = (~np.isnan(losses)).sum(axis=0)
        is_low &= is_low.sum(axis=0) >= PANEL_SHARE * num_models
        if (is_low == left_out).all():
            return fit
        left_out = is_low
        fit = refit(np.where(is_low, np.nan, losses))
    return fit


def find_low_months(losses: Floats, difficulty: Difficulty, limit: float = LOW_LIMIT) -> Flags:
    """Return True for months below both sides by ``limit`` robust standard deviations.

    ``losses`` (months,) is NaN for a missing month.
    """
    is_low = np.zeros(len(losses), dtype=bool)
    seen = ~np.isnan(losses)
    if seen.sum() > 1:
        theta = _slope(np.diff(losses[seen]), np.diff(difficulty.values[seen]))
        left = losses[seen] - theta * difficulty.values[seen]
        before, after = _sides(np.repeat(left[:, None], len(left), axis=1))
        has_sides = ~np.isnan(before + after)
        if has_sides.any():
            scatter = 1.4826 * np.median(np.abs((before + after) / 2 - left)[has_sides])
            least = max(limit * scatter, ROUNDING**0.5 * np.abs(left).max())
            is_low[seen] = np.minimum(before, after) - left > least
    return is_low


def _slope(losses: Floats, difficulties: Floats) -> float:
    """Return the slope of least absolute deviations through 0: the weighted median of ratios."""
    is_move = np.abs(difficulties) > TINY
    if not is_move.any():
        return 0
    ratios = losses[is_move] / difficulties[is_move]
    weights = np.abs(difficulties[is_move])
    order = np.argsort(ratios)
    total = np.cumsum(weights[order])
    return float(ratios[order][np.searchsorted(total, total[-1] / 2)])


def measure_shortfalls(
    losses: Floats,
    months: Months,
    difficulty: Difficulty,
    cutoff: CutoffFit | None,
    document_errors: Floats,
) -> Shortfalls | None:
    """Measure the shortfalls of one model's curve; return None if the months are too few.

    ``losses``, ``months`` and ``difficulty`` are as in ``fit_cutoff``. ``cutoff`` is the model's
    change, if it is significant. ``document_errors`` has each month's standard error of random
    documents; NaN if unknown.
    """
    seen = np.flatnonzero(~np.isnan(losses))
    curve = Regression.of(losses, months, difficulty)
    is_after = np.zeros(len(seen), dtype=bool)
    if cutoff is not None:
        height = ramp(curve.months, cutoff.start, cutoff.end)
        is_after = height > 0.5
        _, of_height = curve.plain().effect(height)
        if np.isfinite(of_height):  # else N has it, from models of the same cutoff
            curve = curve.plus(height)
    is_low = find_low_months(losses, difficulty)[seen]
    dummies = np.eye(len(seen))
    others = curve.plus(*dummies[is_low])
    if others.num_free < MIN_FREE:
        return None
    fit = others.settled()
    scatters = (is_after[:, None] == is_after) & ~is_low[:, None] & ~np.eye(len(seen), dtype=bool)
    found = _measure(fit, scatters)
    for month in np.flatnonzero(is_low):
        is_other = is_low & (np.arange(len(seen)) != month)
        own_fit = curve.plus(*dummies[is_other]).weighted(fit.covariance)
        found[:, month] = _measure(own_fit, scatters)[:, month]
    figures = np.full((4, len(losses)), np.nan)
    figures[:, seen] = found
    figures[0, seen] -= _unevenness(fit, difficulty.values[seen])
    value, error, scaled, num_free = figures
    if cutoff is not None:
        value = value - cutoff.doubt(months) * (cutoff.jump + 2 * cutoff.jump_error)
    return Shortfalls(value, np.fmax(error, document_errors), scaled, num_free)


def _measure(fit: WeightedFit, scatters: Flags) -> Floats:
    """Return shortfall, error, e / error and degrees of freedom of each month; NaN if N fits it.

    ``scatters`` (months, left-out month) is True for the months whose scatter counts.
    """
    curve = fit.curve
    covariance = fit.covariance
    weights = fit.annihilator
    weighted = weights @ curve.losses
    shares = np.diag(weights)
    is_free = shares > LEAST_FREEDOM * max(np.median(shares), TINY)
    shares = np.where(is_free, shares, 1)
    own = weighted / shares  # e_m
    left = covariance @ (weighted[:, None] - weights * own)  # (months, left-out month)
    before, after = _sides(left)
    rounding = max(float(ROUNDING * curve.losses @ curve.losses), TINY)  # losses may all be 0
    squares = np.maximum(curve.losses @ weighted - own * weighted, rounding)
    variance = squares / (curve.num_free - 1)
    num_free = np.full(len(own), curve.num_free - 1.0)
    num_near = np.maximum(scatters.sum(axis=0) - 1.0, 1)
    near = (left**2 / np.diag(covariance)[:, None] * scatters).sum(axis=0) / num_near
    is_wide = near > WIDE_LIMIT * variance
    num_free = np.where(is_wide, num_near, num_free)
    error = np.sqrt(np.where(is_wide, near, variance) / shares)
    shortfall = np.minimum(np.minimum(before, after), 0) - own
    return np.where(is_free, [shortfall, error, own / error, num_free], np.nan)


def _unevenness(fit: WeightedFit, difficulties: Floats) -> Floats:
    """Return how low a month seems if all models feel its difficulty alike, despite theta."""
    theta = fit.estimator[-1] @ fit.curve.losses if fit.curve.columns[:, -1].any() else 1
    before, after = _sides(np.repeat(difficulties[:, None], len(difficulties), axis=1))
    unlike = [(theta - 1) * (difficulties - side) for side in (before, after)]
    return np.asarray(np.fmax(0, np.fmax(*unlike)))


def _sides(left: Floats) -> tuple[Floats, Floats]:
    """Return the medians of the months before and after each month, from its column."""
    num_months = len(left)
    padded = np.full((num_months + 2 * NUM_NEIGHBOURS, num_months), np.nan)
    padded[NUM_NEIGHBOURS:-NUM_NEIGHBOURS] = left
    months = np.arange(num_months)
    offsets = np.arange(NUM_NEIGHBOURS)[:, None]
    before = padded[months + offsets, months]
    after = padded[months + offsets + NUM_NEIGHBOURS + 1, months]
    return _median(before), _median(after)


def _median(values: Floats) -> Floats:
    """Return each column's median without NaN; NaN for a column of fewer than two figures."""
    ordered = np.sort(values, axis=0)  # NaN last
    columns = np.arange(values.shape[1])
    counts = (~np.isnan(values)).sum(axis=0)
    lower = ordered[(counts - 1) // 2, columns]
    upper = ordered[np.minimum(counts // 2, len(values) - 1), columns]
    return np.where(counts >= MIN_NEIGHBOURS, (lower + upper) / 2, np.nan)


def tail_degrees_of_freedom(scaled: Floats) -> float:
    """Return 3 + 6 / k for figures e / error of all models of a panel; infinite if k is 0."""
    above = scaled[scaled > 0]
    if not len(above):
        return np.inf
    excess = (above**4).mean() / (above**2).mean() ** 2 - 3
    return float(3 + 6 / excess) if excess > 0 else np.inf
