"""The ramps of all pairs of months (a, b), fitted to one model's curve; ``cutoffs`` has the model.

ramp = (H_a - H_b) / (b - a) with hinges H_k = max(m - k, 0). So H' P H and H' P y give all fits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from warehouse.estimates.difficulty import TINY, ZERO, Flags, Floats, Months
from warehouse.estimates.regression import Curve, WeightedFit

MAX_LENGTH = 24  # months of a ramp
MIN_BEFORE = 3  # months up to a
MIN_AFTER = 2  # months after a


def ramp(months: Months, start: Any, end: Any) -> Floats:
    """Return the height at each month: 0 up to ``start``, 1 from ``end`` on."""
    return np.asarray(np.clip(np.asarray(months - start) / (end - start), 0, 1))


@dataclass(frozen=True)
class Fits:
    """The fits of all pairs (a, b) at one V, in units in which y has covariance s^2 V."""

    gained: Floats  # squares that the ramp saves
    slope: Floats  # beta
    norm: Floats  # ramp' P ramp
    total: float  # squares without a ramp
    products: Floats  # H' P y
    gram: Floats  # H' P H
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
        curve = fit.curve
        weights = fit.annihilator
        weighted = weights @ self.hinges
        products = weighted.T @ curve.losses
        gram = self.hinges.T @ weighted
        start = self.start
        end = self.end
        length = end - start
        slopes = (products[start] - products[end]) / length
        own = gram.diagonal()
        norms = (own[start] + own[end] - 2 * gram[start, end]) / length**2
        is_new = norms > ZERO * norms.max()
        slopes = np.where(is_new, slopes / np.where(is_new, norms, 1), 0)
        line = products[0] if gram[0, 0] > ZERO * norms.max() else 0
        return Fits(
            gained=np.where(slopes > 0, slopes**2 * norms, 0),
            slope=slopes,
            norm=norms,
            total=float(curve.losses @ weights @ curve.losses),
            products=products,
            gram=gram,
            line_gained=float(max(line, 0) ** 2 / max(gram[0, 0], TINY)),
        )
