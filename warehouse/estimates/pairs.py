"""The ramps of all pairs of months (a, b) in one model's curve, alone and in twos.

ramp = (H_a - H_b) / (b - a) with hinges H_k = max(m - k, 0). So H' P H and H' P y give all fits;
``cutoffs`` has the model of one ramp.

Two rises mean that the model was trained in stages, on text of two periods. The model of
``cutoffs`` then has two steps. The last months before them are j and k >= j + 3:

    y_m = theta lambda_m + N_m gamma + beta_j (m > j) + beta_k (m > k) + u_m      beta_j, beta_k > 0

V is that of the single ramp. One change may have any shape of these: a ramp from a to b, and a
straight line from b on, as text thins out and the model ages; or a parabola.

    F = (squares left by the best shape - squares left by two steps) / (squares left by them / v)
    p = exp(0.5 - F v / (v + 2) / 2), at most 1        v = months - parameters - 2 (for j and k)

So the more a curve bends, or the longer its text thins out, the smaller is F. Simulated with a
single change, 36 and 24 months, white and AR(0.5) noise, 100 data sets of 24 kinds: 95 % of F v /
(v + 2) are below 6.0 in each kind, 98 % below 8.0. p is 0.05 at 7.0. The kinds are a step, a
logistic curve, and ramps of 12 months (linear, square, root). Further kinds are growth, alone or
after a step or a ramp.

Months: first and second are j and k. Text may thin out before either. So each is a ramp in turn, up
to the other step, as in ``cutoffs``. Its last month with text, b - 1, is taken in place of the
step's if that saves more than 3.84 s^2. The intervals hold the months of all steps and ramps with
at most 7.35 s^2 more squares than the best. An interval that reaches the first or the last month
that can be dated is open there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warehouse.estimates.difficulty import TINY, ZERO, Flags, Floats, Months
from warehouse.estimates.regression import ROUNDING, Regression, WeightedFit

MAX_LENGTH = 24  # months of a ramp
MIN_BEFORE = 3  # months up to a
MIN_AFTER = 2  # months after a
MIN_APART = 3  # months between two rises
MIN_FREE = 3
SIGNIFICANT = 0.05
STEP_LIMIT = 3.84  # in units of s^2, as the next
INTERVAL_LIMIT = 7.35


def ramp(months: Months, start: Any, end: Any) -> Floats:
    """Return the height at each month: 0 up to ``start``, 1 from ``end`` on."""
    return np.asarray(np.clip(np.asarray(months - start) / (end - start), 0, 1))


def interval(inside: Months, first: int, last: int) -> tuple[float, float]:
    """Return the ends of an interval; NaN for an end at ``first`` or before, ``last`` or after."""
    low = float(inside.min())
    high = float(inside.max())
    return low if low > first else np.nan, high if high < last else np.nan


Places = tuple[Any, Any]  # of the first and the last month of ramps, in a calendar of months


@dataclass(frozen=True)
class Hinges:
    """Products of the hinges H of all months of a calendar at one V, in units of cov(y) = s^2 V."""

    months: Months
    products: Floats  # H' P y
    gram: Floats  # H' P H
    total: float  # squares without a hinge
    least: float  # rounding of the squares

    def of(self, ramps: Places) -> Floats:
        """Return x' P y of ramps x."""
        start, end = ramps
        return np.asarray((self.products[start] - self.products[end]) / np.maximum(end - start, 1))

    def norms(self, ramps: Places) -> Floats:
        """Return x' P x of ramps x."""
        start, end = ramps
        own = self.gram.diagonal()
        both = own[start] + own[end] - 2 * self.gram[ramps]
        return np.asarray(both / np.maximum(end - start, 1) ** 2)

    def of_two(self, ramps: Places, others: Places) -> Floats:
        """Return x' P z of ramps x and other ramps z."""
        start, end = ramps
        first, last = others
        both = self.gram[start, first] - self.gram[end, first]
        both = both - self.gram[start, last] + self.gram[end, last]
        return np.asarray(both / np.maximum(end - start, 1) / np.maximum(last - first, 1))

    def gained_by_two(self, ramps: Places, others: Places, *, only_rises: bool) -> Floats:
        """Return the squares that pairs of ramps save together.

        It is 0 if one spans the other, or, with ``only_rises``, if a coefficient is not above 0.
        """
        own = self.norms(ramps)
        other = self.norms(others)
        both = self.of_two(ramps, others)
        product = self.of(ramps)
        other_product = self.of(others)
        size = own * other - both**2
        is_in = size > ZERO * own * other
        size = np.where(is_in, size, 1)
        slope = (other * product - both * other_product) / size
        other_slope = (own * other_product - both * product) / size
        if only_rises:
            is_in &= (slope > 0) & (other_slope > 0)
        return np.where(is_in, slope * product + other_slope * other_product, 0)


