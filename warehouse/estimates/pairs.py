"""The ramps of all pairs of months (a, b), fitted to one model's curve; ``cutoffs`` has the model.

ramp = (H_a - H_b) / (b - a) with hinges H_k = max(m - k, 0). So H' P H and H' P y give all fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warehouse.estimates.difficulty import TINY, ZERO, Flags, Floats, Months
from warehouse.estimates.regression import ROUNDING, Curve, WeightedFit

MAX_LENGTH = 24  # months of a ramp
MIN_BEFORE = 3  # months up to a
MIN_AFTER = 2  # months after a


def ramp(months: Months, start: Any, end: Any) -> Floats:
    """Return the height at each month: 0 up to ``start``, 1 from ``end`` on."""
    return np.asarray(np.clip(np.asarray(months - start) / (end - start), 0, 1))


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
        own = self.of_two(ramps, ramps)
        other = self.of_two(others, others)
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
class Fits:
    """The fits of all pairs (a, b) at one V."""

    hinges: Hinges
    gained: Floats  # squares that the ramp saves
    slope: Floats  # beta
    norm: Floats  # ramp' P ramp
    line_gained: float  # squares that a rising straight line saves


@dataclass(frozen=True)
class Pairs:
    """All pairs (a, b) to try, as indices of the calendar ``months``."""

    months: Months
    start: Months
    end: Months
    is_growth: Flags  # the pair stands for hinge H_a, with b the last month
    hinges: Floats  # (months of the curve, months)

    @classmethod
    def of(cls, curve: Curve) -> Pairs:
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

    def best(self, fits: Fits, among: Flags) -> int:
        """Return the first of the best pairs: in a hole, those that differ only by rounding."""
        gained = np.where(among, fits.gained, -1)
        return int((gained >= (1 - ZERO) * gained.max()).argmax())

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
        norms = hinges.of_two(ramps, ramps)
        is_new = norms > ZERO * norms.max()
        slopes = np.where(is_new, hinges.of(ramps) / np.where(is_new, norms, 1), 0)
        line_norm = hinges.gram[0, 0]  # the first hinge is a line
        line = hinges.products[0] if line_norm > ZERO * norms.max() else 0
        return Fits(
            hinges=hinges,
            gained=np.where(slopes > 0, slopes**2 * norms, 0),
            slope=slopes,
            norm=norms,
            line_gained=float(max(line, 0) ** 2 / max(line_norm, TINY)),
        )
