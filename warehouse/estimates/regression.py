"""Generalised least squares of one model's curve on Z = [N, lambda]; ``cutoffs`` has the formulas.

    P = V^-1 - V^-1 Z G Z' V^-1        G = (Z' V^-1 Z)+

One further column x of Z has the coefficient x' P y / x' P x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from warehouse.estimates.difficulty import (
    MOST_AUTOCORRELATION,
    TINY,
    ZERO,
    Difficulty,
    Flags,
    Floats,
    Months,
)

LEAST_FREEDOM = 0.02  # of a month's figure; below, N alone fits the month
ROUNDING = 1e-14  # of squares, relative
_LEAST_OWN_SHARE = 0.2  # of cov(u) in the residuals' variance


@dataclass(frozen=True)
class Curve:
    """One model's curve on its observed months, with Z and cov(lambda)."""

    losses: Floats
    months: Months
    columns: Floats  # Z: N, then lambda without its part in N
    num_free: int  # months minus the rank of Z
    difficulty_covariance: Floats
    autocorrelation: float  # of the panel's noise
    is_told: Flags  # False for a month that N alone fits

    @classmethod
    def of(cls, losses: Floats, months: Months, difficulty: Difficulty) -> Curve:
        """Return the curve of the months in ``losses``; arguments as of ``fit_cutoff``."""
        seen = ~np.isnan(losses)
        unknown = np.column_stack([np.ones(seen.sum()), difficulty.unknown[seen]])
        vectors, sizes, _ = np.linalg.svd(unknown, full_matrices=False)
        basis = vectors[:, sizes > ZERO * sizes.max(initial=0)]
        left = difficulty.values[seen] - basis @ (basis.T @ difficulty.values[seen])
        # A compressor's loss may be equal in all months: what is left of it then is rounding.
        scale = max(np.linalg.norm(difficulty.values[seen]), np.linalg.norm(losses[seen]))
        is_new = np.linalg.norm(left) > ZERO * scale
        covariance = np.zeros((seen.sum(), seen.sum()))
        if difficulty.covariance is not None:
            covariance = difficulty.covariance[np.ix_(seen, seen)]
        return cls(
            losses=losses[seen],
            months=months[seen],
            columns=np.column_stack([basis, left * is_new]),
            num_free=int(seen.sum()) - basis.shape[1] - int(is_new),
            difficulty_covariance=covariance,
            autocorrelation=difficulty.autocorrelation,
            is_told=1 - (basis**2).sum(axis=1) > LEAST_FREEDOM,
        )

    @cached_property
    def apart(self) -> Months:
        """Months between each two figures, (months, months)."""
        return np.asarray(np.abs(self.months[:, None] - self.months))

    def plus(self, *columns: Floats) -> Curve:
        """Return the curve with further columns of Z, independent of the others."""
        return replace(
            self,
            columns=np.column_stack([*columns, self.columns]),
            num_free=self.num_free - len(columns),
        )

    def weighted(self, covariance: Floats | None = None) -> WeightedFit:
        """Return the fit with V = ``covariance``; V = I if it is None."""
        if covariance is None:
            return WeightedFit.of(self, np.eye(len(self.months)), np.eye(len(self.months)))
        return WeightedFit.of(self, covariance, np.asarray(np.linalg.inv(covariance)))


@dataclass(frozen=True)
class WeightedFit:
    """The fit of a curve at one V. It is computed once, and all others at this V are from it."""

    curve: Curve
    covariance: Floats  # V
    inverse: Floats  # V^-1
    estimator: Floats  # G Z' V^-1
    annihilator: Floats  # P

    @classmethod
    def of(cls, curve: Curve, covariance: Floats, inverse: Floats) -> WeightedFit:
        """Fit a curve, given V and its inverse."""
        scaled = inverse @ curve.columns
        estimator = _inverse(curve.columns.T @ scaled) @ scaled.T
        return cls(curve, covariance, inverse, estimator, inverse - scaled @ estimator)

    def of_curve(self, curve: Curve) -> WeightedFit:
        """Fit the same months with other columns of Z at the same V."""
        return WeightedFit.of(curve, self.covariance, self.inverse)

    def tells(self, column: Floats) -> bool:
        """Return True if a further column is not in the span of Z, beyond rounding."""
        whole = float(column @ self.inverse @ column)
        return float(column @ self.annihilator @ column) > ZERO * whole

    def next_covariance(self, column: Floats | None = None) -> Floats:
        """Return V / s^2 from the residuals of the fit, with a further column of Z if given.

        A column that Z already spans tells nothing, and is left out.
        """
        curve = self.curve
        losses = self.curve.losses
        num_free = self.curve.num_free
        if column is not None and self.tells(column):
            weighted = self.annihilator @ column
            losses = losses - weighted @ losses / (weighted @ column) * column
            num_free -= 1
        figures = self.estimator @ losses
        left = losses - curve.columns @ figures
        shared = figures[-1] ** 2 * curve.difficulty_covariance
        variance = left @ left / num_free + ROUNDING * curve.losses @ curve.losses / len(left)
        own = variance - np.trace(shared) / len(left)
        own = max(own, _LEAST_OWN_SHARE * variance, TINY)
        next_to = np.flatnonzero(np.diff(curve.months) == 1)
        lagged = (left[next_to] @ left[next_to + 1]) / max(len(next_to), 1)
        r = lagged * len(left) / max(float(left @ left), TINY)
        r = np.clip(r + (1 + 4 * r) / len(left), curve.autocorrelation, MOST_AUTOCORRELATION)
        powers = r ** np.arange(curve.apart.max() + 1)
        return np.asarray(powers[curve.apart] + shared / own)


def _inverse(gram: Floats) -> Floats:
    """Return the pseudoinverse of Z' V^-1 Z. A column of zeros has a row and a column of zeros."""
    try:  # takes a fifth of the time of pinv
        is_zero = gram.diagonal() == 0
        return np.asarray(np.linalg.inv(gram + np.diag(is_zero)) - np.diag(is_zero))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.pinv(gram))