@dataclass(frozen=True)
class Pairs:
    """All pairs (a, b) to try, as indices of the calendar ``months``."""

    months: Months
    start: Months
    end: Months
    is_growth: Flags  # the pair stands for hinge H_a, with b the last month
    hinges: Floats  # (months of the curve, months)

    @classmethod
    def of(cls, curve: Regression) -> Pairs:
        """Return the pairs to try for a curve; none if its months are too few."""
        told = curve.months[curve.is_told]
        months = np.arange(*(told[[0, -1]] + [0, 1])) if len(told) else np.arange(0)
        before = np.searchsorted(told, months, side="right")
        starts = np.flatnonzero((before >= MIN_BEFORE) & (len(told) - before >= MIN_AFTER))
        start, length = np.indices((len(starts), MAX_LENGTH)).reshape(2, -1)
        start, end = starts[start], starts[start] + length + 1
        is_pair = end < len(months)
        return cls(
            months=months,
            start=np.concatenate([start[is_pair], starts]),
            end=np.concatenate([end[is_pair], np.full(len(starts), len(months) - 1)]),
            is_growth=np.repeat([False, True], [is_pair.sum(), len(starts)]),
            hinges=np.maximum(curve.months[:, None] - months, 0.0),
        )

    @property
    def first(self) -> Months:
        """The month a of each pair."""
        return self.months[self.start]

    @property
    def last(self) -> Months:
        """The month b of each pair."""
        return self.months[self.end]

    @property
    def is_step(self) -> Flags:
        """True for a step: b = a + 1."""
        return np.asarray(~self.is_growth & (self.end == self.start + 1))

    @property
    def cutoffs(self) -> Months:
        """The last month with training text of each pair."""
        return np.where(self.is_growth, self.first, self.last - 1)

    def fit(self, fit: WeightedFit) -> Fits:
        """Fit each pair at the V of ``fit``, which has no ramp."""
        losses = fit.curve.losses
        weighted = fit.annihilator @ self.hinges
        hinges = Hinges(
            months=self.months,
            products=weighted.T @ losses,
            gram=self.hinges.T @ weighted,
            total=float(losses @ fit.annihilator @ losses),
            least=float(ROUNDING * losses @ losses),
        )
        ramps = self.start, self.end
        norms = hinges.norms(ramps)
        is_new = norms > ZERO * norms.max()
        slopes = np.where(is_new, hinges.of(ramps) / np.where(is_new, norms, 1), 0)
        line_norm = hinges.gram[0, 0]  # the first hinge is a line
        line = hinges.products[0] if line_norm > ZERO * norms.max() else 0
        return Fits(
            pairs=self,
            fit=fit,
            hinges=hinges,
            gained=np.where(slopes > 0, slopes**2 * norms, 0),
            slope=slopes,
            norm=norms,
            line_gained=float(max(line, 0) ** 2 / max(line_norm, TINY)),
        )


@dataclass(frozen=True)
class Fits:
    """The fits of all pairs (a, b) at one V."""

    pairs: Pairs
    fit: WeightedFit  # without a ramp
    hinges: Hinges
    gained: Floats  # squares that the ramp saves
    slope: Floats  # beta
    norm: Floats  # ramp' P ramp
    line_gained: float  # squares that a rising straight line saves

    def best(self, among: Flags) -> int:
        """Return the first of the best pairs: in a hole, those that differ only by rounding."""
        gained = np.where(among, self.gained, -1)
        return int((gained >= (1 - ZERO) * gained.max()).argmax())


@dataclass(frozen=True)
class Rise:
    """The last month before a rise, and its interval; an open end is NaN."""

    month: int
    low: float
    high: float


@dataclass(frozen=True)
class Rises:
    """The best two rises in a curve. ``p_value`` is that of a single change."""

    first: Rise
    second: Rise
    p_value: float

    @property
    def is_found(self) -> bool:
        """True if a single change explains the curve worse, by more than chance."""
        return self.p_value <= SIGNIFICANT


def find_rises(
    hinges: Hinges, steps: Months, ramps: Places, bend: float, num_free: int
) -> Rises | None:
    """Return the best two rises, with p = 1 if no two steps rise; None if the months are too few.

    Args:
        hinges: of the curve at V.
        steps: places of the months after which there may be a step.
        ramps: places of the first and the last month of each ramp that is tried.
        bend: squares that a parabola saves.
        num_free: months minus parameters minus 2.
    """
    if num_free < MIN_FREE or len(steps) <= MIN_APART:
        return None
    places = np.triu_indices(len(steps), MIN_APART)
    first, second = (steps[each] for each in places)
    gained = hinges.gained_by_two((first, first + 1), (second, second + 1), only_rises=True)
    best = int((gained >= (1 - ZERO) * gained.max()).argmax())
    variance = max(hinges.total - gained[best], hinges.least, TINY) / num_free
    start, end = ramps
    line = end, len(hinges.months) - 1  # from the end of the ramp on
    single = max(hinges.gained_by_two(ramps, line, only_rises=False).max(), bend)
    statistic = (gained[best] - single) / variance * num_free / (num_free + 2)
    rises = []
    for steps_of_rise, other, is_apart in (
        (first, second[best], end <= second[best]),
        (second, first[best], start > first[best]),
    ):
        thin = start[is_apart], end[is_apart]
        of_thin = hinges.gained_by_two(thin, (other, other + 1), only_rises=True)
        squares = np.append(gained, of_thin)
        lasts = np.append(steps_of_rise, thin[1] - 1)
        is_thin = squares.max() > gained[best] + STEP_LIMIT * variance
        inside = lasts[squares >= squares.max() - INTERVAL_LIMIT * variance]
        months = hinges.months
        low, high = interval(months[inside], months[steps[0]], months[steps[-1]])
        last = lasts[squares.argmax() if is_thin else best]
        rises.append(Rise(int(months[last]), low, high))
    return Rises(rises[0], rises[1], float(np.exp(min(0.5 - statistic / 2, 0))))
